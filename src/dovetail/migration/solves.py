"""Solve calls, rewritten to `dovetail.solve` where they solve a model that a predictor was added to."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from dovetail.migration.edits import Edit, Source
from dovetail.migration.imports import peer_of
from dovetail.migration.left import Left
from dovetail.migration.settings import OPTIONS

SOLVES = ("optimize", "optimizeNogil", "solveConcurrent")


def models_in(source: Source, tree: ast.AST) -> set[str]:
    """The models in all calls that add a predictor, as they are written."""
    renamed = _renamed_functions(tree)
    found = set()
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = _called(call)
        if call.args and (name in renamed or (name.startswith("add_") and name.endswith("_constr"))):
            found.add(source.text(call.args[0]))
        named = [keyword.value for keyword in call.keywords if keyword.arg in ("gp_model", "scip_model")]
        found.update(map(source.text, named))
    return found


def _renamed_functions(tree: ast.AST) -> set[str]:
    """What a program calls the peers' functions that it imported under other names."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and peer_of(node.module))
    return {alias.asname for node in imports for alias in node.names if alias.asname is not None}


def pyomo_solvers(source: Source, tree: ast.AST) -> set[str]:
    """The names that stand for one of Pyomo's solvers."""
    assigned = (node for node in ast.walk(tree) if isinstance(node, ast.Assign))
    return {
        source.text(node.targets[0])
        for node in assigned
        if isinstance(node.value, ast.Call) and _called(node.value) == "SolverFactory"
    }


class SolveCalls:
    """All solve calls of a program."""

    def __init__(
        self, source: Source, tree: ast.AST, options: Mapping[str, dict[str, str]], name: str
    ) -> None:
        self._source, self._options, self._name = source, options, name
        self._models, self._solvers = models_in(source, tree), pyomo_solvers(source, tree)
        self._statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        self.left: list[Left] = []
        self.solved: set[str] = set()
        """The models whose calls were rewritten, as they are written."""
        self._rewritten: set[int] = set()

    def edits(self, call: ast.Call) -> Iterator[Edit]:
        """The edit of one call, if it is a solve."""
        function = call.func
        if not isinstance(function, ast.Attribute):
            return
        if function.attr in SOLVES:
            yield from self._of_a_model(call, self._source.text(function.value))
        elif function.attr == "solve" and self._is_pyomos(function.value) and call.args:
            yield from self._of_pyomo(call, self._source.text(call.args[0]))

    def results(self, tree: ast.AST) -> set[str]:
        """What the rewritten calls are assigned to."""
        assigned = (node for node in ast.walk(tree) if isinstance(node, ast.Assign))
        own = (node for node in assigned if id(node.value) in self._rewritten)
        return {self._source.text(target) for node in own for target in node.targets}

    def _of_a_model(self, call: ast.Call, model: str) -> Iterator[Edit]:
        if model not in self._models:
            told = f"no predictor is added to {model} in this file: as it is, or dovetail.solve({model})"
            self.left.append(Left(call.lineno, self._source.text(call), told))
            return
        if call.args or call.keywords:
            told = "a callback of the solver's: dovetail.solve(..., callback=function), which sees an Event"
            self.left.append(Left(call.lineno, self._source.text(call), told))
        yield self._solve(call, model, {})

    def _of_pyomo(self, call: ast.Call, model: str) -> Iterator[Edit]:
        said: dict[str, str] = {"log": "False"}
        for keyword in call.keywords:
            value = self._source.text(keyword.value)
            if keyword.arg == "tee":
                said["log"] = value
            elif keyword.arg in OPTIONS:
                said[OPTIONS[keyword.arg]] = value
            else:
                told = "an option of the solver's that was left out: see dovetail.solve for its own"
                self.left.append(Left(call.lineno, f"{keyword.arg}={value}", told))
        if said["log"] == "True":
            del said["log"]
        yield self._solve(call, model, said)

    def _solve(self, call: ast.Call, model: str, said: dict[str, str]) -> Edit:
        self.solved.add(model)
        self._rewritten.add(id(call))
        options = "".join(f", {k}={v}" for k, v in (self._options.get(model, {}) | said).items())
        result = f"{self._name} = " if id(call) in self._statements else ""
        return self._source.replaced(call, f"{result}dovetail.solve({model}{options})")

    def _is_pyomos(self, solver: ast.expr) -> bool:
        if isinstance(solver, ast.Call):
            return _called(solver) == "SolverFactory"
        return self._source.text(solver) in self._solvers


def _called(call: ast.Call) -> str:
    """The last part of what is called."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))
