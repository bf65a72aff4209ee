"""Convergence rests on a reading of ours: what the paper's network step keeps and hands back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import dovetail as dt
from dovetail_study.paper import RHO, STEP
from dovetail_study.run import Record
from dovetail_study.statistics import constant, converged, count_of, known, text, where

READING = (
    f"a fresh Adam state in each network step, fixed steps of {STEP:g}, and the last iterate; of state and "
    "iterate the paper says neither"
)
TOLERANCE = dt.DualDecomposition.paper().tolerance


def floor(rows: Sequence[Record]) -> str:
    """How near u and x came at the end of any run of the paper's settings, beside the tolerance."""
    mine = where(rows, method="paper")
    residuals, flat = known(mine, "residual"), known(filter(constant, mine), "residual")
    if not residuals:
        return f"this rests on our reading of the Adam step ({READING})"
    constants = f", {text(min(flat), 2)} on a constant network" if flat else ""
    least = min(residuals)
    reaches = "not reached on any network" if least > TOLERANCE else "reached by some"
    return (
        f"this rests on our reading of the Adam step ({READING}): with it the least last residual of "
        f"{len(residuals)} runs is {text(least, 2)}{constants}, so the tolerance of {TOLERANCE:g} is "
        f"{reaches}"
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
        f"{RHO:g}); "
        f"{floor(mine)}.{tuned}"
    )


def span(values: Sequence[float]) -> str:
    """From the least to the most."""
    low, high = min(values, default=math.nan), max(values, default=math.nan)
    return f"{text(low, 2)} to {text(high, 2)}"
