"""What an answer is called: the one place that decides status, bound and stop reason of a result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.analysis.host import HostRelaxation
from dovetail.core.stated_program import StatedProgram
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.gap import meets
from dovetail.run.result import BoundKind, Status

PROVED = (Status.OPTIMAL, Status.UNBOUNDED, Status.INFEASIBLE)


@dataclass(frozen=True)
class Conclusion:
    """What is said of the incumbent; objective and bound in the user's sense."""

    status: Status
    stop_reason: StopReason
    objective: float | None
    bound: float | None
    doubt: str = ""
    """Why a bound was dropped."""

    @property
    def bound_kind(self) -> BoundKind:
        """A bound that is returned is a proven one."""
        return BoundKind.NONE if self.bound is None else BoundKind.PROVEN


def conclude(
    program: StatedProgram, context: SolveContext, host: HostRelaxation, outcome: MethodOutcome
) -> Conclusion:
    """From what the host proves alone, the incumbent and its bound, and why the method stopped.

    `program` is the user's: where the host is unbounded, the search had no cost.
    """
    x = context.incumbent.x
    objective = None if x is None or host.ray else program.objective(x)
    bound, doubt = (None, "") if host.ray else _bound(program, objective, context.incumbent.bound)
    if host.infeasible or (outcome.infeasible and x is None):
        status = Status.INFEASIBLE
    elif x is None:
        status = Status.ERROR if outcome.stop_reason is StopReason.ERROR else Status.NO_SOLUTION
    elif host.ray:
        status = Status.UNBOUNDED
    else:
        assert objective is not None
        status = Status.OPTIMAL if bound is not None and meets(program, objective, bound) else Status.FEASIBLE
    interrupted = context.budget.stopped is StopReason.INTERRUPT
    return Conclusion(status, stop_reason(status, outcome.stop_reason, interrupted), objective, bound, doubt)


def stop_reason(status: Status, reason: StopReason, interrupted: bool) -> StopReason:
    """A proof comes first; then Ctrl-C, though the search may have been about to end by itself."""
    if status in PROVED:
        return StopReason.PROVED
    return StopReason.INTERRUPT if interrupted else reason


def _bound(program: StatedProgram, objective: float | None, bound: float) -> tuple[float | None, str]:
    """The bound in the user's sense; dropped, with a word, where a verified point contradicts it."""
    if not np.isfinite(bound):
        return None, ""
    if objective is not None:
        value = program.sign * objective
        if bound > value and not meets(program, objective, program.sign * bound):
            return None, f"the bound {bound:g} was contradicted by a verified point and dropped"
        bound = min(bound, value)
    return program.sign * bound + 0.0, ""  # never -0
