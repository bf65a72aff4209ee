"""One column per component by greedy swaps: the best gain per resource while all rows hold."""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import HAIR
from dovetail.methods.column_generation.pool import Pool

SPARING = 1e-6
"""Relative to 1 + |use|: a column must use so much less to be taken at the same cost."""
SWAPS = 4
"""Per component, at most: each gains or spares something, so this is a guard and no rule."""
FOR_NOTHING = 1e12
"""Score of a gain that uses no resource: before any ratio of gain to use."""
IN_LP = 1e-6
"""Weights below this are the LP's rounding."""


def improve(pool: Pool, chosen: IntArray, room: FloatArray, prices: FloatArray) -> IntArray:
    """Swap columns of `chosen` (one per component) for cheaper ones as long as the rows hold.

    `room` (R,) is what the limits leave beside shared columns; `prices` (R,) weigh the rows. Of columns
    that cost the same the one that uses least is taken first, which makes room for others.
    """
    chosen = chosen.copy()
    use = pool.activity @ prices
    sparing = -SPARING * (1.0 + np.abs(use))
    for _ in range(SWAPS * chosen.size):
        total = pool.activity[chosen].sum(axis=0)
        current = chosen[pool.owner]
        gain = pool.cost[current] - pool.cost
        more = use - use[current]
        better = np.flatnonzero((gain > HAIR) | ((gain > -HAIR) & (more < sparing)))
        after = total + pool.activity[better] - pool.activity[current[better]]
        better = better[np.all(after <= room + HAIR, axis=1)]
        if better.size == 0:
            break
        # something for nothing first; then the most gain per resource
        gain, more = gain[better], more[better]
        score = np.where(more <= HAIR, FOR_NOTHING * (1.0 + gain) - more, gain / np.maximum(more, HAIR))
        best = int(better[np.argmax(score)])
        chosen[pool.owner[best]] = best
    return chosen


def least_use(pool: Pool, prices: FloatArray, count: int) -> IntArray | None:
    """The column of each component that uses least at these prices, or None while one has no column."""
    order, rank = pool.ranked(pool.activity @ prices)
    best = order[rank == 0]
    return best if best.size == count else None


def round_lp(pool: Pool, theta: FloatArray, base: IntArray, room: FloatArray, prices: FloatArray) -> IntArray:
    """The master LP's weights `theta` rounded: the largest put into `base` first, where rows still hold."""
    chosen = base.copy()
    total = pool.activity[chosen].sum(axis=0)
    for k in np.argsort(-theta, kind="stable"):
        if theta[k] < IN_LP:
            break
        c = pool.owner[k]
        after = total - pool.activity[chosen[c]] + pool.activity[k]
        if pool.cost[k] <= pool.cost[chosen[c]] + HAIR and np.all(after <= room + HAIR):
            chosen[c], total = k, after
    return improve(pool, chosen, room, prices)
