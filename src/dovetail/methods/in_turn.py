"""Several proofs of one problem, in turns: whichever closes it first ends all of them.

Which of them that is cannot be told beforehand. Each goes on where it was, and its turns double, so that the
quick one is done soon. The one that raised the bound last has most of the time: another has its turn when it
will have had no more than a part of that.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dovetail.core.deadline import OutOfTime
from dovetail.run.budget import StopReason
from dovetail.run.context import Method, MethodOutcome, SolveContext
from dovetail.run.failures import expendable

LEAST = 0.25
"""Seconds of a first turn: networks of five inputs are closed in less, or need many turns."""
HALF = 0.5
"""Of the gap: a proof that leaves no more of it after a turn is on its way, and has the next turn as well."""
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
        spent, turns, closed, alone = {one.name: 0.0 for one in waiting}, 0, False, False
        while waiting and not context.over:
            method = leads if alone and leads in waiting else _next(waiting, leads, spent)
            began, before = time.perf_counter(), context.incumbent.bound
            apart = _apart(context)
            outcome = _turn(context, method, max(LEAST, spent[method.name]))
            spent[method.name] += time.perf_counter() - began
            alone = _apart(context) < HALF * apart
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


def _next(waiting: Sequence[Method], leads: Method, spent: Mapping[str, float]) -> Method:
    """The one that is least ahead of its part after its turn."""

    def ahead(one: Method) -> float:
        return (spent[one.name] + max(LEAST, spent[one.name])) / (1.0 if one is leads else BEHIND)

    return min(waiting, key=ahead)


def _apart(context: SolveContext) -> float:
    """How far the best objective is from the bound, in minimisation form."""
    incumbent = context.incumbent
    if incumbent.x is None:
        return math.inf
    return context.problem.mip.sign * incumbent.objective - incumbent.bound


def _turn(context: SolveContext, method: Method, seconds: float) -> MethodOutcome | None:
    """So many seconds of a method; None where it failed."""
    outcome = None
    with expendable(method.name):
        try:
            outcome = method.solve(context.turn(seconds))
        except OutOfTime:  # in the middle of a step
            outcome = MethodOutcome(StopReason.TIME, 0)
    return outcome
