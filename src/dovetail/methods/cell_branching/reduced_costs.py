"""Cells of a box that hold nothing better than the best point, by the reduced costs of its LP.

The multipliers that prove a box's bound prove more for the parts of it that are far from where its LP puts an
input: bound + |reduced cost| times the distance. Cells for which that is beyond the best point are left out.
Then fewer leaves can be reached in the box's halves.
"""

from __future__ import annotations

import numpy as np

from dovetail.analysis.input_cells import InputCells
from dovetail.core.arrays import FloatArray
from dovetail.methods.cell_branching.node import Node

SAFE = 1e-9
"""Relative: what is left for the rounding of reduced costs and products, a million times as much as they are
off by."""


def tighten_cells(cells: InputCells, node: Node, reduced: FloatArray, noise: FloatArray, room: float) -> bool:
    """Leave out cells in which every point costs more than the bound of the box and `room`; whether any was.

    `noise` (columns,) are the sizes of what reduced costs are the sums of.
    """
    if not np.isfinite(room) or room < 0.0 or cells.columns.size == 0:
        return False
    own = cells.columns
    lower = np.maximum(node.lower[own], cells.low[cells.flat(node.low)])
    upper = np.minimum(node.upper[own], cells.high[cells.flat(node.high)])
    price = reduced[own]
    sure = np.abs(price) - SAFE * noise[own]
    far = np.full(own.size, np.inf)
    np.divide(room, sure, out=far, where=sure > 0.0)
    far = far * (1.0 + SAFE) + SAFE * (1.0 + np.abs(lower) + np.abs(upper))
    low, high = node.low, node.high
    node.high = np.minimum(high, cells.last_from(np.where(price > 0.0, lower + far, np.inf)))
    node.low = np.maximum(low, cells.first_up_to(np.where(price < 0.0, upper - far, -np.inf)))
    return bool(np.any(node.high < high) or np.any(node.low > low))
