"""The only place that decides status, bound and stop reason of a result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.stated_program import StatedProgram
from dovetail.report.gains import relative_gap
from dovetail.run.bound import Support
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.result import BoundKind, Status
from dovetail.solving.host import HostRelaxation

PROVED = (Status.OPTIMAL, Status.UNBOUNDED, Status.INFEASIBLE)


KINDS = {Support.PROOF: BoundKind.PROVEN, Support.ENGINE: BoundKind.ENGINE}


@dataclass(frozen=True)
class Conclusion:
    """Status, objective and bound of a result, in the user's sense."""

    status: Status
    stop_reason: StopReason
    objective: float | None
    bound: float | None
    bound_kind: BoundKind
    within_rounding: bool = False
    """Whether the gap exceeds the requested one and the predictors' rounding explains it."""
    bound_error: float | None = None
    """One standard error of a bound that is an estimate."""
    allowed_gap: float | None = None
    """How far the bound may be from the objective of an optimal solution."""

    @property
    def gap(self) -> float | None:
        """The gap as in `Result.gap`."""
        if self.objective is None or self.bound is None:
            return None
        return relative_gap(self.objective, self.bound)


def conclude(
    program: StatedProgram, context: SolveContext, host: HostRelaxation, outcome: MethodOutcome
) -> Conclusion:
    """The conclusion from the analysis without predictors, the incumbent with its bound, and the reason why
    the method stopped. `program` is the user's."""
    incumbent, x = context.incumbent, context.incumbent.x
    objective = None if x is None or host.ray else program.objective(x)
    bound = None if host.ray else _bound(program, objective, incumbent.bound)
    explained = False
    if host.infeasible or (outcome.infeasible and x is None):
        status = Status.INFEASIBLE
    elif x is None:
        status = Status.ERROR if outcome.stop_reason is StopReason.ERROR else Status.NO_SOLUTION
    elif host.ray:
        status = Status.UNBOUNDED
    else:
        assert objective is not None
        met = bound is not None and incumbent.gap.met(objective, bound)
        explained = not met and incumbent.proved
        status = Status.OPTIMAL if met or explained else Status.FEASIBLE
    interrupted = context.budget.stopped is StopReason.INTERRUPT
    reason = stop_reason(status, outcome.stop_reason, interrupted)
    kind = BoundKind.NONE if bound is None else KINDS[incumbent.proof.support]
    error, estimate = None, incumbent.estimate
    if bound is None and estimate is not None and not host.ray and status is Status.FEASIBLE:
        bound, kind, error = _bound(program, objective, estimate.value), BoundKind.ESTIMATE, estimate.error
    allowed = None if objective is None else incumbent.gap.allowed(objective)
    if explained and objective is not None and bound is not None:
        allowed = abs(objective - bound)
    return Conclusion(status, reason, objective, bound, kind, explained, error, allowed)


def stop_reason(status: Status, reason: StopReason, interrupted: bool) -> StopReason:
    """The stop reason: a proof comes first, then Ctrl-C, then the method's own reason."""
    if status in PROVED:
        return StopReason.PROVED
    return StopReason.INTERRUPT if interrupted else reason


def _bound(program: StatedProgram, objective: float | None, bound: float) -> float | None:
    """The bound in the user's sense, at most the objective of a verified point."""
    if not np.isfinite(bound):
        return None
    if objective is not None:
        bound = min(bound, program.sign * objective)
    return program.sign * bound + 0.0  # never -0
