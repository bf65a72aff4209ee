"""Cells of a box that hold nothing better than the best point, by the reduced costs of its LP.

The multipliers that prove a box's bound prove more for the parts of it that are far from where its LP puts an
input or an output: bound + |reduced cost| times the distance. Cells and outputs for which that is beyond the
best point are left out. Then fewer leaves can be reached in the box's halves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.methods.cell_branching.node import Node
from dovetail.structure.trees import InputCells

SAFE = 1e-9
"""Relative: what is left for the rounding of reduced costs and products, a million times as much as they are
off by."""


class Prices(NamedTuple):
    """What an LP says of all columns (columns,)."""

    reduced: FloatArray
    noise: FloatArray
    """The sizes of what reduced costs are the sums of."""
    room: float
    """How much more than the bound may be paid."""

    def limits(
        self, columns: IntArray, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Between which some columns stay for that, where the LP has them between these bounds."""
        price = self.reduced[columns]
        sure = np.abs(price) - SAFE * self.noise[columns]
        far = np.full(columns.size, np.inf)
        np.divide(self.room, sure, out=far, where=sure > 0.0)
        with np.errstate(invalid="ignore"):  # no end, times or less something
            far = far * (1.0 + SAFE) + SAFE * (1.0 + np.abs(lower) + np.abs(upper))
            least = np.where((price < 0.0) & np.isfinite(upper), upper - far, -np.inf)
            most = np.where((price > 0.0) & np.isfinite(lower), lower + far, np.inf)
        return least, most


def tighten(cells: InputCells, outputs: IntArray, node: Node, prices: Prices) -> bool:
    """Leave out cells and outputs for which more has to be paid, in place; whether cells were.

    Of outputs `outputs` alone: those that are sums, not classes.
    """
    if not np.isfinite(prices.room) or prices.room < 0.0:
        return False
    own, before = cells.columns, (node.low, node.high)
    lower = np.maximum(node.lower[own], cells.low[cells.flat(node.low)])
    upper = np.minimum(node.upper[own], cells.high[cells.flat(node.high)])
    least, most = prices.limits(own, lower, upper)
    node.low = np.maximum(node.low, cells.first_up_to(least))
    node.high = np.minimum(node.high, cells.last_from(most))
    least, most = prices.limits(outputs, node.lower[outputs], node.upper[outputs])
    node.lower[outputs] = np.maximum(node.lower[outputs], least)
    node.upper[outputs] = np.minimum(node.upper[outputs], most)
    return bool(np.any(node.low > before[0]) or np.any(node.high < before[1]))
