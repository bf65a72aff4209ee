"""Solve calls, rewritten to `dovetail.solve`.

A model may have its predictors under another name, in another function or by an alias. Every model that is
solved is therefore handed to `dovetail.solve`, which solves models without predictors as well. A call that
cannot be rewritten is kept and listed: a model with predictors refuses it when the program runs.

The status and run time in solvers' terms, rewritten for results of `dovetail.solve`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dovetail_peers.migration.program import (
    MODEL,
    MODELS,
    SOLVER,
    Bindings,
    Edit,
    PeerProgram,
    called,
    last_name,
)
from dovetail_peers.migration.settings import REFUSED, Left, Setting, SolverSettings, in_dictionary

SOLVES = ("optimize", "optimizeNogil", "solveConcurrent")
COPIES = ("copy", "relax", "fixed", "clone")


TIMES = {"Time", "User time", "Wallclock time"}
"""Pyomo's names for seconds, below ["Solver"][0]."""
ASSERTS, CHECKS = "assert_optimal_termination", "check_optimal_termination"


class SolveCalls:
    """All solve calls of a program; a result is called `name` if the program assigns it to no variable."""

    def __init__(self, program: PeerProgram, name: str) -> None:
        self._program, self._name = program, name
        self._bindings = Bindings(program)
        self._settings = SolverSettings(program, self._bindings)
        self.left: list[Left] = []
        self.models: dict[int, str] = {}
        """The models of the rewritten calls, as in the program, by the identity of the call."""
        self._said: dict[int, list[Setting]] = {}
        self._calls = [call for call in program.all(ast.Call) if self._looks_like_a_solve(call)]
        self._unread = [*self._passed_on(), *self._called_by_name(), *self._copies()]

    def edits(self) -> Iterator[Edit]:
        """The models of all calls."""
        for call in self._calls:
            self._record_calls(call, self.models[id(call)])
            yield self._edit(call)
        said = [each for some in self._said.values() for each in some]
        self.left += [*self._settings.left(said), *self._unread]

    @property
    def solved(self) -> set[str]:
        """The models, as in the program."""
        return set(self.models.values())

    def result(self, model: str, node: ast.expr) -> str | None:
        """The name of a model's last result, if it is assigned earlier in the same function."""
        before = [
            call
            for call in self._calls
            if self.models[id(call)] == model
            and self._program.scope(call) is self._program.scope(node)
            and call.lineno < node.lineno
        ]
        if not before:
            return None
        last = max(before, key=lambda call: (call.lineno, call.col_offset))
        if self._program.is_statement(last):
            return self._name
        up = next(self._program.above(last))
        named = isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Name)
        return self._program.text(up.targets[0]) if named else None  # type: ignore[attr-defined]

    def results(self) -> set[str]:
        """The targets to which the rewritten calls are assigned."""
        own = (node for node in self._program.all(ast.Assign) if id(node.value) in self.models)
        return {self._program.text(target) for node in own for target in node.targets}

    def _looks_like_a_solve(self, call: ast.Call) -> bool:
        """Whether a call is rewritten; its model is recorded then, otherwise the obstacle."""
        function = call.func
        if not isinstance(function, ast.Attribute) or function.attr not in (*SOLVES, "solve"):
            return False
        if self._bindings.kinds(function.value) & self._bindings.defines(function.attr):
            return False  # a method of the program's own class
        model = self._of_pyomo(call) if function.attr == "solve" else self._of_a_model(call, function)
        if model is not None:
            self.models[id(call)] = model
        return model is not None

    def _of_a_model(self, call: ast.Call, function: ast.Attribute) -> str | None:
        """The model of `model.optimize()`, `super().optimize()` and `Model.optimize(model)`."""
        program, whose, args = self._program, function.value, call.args
        text = program.text(whose)
        if isinstance(whose, ast.Call) and called(whose) == "super":
            text = self._self(call)
        elif program.origin(whose):
            if last_name(whose) != "Model" or not args:
                return None  # a function of a module, or an object of another file
            text, args = program.text(args[0]), args[1:]
        elif self._bindings.defines(function.attr) and not self._bindings.kinds(whose):
            return self._leave(call, f"{function.attr} may be a method of this file or of a model")
        elif isinstance(whose, ast.Name) and self._is_untied(whose.id):
            return self._leave(call, f"no predictor is added to {text} in this file")
        given = [*args, *(keyword.value for keyword in call.keywords)]
        if any(not (isinstance(each, ast.Constant) and each.value is None) for each in given):
            return self._leave(
                call,
                "a callback of the solver's: dovetail.solve(..., callback=function), which sees an Event",
            )
        return text

    def _of_pyomo(self, call: ast.Call) -> str | None:
        """The model of `solver.solve(model)`."""
        assert isinstance(call.func, ast.Attribute)
        if SOLVER not in self._bindings.kinds(call.func.value):
            pyomo = any(name.startswith("pyomo") for name in self._program.imported.values())
            if pyomo and len(call.args) == 1 and not self._program.origin(call.func.value):
                self._leave(call, "it is unclear whether this is a solver of Pyomo")
            return None
        named = [keyword.value for keyword in call.keywords if keyword.arg == "model"]
        if not (call.args or named):
            return self._leave(call, "the solver has its model from another line")
        return self._program.text((call.args or named)[0])

    def _leave(self, call: ast.Call, why: str) -> str | None:
        """List a call that has no model to hand to dovetail."""
        self.left.append(Left(call.lineno, self._program.text(call), f"{why}; {REFUSED}"))
        return None

    def _self(self, node: ast.AST) -> str:
        """The first parameter of the method around a node."""
        scope = self._program.scope(node)
        assert isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef))
        return scope.args.args[0].arg

    def _is_untied(self, name: str) -> bool:
        """Whether a name holds a new model that is used only as `name.x`."""
        if any(node.arg == name for node in self._program.all(ast.arg)):
            return False
        made = {
            id(target)
            for target, value in self._bindings.handed_on()
            if isinstance(value, ast.Call) and called(value) in MODELS
        }
        own = [node for node in self._program.all(ast.Name) if node.id == name]
        looked_at = [node for node in own if isinstance(next(self._program.above(node)), ast.Attribute)]
        kept = [id(node) for node in own if node not in looked_at]
        return bool(kept) and made.issuperset(kept)

    def _passed_on(self) -> Iterator[Left]:
        """`model.optimize` and `solver.solve` that are not called where they stand."""
        for node in self._program.all(ast.Attribute):
            if node.attr not in (*SOLVES, "solve") or self._program.is_called(node):
                continue
            if self._program.origin(node.value) or not isinstance(node.ctx, ast.Load):
                continue
            if node.attr in SOLVES or SOLVER in self._bindings.kinds(node.value):
                yield Left(node.lineno, self._program.text(node), f"dovetail.solve(model); {REFUSED}")

    def _called_by_name(self) -> Iterator[Left]:
        """`getattr(model, "optimize")`, `methodcaller("optimize")`."""
        for node in self._program.all(ast.Constant):
            if node.value in SOLVES:
                yield Left(node.lineno, self._program.text(node), f"dovetail.solve(model); {REFUSED}")

    def _copies(self) -> Iterator[Left]:
        """`model.copy()`, `Model(sourceModel=model)`: attached predictors stay with the original."""
        for call in self._program.all(ast.Call):
            whose = call.func.value if isinstance(call.func, ast.Attribute) else None
            if (called(call) in COPIES and MODEL in self._bindings.kinds(whose)) or any(
                keyword.arg == "sourceModel" for keyword in call.keywords
            ):
                told = "a copy has no predictors and refuses to be solved: add them to the copy"
                yield Left(call.lineno, self._program.text(call), told)

    def _record_calls(self, call: ast.Call, model: str) -> None:
        """Record calls of Pyomo's own functions."""
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "solve"):
            return
        said = [Setting(call, "", "output_flag", ast.Constant(0))]
        for keyword in call.keywords:
            if keyword.arg == "tee":
                loud = isinstance(keyword.value, ast.Constant) and bool(keyword.value.value)
                quiet = isinstance(keyword.value, ast.Constant) and not loud
                value = ast.Constant(0 if quiet else 1) if loud or quiet else keyword.value
                said[0] = Setting(call, "", "output_flag", value)
                continue
            shown = f"{keyword.arg}={self._program.text(keyword.value)}"
            if keyword.arg in ("options", "solver_options"):
                said += in_dictionary(self._program, keyword.value, "", keyword.value, shown)
            elif keyword.arg not in (None, "model"):
                said.append(Setting(keyword.value, "", keyword.arg, keyword.value, shown))
        self._said[id(call)] = said

    def _edit(self, call: ast.Call) -> Edit:
        program, model = self._program, self.models[id(call)]
        assert isinstance(call.func, ast.Attribute)
        holder = program.text(call.func.value) if call.func.attr == "solve" else model
        said = self._said.get(id(call), ())
        found = self._settings.options(call, holder, said, only=len(self._calls) == 1)
        options = "".join(f", {option}={value}" for option, value in found.items())
        result = f"{self._name} = " if program.is_statement(call) else ""
        return program.source.call_replaced(call, f"{result}dovetail.solve({model}{options})")


