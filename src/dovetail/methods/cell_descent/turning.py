"""A class turned by several moves: where no single input changes it, the scores still say which ones help.

    repeat: of all moves of the sample's inputs the one that brings the score nearest for its way
            until the class turns; the LP then says what that is worth

The way of a move is how far its input goes, in widths of its box, and what the LP's prices charge for it.
"""

from __future__ import annotations

import numpy as np

from dovetail.analysis.tree_problem import TreeProblem, TreeSample
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.methods.cell_descent.cell_program import CellPoint
from dovetail.methods.cell_descent.profile import Profile

MOST_MOVES = 6
"""Of one sample: classes that take more are turned by others, or not at all."""
NO_WAY = 1e-3
"""Widths: added to every way, so that moves that cost nothing are compared by what they bring."""


def turned(
    trees: TreeProblem, sample: TreeSample, profile: Profile, at: CellPoint
) -> tuple[float, IntArray] | None:
    """The way and the cells in which a sample has the class that its prices ask for; None: it has, or has not
    been turned."""
    wanted = _wanted(sample, at)
    if wanted is None:
        return None
    ways, cells, way = _ways(trees, profile, at), at.cells.copy(), 0.0
    lead = -np.inf
    for _ in range(MOST_MOVES):
        leads = _leads(sample, sample.boxes.ensemble.linked(profile.scores(cells)), wanted)
        if lead == -np.inf:
            lead = float(_leads(sample, sample.boxes.ensemble.linked(sample.boxes.scores(cells)), wanted))
        gain = leads - lead
        worth = np.where(leads >= 0.0, 1.0 / ways, -np.inf)
        if not np.any(leads >= 0.0):
            worth = np.where(gain > 0.0, gain / ways, -np.inf)
        if worth.size == 0 or not np.isfinite(worth.max()):
            return None
        k = int(np.argmax(worth))
        place = int(np.searchsorted(trees.cells.first, profile.flat[k], side="right")) - 1
        cells[place] = profile.flat[k] - trees.cells.first[place]
        way, lead = way + float(ways[k]), float(leads[k])
        if lead >= 0.0:
            return way, cells
    return None


def _wanted(sample: TreeSample, at: CellPoint) -> int | None:
    """The output that should be 1 (-1: the only one should be 0); None where it is as wanted."""
    price, now = at.reduced[sample.outputs], at.outputs[sample.outputs]
    if now.size == 1:
        gains = price[0] * (1.0 - 2.0 * now[0]) < 0.0
        return (0 if now[0] < 0.5 else -1) if gains else None
    best = int(np.argmin(price))
    return best if price[best] < price[int(np.argmax(now))] else None


def _leads(sample: TreeSample, values: FloatArray, wanted: int) -> FloatArray:
    """(...,) by how much values (..., outputs) have the wanted class; below 0 they have not."""
    if values.shape[-1] == 1:
        ahead = values[..., 0] - sample.block.threshold
        return np.asarray(ahead if wanted == 0 else -ahead - np.finfo(float).tiny)
    others = np.delete(values, wanted, axis=-1).max(axis=-1)
    return np.asarray(values[..., wanted] - others)


def _ways(trees: TreeProblem, profile: Profile, at: CellPoint) -> FloatArray:
    """(moves,) how far each goes from the point, and what the prices charge for that."""
    cells, host = trees.cells, trees.host
    column = cells.columns[np.searchsorted(cells.first, profile.flat, side="right") - 1]
    x, reduced = at.x[column], at.reduced[column]
    up = np.maximum(cells.inner[profile.flat] - x, 0.0)
    down = np.maximum(x - cells.high[profile.flat], 0.0)
    width = np.maximum(host.upper[column] - host.lower[column], np.finfo(float).tiny)
    scale = max(1.0, float(np.max(np.abs(at.reduced), initial=0.0)))
    charged = np.maximum(reduced, 0.0) * up + np.maximum(-reduced, 0.0) * down
    return np.asarray(NO_WAY + (up + down) / width + charged / scale)
