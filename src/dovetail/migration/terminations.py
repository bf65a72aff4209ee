"""Pyomo's functions that say whether a solve ended well, rewritten for results of `dovetail.solve`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dovetail.migration.edits import Edit, Source
from dovetail.migration.left import Left

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
