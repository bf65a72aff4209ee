"""Room for rounding: a problem whose limits are moved in by what its predictors' rounding may do to them.

A point of it satisfies the rows of the original wherever its samples are evaluated. It is a place to look for
points and never to prove anything: bounds come from the original.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.core.mip import TOLERANCE
from dovetail.core.problem import Problem
from dovetail.run.network_step import ends_in_probability

AHEAD = 1.5
"""How much of the rounding to leave room for: a search puts the float64 copy on the row, and the network's
own value is off that by up to half of it."""


def cleared(problem: Problem, change: FloatArray, lead: FloatArray) -> Problem:
    """Limits moved in by what a `change` of the outputs does to them; classes decided by a `lead` or more.

    Limits that lie closer together than twice that move to their middle: an equality stays as it is.
    """
    mip = problem.mip
    change = AHEAD * change
    in_rows = abs(mip.A) @ change
    row_lower, row_upper = moved_in(mip.row_lower, mip.row_upper, in_rows, in_rows)
    lower, upper = moved_in(mip.lower, mip.upper, change, change)
    host = replace(mip, row_lower=row_lower, row_upper=row_upper, lower=lower, upper=upper)
    return problem.derived(host, decided(problem, lead))


def decided(problem: Problem, lead: FloatArray) -> tuple[Block, ...]:
    """The blocks, whose classes a search decides by a `lead` or more."""
    return tuple(
        replace(block, epsilon=max(block.epsilon, AHEAD * _in_logits(block, np.max(lead[block.outputs]))))
        if block.classifies
        else block
        for block in problem.blocks
    )


def has_room(problem: Problem, change: FloatArray) -> bool:
    """Whether a point within these limits can hold at any `change`; an equality has but its tolerance."""
    mip = problem.mip
    rows = mip.row_upper - mip.row_lower >= 2.0 * (abs(mip.A) @ change - TOLERANCE)
    return bool(np.all(rows) and np.all(mip.upper - mip.lower >= 2.0 * (change - TOLERANCE)))


def moved_in(
    lower: FloatArray, upper: FloatArray, up: FloatArray, down: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Lower limits moved up and upper ones down, not beyond their middle; by no amount that is no number."""
    half = np.maximum(0.0, 0.5 * (upper - lower))
    up, down = (np.where(np.isfinite(by), by, 0.0) for by in (up, down))
    return lower + np.minimum(up, half), upper - np.minimum(down, half)


def _in_logits(block: Block, lead: float) -> float:
    """A distance from the threshold as the search measures it: in logits, where the network has them."""
    if not ends_in_probability(block):
        return lead
    return lead / (block.threshold * (1.0 - block.threshold))
