"""Several proofs of one problem, in turns: whichever closes it first ends all of them.

Which of them that is cannot be told beforehand. Each goes on where it was, and its turns double, so that the
quick one is done soon. The one that raised the bound last has most of the time: another has its turn when it
will have had no more than a part of that.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from dovetail.core.deadline import OutOfTime
from dovetail.run.budget import StopReason
from dovetail.run.context import Method, MethodOutcome, SolveContext
from dovetail.run.failures import expendable

LEAST = 0.25
"""Seconds of a first turn: networks of five inputs are closed in less, or need many turns."""
BEHIND = 0.25
"""Of the time of the one that raised the bound last, for each of the others: what a proof loses to them."""


@dataclass(frozen=True)
class InTurn:
    """Methods that go on where they were when they are asked again."""

    methods: tuple[Method, ...]
    name = "proofs-in-turn"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Until the problem is closed, or all have come to their own end."""
        waiting, said, leads = list(self.methods), dict[str, str](), self.methods[0]
        spent, turns, closed = {one.name: 0.0 for one in waiting}, 0, False
        while waiting and not context.over:
            ahead = [
                (spent[one.name] + max(LEAST, spent[one.name])) / (1.0 if one is leads else BEHIND)
                for one in waiting
            ]
            method = waiting[ahead.index(min(ahead))]
            began, before = time.perf_counter(), context.incumbent.bound
            outcome = _turn(context, method, max(LEAST, spent[method.name]))
            spent[method.name] += time.perf_counter() - began
            turns += 1
            if outcome is not None and outcome.message:
                said[method.name] = outcome.message
            if outcome is not None and outcome.infeasible:
                return outcome
            closed = closed or (outcome is not None and outcome.closed)
            if outcome is None or outcome.stop_reason is not StopReason.TIME:
                waiting.remove(method)
            leads = method if context.incumbent.bound != before else leads
        reason = StopReason.TIME if waiting else StopReason.STALLED
        told = "; ".join(said.values())
        return MethodOutcome(context.over or reason, turns, told, closed=closed and not waiting)


def _turn(context: SolveContext, method: Method, seconds: float) -> MethodOutcome | None:
    """So many seconds of a method; None where it failed."""
    outcome = None
    with expendable(method.name):
        try:
            outcome = method.solve(context.turn(seconds))
        except OutOfTime:  # in the middle of a step
            outcome = MethodOutcome(StopReason.TIME, 0)
    return outcome
