"""The settings of a program's solver, as options of `dovetail.solve`; settings without a counterpart are
listed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dovetail_peers.migration.program import SOLVER, Bindings, PeerProgram, called

OPTIONS = {
    "time_limit": ("timelimit", "limits/time", "time_limit", "sec", "seconds", "tmlim", "reslim"),
    "gap": ("mipgap", "limits/gap", "mip_rel_gap", "mip_gap", "rel_gap", "ratio", "ratiogap", "optcr"),
    "target": ("bestobjstop", "limits/objectivestop", "objective_target"),
    "seed": ("seed", "randomization/randomseedshift", "random_seed", "randomseed"),
    "n_jobs": ("threads", "parallel/maxnthreads"),
    "log": ("outputflag", "logtoconsole", "display/verblevel", "output_flag", "log_to_console"),
}
"""The parameters of Gurobi, SCIP, HiGHS, CBC, GLPK, CPLEX and GAMS that mean an option, in lower case."""
BY_NAME = {name: option for option, names in OPTIONS.items() for name in names}
SETTERS = {
    "setParam", "setRealParam", "setIntParam", "setLongintParam", "setBoolParam", "setCharParam",
    "setStringParam", "setOptionValue", "set_gurobi_param",
}  # fmt: skip
UNKNOWN = {
    "setPresolve", "setHeuristics", "setSeparating", "setEmphasis", "readParams", "set_options",
}  # fmt: skip
"""Methods that set several parameters."""


@dataclass(frozen=True, eq=False)
class Setting:
    """One parameter that a program sets."""

    node: ast.expr
    """Where."""
    holder: str
    """The model or solver for which it is set, as in the program; "" for all."""
    name: str
    value: ast.expr | None
    """None if the value is not a literal."""
    shown: str = ""
    """The text in the list; "" for the text of the node."""

    @property
    def option(self) -> str | None:
        """The option of `dovetail.solve` with the same meaning."""
        return BY_NAME.get(self.name.lower())

    @property
    def literal(self) -> object:
        """The value if it is a literal number or word; otherwise `...`."""
        try:
            return ast.literal_eval(self.value) if self.value is not None else ...
        except ValueError:
            return ...

    @property
    def says_nothing(self) -> bool:
        """Whether the setting requests dovetail's default behaviour: to print, to choose the threads."""
        said = self.literal
        return (self.option == "log" and said is not ... and bool(said)) or (
            self.option == "n_jobs" and isinstance(said, (int, float)) and said <= 0
        )

    def argument(self, program: PeerProgram) -> str:
        """The value of the option for `dovetail.solve`."""
        assert self.value is not None
        if self.option == "log":
            return "False" if self.literal is not ... else f"bool({program.text(self.value)})"
        return program.text(self.value)


class SolverSettings:
    """All settings of a program."""

    def __init__(self, program: PeerProgram, bindings: Bindings) -> None:
        self._program = program
        reader = _SettingsReader(program, bindings)
        found = [each for node in ast.walk(program.tree) for each in reader.settings(node)]
        self._all = sorted(found, key=lambda each: (each.node.lineno, each.node.col_offset))
        self._taken: set[int] = set()

    def options(
        self, call: ast.Call, holder: str, said: Iterable[Setting] = (), *, only: bool = False
    ) -> dict[str, str]:
        """The options for a call that solves `holder`; `said` are in the call itself.

        For the `only` call of a program, settings under other names are included.
        """
        options: dict[str, str] = {}
        everywhere = [
            each
            for each in self._all
            if (only or not each.holder) and each.holder != holder and self._is_seen(each, call)
        ]
        elsewhere = [each for each in self._settings_of(holder, call) if not self._in_scope(each, call)]
        here = [each for each in self._settings_of(holder, call) if self._in_scope(each, call)]
        for each in (*everywhere, *elsewhere, *here, *said):
            if each.option is None or each.value is None:
                continue
            self._taken.add(id(each))
            if each.says_nothing:
                options.pop(each.option, None)
            else:
                options[each.option] = each.argument(self._program)
        return {option: options[option] for option in OPTIONS if option in options}

    def left(self, said: Sequence[Setting] = ()) -> Iterator[Left]:
        """Settings that no call has used."""
        for each in (*self._all, *said):
            if id(each) in self._taken or each.says_nothing:
                continue
            what = each.shown or self._program.text(each.node)
            if each.option is None or each.value is None:
                what += f" ({each.name})" if each.name not in what else ""
                yield Left(each.node.lineno, what, "not translated: dovetail.solve has no option for it")
            else:
                argument = each.argument(self._program)
                yield Left(each.node.lineno, what, f"dovetail.solve(..., {each.option}={argument})")

    def _settings_of(self, holder: str, call: ast.Call) -> list[Setting]:
        return [each for each in self._all if each.holder == holder and self._is_seen(each, call)]

    def _in_scope(self, setting: Setting, call: ast.Call) -> bool:
        return self._program.scope(setting.node) is self._program.scope(call)

    def _is_seen(self, setting: Setting, call: ast.Call) -> bool:
        """Whether the setting was certainly made before the call, and its value is known there."""
        program = self._program
        if not program.branches(setting.node) <= program.branches(call):
            return False
        if self._in_scope(setting, call):
            return setting.node.lineno <= call.lineno
        if setting.literal is not ... or setting.value is None:
            return True
        names = {node.id for node in ast.walk(setting.value) if isinstance(node, ast.Name)}
        return names <= {"self"} and setting.holder.startswith("self.")