class Terminations:
    """All edits of a program, given its solve calls."""

    def __init__(self, program: PeerProgram, calls: SolveCalls) -> None:
        self._program, self._calls = program, calls
        self._results = calls.results()
        self.left: list[Left] = []
        self.rewritten: set[int] = set()
        """The identities of the nodes that speak of a status and are replaced."""

    def edits(self) -> Iterator[Edit]:
        """The edits of all calls."""
        for call in self._program.all(ast.Call):
            yield from self._of_a_call(call)
        for comparison in self._program.all(ast.Compare):
            yield from self._of_a_comparison(comparison)
        yield from self._readings()

    def _of_a_call(self, call: ast.Call) -> Iterator[Edit]:
        """The edit of one call, if it is one of these functions and its argument is a result of dovetail."""
        if called(call) not in (ASSERTS, CHECKS):
            return
        source = self._program.source
        result = source.text(call.args[0]) if call.args else ""
        asserts = called(call) == ASSERTS
        if result not in self._results or (asserts and not self._program.is_statement(call)):
            told = "whether result.status is 'optimal'"
            self.left.append(Left(call.lineno, source.text(call), told))
        elif asserts:
            yield source.replaced(call, f'assert {result}.status == "optimal", {result}.message')
        else:
            yield source.replaced(call, f'({result}.status == "optimal")')

    def _of_a_comparison(self, node: ast.Compare) -> Iterator[Edit]:
        """`model.Status == GRB.OPTIMAL`, `scip.getStatus() == "optimal"`, if the result has a name."""
        status = node.left.func if isinstance(node.left, ast.Call) else node.left
        if not isinstance(status, ast.Attribute) or status.attr not in ("Status", "status", "getStatus"):
            return
        model = self._program.text(status.value)
        optimal = getattr(node.comparators[0], "attr", getattr(node.comparators[0], "value", None))
        sign = {ast.Eq: "==", ast.NotEq: "!="}.get(type(node.ops[0]))
        result = self._calls.result(model, node)
        if len(node.ops) == 1 and sign and optimal in ("OPTIMAL", "optimal") and result is not None:
            self.rewritten.add(id(status))
            yield self._program.source.replaced(node, f'({result}.status {sign} "optimal")')

    def _readings(self) -> Iterator[Edit]:
        """The edits of dictionary lookups in results; lookups without a counterpart are listed."""
        source, found = self._program.source, list(self._program.all(ast.Subscript))
        inner = {id(node.value) for node in found}
        for node in found:
            if id(node) in inner:
                continue
            result, keys = _indexed_object(node)
            name = source.text(result)
            if name not in self._results:
                continue
            if keys[0] == "Solver" and keys[-1] in TIMES:
                yield source.replaced(node, f"{name}.seconds")
            else:
                told = "result.status, .objective, .bound, .seconds"
                self.left.append(Left(node.lineno, source.text(node), told))


def _indexed_object(node: ast.Subscript) -> tuple[ast.expr, list[object]]:
    """The object that is indexed, and the keys from the first to the last; None for a computed key."""
    keys: list[object] = []
    at: ast.expr = node
    while isinstance(at, ast.Subscript):
        keys.append(at.slice.value if isinstance(at.slice, ast.Constant) else None)
        at = at.value
    return at, keys[::-1]
