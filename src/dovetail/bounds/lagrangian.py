"""What a Lagrangian bound has beside the components' minima: the prices' own side, and all rounding of it.

    cost'z  >=  offset - prices'h + shared columns at their least + sum over components c of
                min (cost + G'prices)'z_c

for rows G z <= h and any prices >= 0 (weak duality). The sum over components is whoever's who proves it.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import UNIT, Box
from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.mip import Mip


def priced_cost(mip: Mip, G: sp.csr_array, prices: FloatArray) -> FloatArray:
    """(columns,) what each column costs at these prices."""
    return np.asarray(mip.cost + G.T @ prices)


def lagrangian_constant(
    mip: Mip,
    G: sp.csr_array,
    h: FloatArray,
    prices: FloatArray,
    shared: BoolArray,
    box: Box,
    size: FloatArray,
) -> float:
    """The same whatever components do; minus infinity where a shared column that counts has no bound.

    `mip` is in minimisation form, `box` holds all its points, `size` is the largest absolute value of each
    column there. What the rounding of priced costs can make of the components' part is taken off, too.
    """
    cost = priced_cost(mip, G, prices)
    counts = shared & (cost != 0.0)
    side = np.where(cost > 0.0, box.lower, box.upper)[counts]
    terms = [mip.offset, *(-prices * h).tolist(), *(cost[counts] * side).tolist()]
    if not np.all(np.isfinite(terms)):
        return -math.inf
    priced = abs(G).T @ prices
    moved = priced > 0.0  # all others cost exactly what they cost
    entries = np.diff(sp.csc_array(G).indptr)[moved] + 4
    slip = 2.0 * UNIT * float((entries * (np.abs(mip.cost) + priced)[moved]) @ size[moved])
    return math.fsum(terms) - slip - 4.0 * UNIT * float(np.abs(terms).sum())