class _SettingsReader:
    """Finds the settings that nodes of the tree make."""

    def __init__(self, program: PeerProgram, bindings: Bindings) -> None:
        self._program, self._bindings = program, bindings
        self._has_gurobi = any(name.startswith("gurobipy") for name in program.imported.values())

    def settings(self, node: ast.AST) -> Iterator[Setting]:
        """The settings of one node."""
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            yield from self._assigned(node.targets[0], node.value)
        elif isinstance(node, ast.Call):
            yield from self._in_call(node)
            if isinstance(node.func, ast.Attribute):
                yield from self._by_method(node, node.func)

    def _assigned(self, target: ast.expr, value: ast.expr) -> Iterator[Setting]:
        """`model.Params.TimeLimit = 10`, `solver.options["TimeLimit"] = 10`, `solver.options = {...}`."""
        program = self._program
        if isinstance(value, ast.Call) and called(value) == "SolverFactory":
            for keyword in value.keywords:
                if keyword.arg == "options":
                    yield from in_dictionary(program, value, program.text(target), keyword.value)
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            holder = self._holder(target.value)
            if holder is not None:
                word = target.attr if isinstance(target, ast.Attribute) else _word(target.slice)
                yield Setting(target, holder, word, value)
            elif self._holder(target) is not None:
                yield from in_dictionary(program, target, self._holder(target) or "", value)

    def _in_call(self, call: ast.Call) -> Iterator[Setting]:
        """`gp.Env(params={...})`, `setattr(model.Params, "TimeLimit", 10)`."""
        name = called(call)
        if name in ("Env", "Model") and self._program.origin(call.func).startswith("gurobipy"):
            for keyword in call.keywords:
                if keyword.arg == "params":
                    yield from in_dictionary(self._program, call, "", keyword.value)
        holder = self._holder(call.args[0]) if name == "setattr" and len(call.args) == 3 else None
        if holder is not None:
            yield Setting(call, holder, _word(call.args[1]), call.args[2])

    def _by_method(self, call: ast.Call, function: ast.Attribute) -> Iterator[Setting]:
        """`model.setParam("TimeLimit", 10)`, `model.hideOutput()`, `solver.options.update(...)`."""
        name, program = function.attr, self._program
        holder = "" if program.origin(function.value) else program.text(function.value)
        inside = self._holder(function.value)
        if name == "hideOutput":
            silent = not call.args or bool(getattr(call.args[0], "value", True))
            yield Setting(call, holder, "OutputFlag", ast.Constant(0 if silent else 1))
        elif name in SETTERS and len(call.args) == 2:
            yield Setting(call, holder, _word(call.args[0]), call.args[1])
        elif name == "setParams" and len(call.args) == 1:
            yield from in_dictionary(program, call, holder, call.args[0])
        elif name == "update" and inside is not None:
            for one in call.args:
                yield from in_dictionary(program, call, inside, one)
            for keyword in call.keywords:
                yield Setting(call, inside, keyword.arg or "", keyword.value)
        elif name in UNKNOWN:
            yield Setting(call, holder, name, None)

    def _holder(self, node: ast.expr) -> str | None:
        """`model` of `model.Params`, `solver` of `solver.options` and `solver.config`; None for all else."""
        if not isinstance(node, ast.Attribute):
            return None
        if (node.attr in ("Params", "params") and self._has_gurobi) or (
            node.attr in ("options", "config") and SOLVER in self._bindings.kinds(node.value)
        ):
            return self._program.text(node.value)
        return None


def in_dictionary(
    program: PeerProgram, node: ast.expr, holder: str, given: ast.expr, shown: str = ""
) -> Iterator[Setting]:
    """The settings of a dictionary; a single one if it is not a literal."""
    if isinstance(given, ast.Dict) and None not in given.keys:
        for key, value in zip(given.keys, given.values, strict=True):
            assert key is not None
            yield Setting(node, holder, _word(key), value, shown)
    else:
        yield Setting(node, holder, program.text(given), None, shown)


def _word(node: ast.expr) -> str:
    """A parameter's name: a word, or `GRB.Param.TimeLimit`."""
    return str(node.value) if isinstance(node, ast.Constant) else str(getattr(node, "attr", ""))


@dataclass(frozen=True)
class Left:
    """A line that its owner must change."""

    line: int
    what: str
    instead: str
    cell: int = 0
    """The number of the notebook's cell that has the line; 0 in a program."""

    def __str__(self) -> str:
        cell = f"cell {self.cell}, " if self.cell else ""
        return f"{cell}line {self.line}: {self.what} -> {self.instead}"


START = "not translated: dovetail.solve(..., start=model) begins from the values that the model holds"

REFUSED = "unchanged; a model with predictors refuses it when the program runs"

READS = {
    "Status": "result.status (a word: 'optimal', 'feasible', ...)",
    "status": "result.status (a word: 'optimal', 'feasible', ...)",
    "ObjBound": "result.bound",
    "ObjBoundC": "result.bound",
    "MIPGap": "result.gap",
    "Runtime": "result.seconds",
    "NodeCount": "result.iterations",
    "SolCount": "result.x is not None",
    "getStatus": "result.status",
    "getDualbound": "result.bound",
    "getPrimalbound": "result.objective",
    "getGap": "result.gap",
    "getSolvingTime": "result.seconds",
    "getNNodes": "result.iterations",
    "getNSols": "result.x is not None",
    "addSol": START,
    "trySol": START,
    "computeIIS": "result.message and result.hints, which name the constraints to relax",
    "cbGet": "dovetail.solve(..., callback=function)",
    "getTransformedVar": "the variable itself",
    "writeProblem": "this writes the model without its predictors",
    "write": "this writes the model without its predictors",
}
"""Attributes and methods of a model with predictors that speak of the solver's own run."""
