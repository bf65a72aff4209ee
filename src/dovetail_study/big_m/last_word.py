"""SCIP's last word, and what it is worth: its points are checked, its bound and its "infeasible" doubted."""

from __future__ import annotations

import numpy as np

from dovetail.core.errors import EngineError
from dovetail.run.bound import Bound, Scope, Support
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.written_model import ModelEnd
from dovetail_study.big_m.account import Account
from dovetail_study.big_m.reporter import Reporter, prediction_errors
from dovetail_study.big_m.scip_formulation import ScipFormulation

STORED = 20
"""So many of SCIP's stored points are tried at the end if none was taken before."""
ENDED = {
    "timelimit": StopReason.TIME,
    "memlimit": StopReason.MEMORY,
    "userinterrupt": StopReason.INTERRUPT,
    "optimal": StopReason.STALLED,
    "gaplimit": StopReason.STALLED,
    "infeasible": StopReason.STALLED,
    "unbounded": StopReason.STALLED,
    "inforunbd": StopReason.STALLED,
}
"""SCIP's last word as a reason; "optimal" becomes proved only where the verified objective agrees."""


def concluded(
    context: SolveContext,
    model: ScipFormulation,
    reporter: Reporter,
    account: Account,
    said: str,
    over: StopReason | None,
    bound: float,
) -> MethodOutcome:
    """The outcome; `over` is why SCIP was asked to end, `bound` what is left of SCIP's."""
    if said not in ENDED:
        raise EngineError(f"SCIP ended with {said!r}; no answer was taken from it.")
    incumbent, mip = context.incumbent, context.problem.mip
    points = model.points()
    _offer(context, reporter, points)
    met = incumbent.x is not None and abs(mip.sign * incumbent.objective - bound) <= incumbent.allowed_gap
    notes = [f"SCIP says {said}; {account.built}"]
    reason = over or ENDED[said]
    if reason is StopReason.MEMORY:
        notes.insert(0, account.shortage("SCIP searched"))
    if points:
        raw = mip.objective(points[0])
        completed = "no point" if incumbent.x is None else f"{incumbent.objective:.8g}"
        notes.append(f"its own objective {raw:.8g}, verified {completed}")
    else:
        notes.append("it found no point")
    if said == "infeasible" and incumbent.x is not None:
        notes.append("its word is not taken: a verified point is known")
    if np.isfinite(bound) and not met:
        notes.append(
            f"its bound {mip.sign * bound:.8g} is not taken over: the verified objective does not meet it"
        )
    if met:
        incumbent.raise_bound(Bound(bound, "scip", Scope.WRITTEN, Support.ENGINE))
    errors = prediction_errors(context.problem, points[0]) if points else ()
    return MethodOutcome(
        reason,
        len(context.monitor.trace),
        "; ".join(notes),
        residual=max(error.primal for error in errors) if errors else None,
        written=account.settled(_end(said, reason, met), said),
    )


def abandoned(context: SolveContext, account: Account, over: StopReason | None) -> MethodOutcome:
    """The outcome where SCIP did not end when it was asked to: nothing can be read from it."""
    reason = over or StopReason.TIME
    notes = [f"SCIP did not end when it was asked to; {account.built}"]
    if reason is StopReason.MEMORY:
        notes.insert(0, account.shortage("SCIP searched"))
    written = account.settled(_end("", reason, met=False))
    return MethodOutcome(reason, len(context.monitor.trace), "; ".join(notes), written=written)


def _offer(context: SolveContext, reporter: Reporter, points: list[np.ndarray]) -> None:
    """SCIP's best point, which it may have found too late to report; and others if none was taken."""
    if points:
        mip = context.problem.mip.minimised()
        late = reporter.reported != mip.objective(points[0]) and context.budget.stopped is None
        take = reporter.point if late else reporter.offer
        take(points[0])
    for x in points[1:STORED] if context.incumbent.source != "scip" else ():
        reporter.offer(x)


def _end(said: str, reason: StopReason, met: bool) -> ModelEnd:
    """How it ended, for whoever compares."""
    if reason is StopReason.MEMORY:
        return ModelEnd.MEMORY
    if met and said in ("optimal", "gaplimit"):
        return ModelEnd.PROVED
    if said == "infeasible":
        return ModelEnd.INFEASIBLE
    return ModelEnd.TIME if reason is StopReason.TIME else ModelEnd.OTHER
