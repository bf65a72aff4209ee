"""How near the two blocks come to each other: what the claims about convergence rest on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import dovetail as dt
from dovetail_study.paper import RHO, STEP
from dovetail_study.run import Record
from dovetail_study.statistics import constant, converged, count_of, known, proved, text, where

TOLERANCE = dt.DualDecomposition.paper().tolerance


def floor(rows: Sequence[Record]) -> str:
    """How near u and x came at the end of any run of the paper's settings, beside the tolerance."""
    mine = where(rows, method="paper")
    live, flat = (known([row for row in mine if constant(row) is each], "residual") for each in (False, True))
    if not live:
        return "no run has a last residual"
    near = sum(residual <= TOLERANCE for residual in live)
    constants = (
        f", and in {sum(residual <= TOLERANCE for residual in flat)} of {len(flat)} on constant ones"
        if flat
        else ""
    )
    return (
        f"u and x ended within {TOLERANCE:g} of each other in {near} of {len(live)} runs on networks that "
        f"are not constant (least last residual {text(min(live), 2)}){constants}"
    )


def converging(rows: Sequence[Record]) -> str:
    """The same for every rule that asks for convergence, over all rows of the page."""
    every = where(rows, method="paper")
    mine = [row for row in every if row.get("rho", RHO) == RHO and row.get("step", STEP) == STEP]
    if not mine:
        return ""
    others = [row for row in every if row not in mine]
    tuned = (
        f" With another rho or step (sensitivity) {count_of(others, converged)} converge." if others else ""
    )
    return (
        f"Rules that ask a run to converge are met by {count_of(mine, converged)} runs of *paper* (rho "
        f"{RHO:g}), by {sum(map(proved, mine))} of these because their point was proved optimal; "
        f"{floor(mine)}.{tuned}"
    )


def span(values: Sequence[float]) -> str:
    """From the least to the most."""
    low, high = min(values, default=math.nan), max(values, default=math.nan)
    return f"{text(low, 2)} to {text(high, 2)}"
