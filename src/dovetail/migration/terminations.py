"""What Pyomo says of how a solve ended, and how long it took, rewritten for results of `dovetail.solve`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dovetail.migration.edits import Edit, Source
from dovetail.migration.left import Left

TIMES = {"Time", "User time", "Wallclock time"}
"""What Pyomo's results call seconds, below ["Solver"][0]."""
ASSERTS, CHECKS = "assert_optimal_termination", "check_optimal_termination"


class Terminations:
    """All of a program, given the names that its solve calls are assigned to."""

    def __init__(self, source: Source, tree: ast.AST, results: set[str]) -> None:
        self._source, self._results = source, results
        self._statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        self.left: list[Left] = []

    def edits(self, call: ast.Call) -> Iterator[Edit]:
        """The edit of one call, if it is one of these functions and the result is one of dovetail's."""
        called = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if called not in (ASSERTS, CHECKS):
            return
        result = self._source.text(call.args[0]) if call.args else ""
        asserts = called == ASSERTS
        if result not in self._results or (asserts and id(call) not in self._statements):
            told = "whether result.status is 'optimal'"
            self.left.append(Left(call.lineno, self._source.text(call), told))
        elif asserts:
            yield self._source.replaced(call, f'assert {result}.status == "optimal", {result}.message')
        else:
            yield self._source.replaced(call, f'({result}.status == "optimal")')

    def readings(self, tree: ast.AST) -> Iterator[Edit]:
        """The edits of what is looked up in results as in dictionaries; what has no other name is listed."""
        inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Subscript) or id(node) in inner:
                continue
            result, keys = _looked_up(node)
            name = self._source.text(result)
            if name not in self._results:
                continue
            if keys[0] == "Solver" and keys[-1] in TIMES:
                yield self._source.replaced(node, f"{name}.seconds")
            else:
                told = "result.status, .objective, .bound, .seconds"
                self.left.append(Left(node.lineno, self._source.text(node), told))


def _looked_up(node: ast.Subscript) -> tuple[ast.expr, list[object]]:
    """What is looked into, and the keys from the first to the last; None for one that is computed."""
    keys: list[object] = []
    at: ast.expr = node
    while isinstance(at, ast.Subscript):
        keys.append(at.slice.value if isinstance(at.slice, ast.Constant) else None)
        at = at.value
    return at, keys[::-1]
