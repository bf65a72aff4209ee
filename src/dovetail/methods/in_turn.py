"""Several proofs of one problem, in turns: whichever closes it first ends all of them.

Which of them that is cannot be told beforehand. Each goes on where it was, and turns double, so that the
quick one is done soon, and none waits for more than a part of what the others have had. The one that raised
the bound last has the long turns; while it halves the gap in each, the others wait.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.core.deadline import OutOfTime
from dovetail.run.budget import StopReason
from dovetail.run.context import Method, MethodOutcome, SolveContext
from dovetail.run.failures import expendable

SHARE, LEAST = 0.25, 1.0
"""Of the time left, and seconds: what a turn takes at most, and may always take. A thousand boxes of 18
networks in a chain took all of a phase."""
HALF = 0.5
"""Of the gap: a proof that leaves less of it after a turn is on its way."""
BEHIND = 0.25
"""Of a turn, for those that did not raise the bound last: what a proof loses to the others at most."""


@dataclass(frozen=True)
class InTurn:
    """Methods that go on where they were when they are asked again."""

    methods: tuple[tuple[Method, int], ...]
    """Each with the nodes of its first turn."""
    name = "proofs-in-turn"

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Until the problem is closed, or all have come to their own end."""
        waiting, said, leads = list(self.methods), dict[str, str](), self.methods[0][0]
        incumbent, rounds, closed, alone = context.incumbent, 0, False, False
        while waiting and not context.over:
            for method, nodes in tuple(waiting):
                if context.over or (alone and method is not leads):
                    continue
                before, apart = incumbent.bound, incumbent.cutoff - incumbent.bound
                part = 1.0 if rounds == 0 or method is leads else BEHIND
                outcome = _turn(context, method, part * nodes * 2**rounds)
                if outcome is not None and outcome.message:
                    said[method.name] = outcome.message
                if outcome is not None and outcome.infeasible:
                    return outcome
                closed = closed or (outcome is not None and outcome.closed)
                leads = method if incumbent.bound != before else leads
                alone = method is leads and incumbent.cutoff - incumbent.bound < HALF * apart
                if outcome is None or outcome.stop_reason is not StopReason.TIME:
                    waiting.remove((method, nodes))
                    alone = False
            rounds += 1
        reason = StopReason.TIME if waiting else StopReason.STALLED
        told = "; ".join(said.values())
        return MethodOutcome(context.over or reason, rounds, told, closed=closed and not waiting)


def _turn(context: SolveContext, method: Method, nodes: float) -> MethodOutcome | None:
    """So many nodes of a method; None where it failed."""
    outcome, seconds = None, max(LEAST, SHARE * context.budget.left)
    with expendable(method.name):
        try:
            outcome = method.solve(context.turn(seconds, nodes))
        except OutOfTime:  # in the middle of a step
            outcome = MethodOutcome(StopReason.TIME, 0)
    return outcome
