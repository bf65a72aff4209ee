"""How a solve ended and how long it took, as solvers say it, rewritten for results of `dovetail.solve`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dovetail_peers.migration.edits import Edit
from dovetail_peers.migration.left import Left
from dovetail_peers.migration.program import Program, called
from dovetail_peers.migration.solves import SolveCalls

TIMES = {"Time", "User time", "Wallclock time"}
"""What Pyomo's results call seconds, below ["Solver"][0]."""
ASSERTS, CHECKS = "assert_optimal_termination", "check_optimal_termination"


class Terminations:
    """All of a program, given its solve calls."""

    def __init__(self, program: Program, calls: SolveCalls) -> None:
        self._program, self._calls = program, calls
        self._results = calls.results()
        self.left: list[Left] = []
        self.rewritten: set[int] = set()
        """The identities of the nodes that speak of a status and are replaced."""

    def edits(self) -> Iterator[Edit]:
        """Those of all of it."""
        for call in self._program.all(ast.Call):
            yield from self._of_a_call(call)
        for comparison in self._program.all(ast.Compare):
            yield from self._of_a_comparison(comparison)
        yield from self._readings()

    def _of_a_call(self, call: ast.Call) -> Iterator[Edit]:
        """The edit of one call, if it is one of these functions and the result is one of dovetail's."""
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
        """`model.Status == GRB.OPTIMAL`, `scip.getStatus() == "optimal"`, where the result has a name."""
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
        """The edits of what is looked up in results as in dictionaries; what has no other name is listed."""
        source, found = self._program.source, list(self._program.all(ast.Subscript))
        inner = {id(node.value) for node in found}
        for node in found:
            if id(node) in inner:
                continue
            result, keys = _looked_up(node)
            name = source.text(result)
            if name not in self._results:
                continue
            if keys[0] == "Solver" and keys[-1] in TIMES:
                yield source.replaced(node, f"{name}.seconds")
            else:
                told = "result.status, .objective, .bound, .seconds"
                self.left.append(Left(node.lineno, source.text(node), told))


def _looked_up(node: ast.Subscript) -> tuple[ast.expr, list[object]]:
    """What is looked into, and the keys from the first to the last; None for one that is computed."""
    keys: list[object] = []
    at: ast.expr = node
    while isinstance(at, ast.Subscript):
        keys.append(at.slice.value if isinstance(at.slice, ast.Constant) else None)
        at = at.value
    return at, keys[::-1]
