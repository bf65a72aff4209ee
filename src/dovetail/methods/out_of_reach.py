"""Bounds and rows that no output of the predictors can satisfy: infeasible without a search."""

from __future__ import annotations

from dovetail.run.bound import BoundFaultError
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.structure.structure import structure_of


def out_of_reach(context: SolveContext) -> MethodOutcome | None:
    """The end of a solve that the ranges of predictors make infeasible; None otherwise."""
    found = context.once(structure_of).reached
    if found is None or not found.why_empty:
        return None
    if context.incumbent.x is not None:  # the point was checked: the proof is at fault
        raise BoundFaultError(f"a verified solution contradicts infeasibility {found.why_empty}")
    return MethodOutcome(StopReason.PROVED, 0, found.why_empty, infeasible=True)
