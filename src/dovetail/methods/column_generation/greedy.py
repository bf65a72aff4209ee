"""Joining columns by hand: the best gain per resource while all rows hold."""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.methods.column_generation.pool import Pool

HAIR = 1e-9


def improve(pool: Pool, chosen: IntArray, room: FloatArray, prices: FloatArray) -> IntArray:
    """Swap columns of `chosen` (one per component) for cheaper ones as long as the rows hold.

    `room` (R,) is what the limits leave beside shared columns; `prices` (R,) weigh the rows. Of columns
    that cost the same the one that uses least is taken first, which makes room for others.
    """
    chosen = chosen.copy()
    use = pool.activity @ prices
    sparing = -1e-6 * (1.0 + np.abs(use))
    for _ in range(4 * chosen.size):
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
        score = np.where(more <= HAIR, 1e12 * (1.0 + gain) - more, gain / np.maximum(more, HAIR))
        best = int(better[np.argmax(score)])
        chosen[pool.owner[best]] = best
    return chosen


def least_use(pool: Pool, prices: FloatArray, count: int) -> IntArray | None:
    """The column of each component that uses least at these prices, or None while one has no column."""
    order, rank = pool.ranked(pool.activity @ prices)
    best = order[rank == 0]
    return best if best.size == count else None


def favourites(
    pool: Pool, theta: FloatArray, base: IntArray, room: FloatArray, prices: FloatArray
) -> IntArray:
    """`base` with the columns that the blend likes best put in, in that order, where rows still hold."""
    chosen = base.copy()
    total = pool.activity[chosen].sum(axis=0)
    for k in np.argsort(-theta, kind="stable"):
        if theta[k] < 1e-6:
            break
        c = pool.owner[k]
        after = total - pool.activity[chosen[c]] + pool.activity[k]
        if pool.cost[k] <= pool.cost[chosen[c]] + HAIR and np.all(after <= room + HAIR):
            chosen[c], total = k, after
    return improve(pool, chosen, room, prices)
