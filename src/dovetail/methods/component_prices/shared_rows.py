"""The rows that components share, in the problem that bounds are proved of, and the bound by their prices.

    bound = offset - prices'h + shared columns at their least + sum of the components' least costs

holds for any prices (weak duality, `bounds/dual_value.py`); other modules prove the components' least
costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import UNIT, Box
from dovetail.bounds.dual_value import lagrangian_constant, next_step, objective_step, priced_cost
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import Mip
from dovetail.structure.boxes import class_limits
from dovetail.structure.components import Components, CouplingSides
from dovetail.structure.structure import Structure


@dataclass(frozen=True, eq=False)
class SharedRows:
    """The shared rows of a problem in minimisation form, relaxed by the check's tolerances."""

    mip: Mip
    parts: Components
    box: Box
    sides: CouplingSides
    G: sp.csr_array
    size: FloatArray
    """(columns,) the largest absolute value of each."""
    step: float
    """The step of the objective (see `objective_step`)."""

    @classmethod
    def of_structure(cls, structure: Structure) -> SharedRows:
        """The shared rows for all points that the check accepts."""
        mip, box, parts = structure.loose.mip, structure.loose_box, structure.proved_parts
        integer = class_limits(structure.proved, box.lower, box.upper)[2]
        sides, size = parts.sides(mip), np.maximum(np.abs(box.lower), np.abs(box.upper))
        return cls(mip, parts, box, sides, sides.matrix(mip), size, objective_step(mip, integer))

    def cost_at(self, prices: FloatArray) -> FloatArray:
        """(columns,) the cost of each column at (R,) prices."""
        return priced_cost(self.mip, self.G, prices)

    def constant(self, prices: FloatArray) -> float:
        """The part of the bound that does not depend on components."""
        shared = self.parts.shared
        return lagrangian_constant(self.mip, self.G, self.sides.limit, prices, shared, self.box, self.size)

    def row_prices(self, prices: FloatArray) -> FloatArray:
        """(rows,) multipliers of all rows, for such prices: negative on sides above."""
        return self.sides.row_prices(prices, self.mip.n_rows)

    def stepped(self, bound: float) -> float:
        """The bound rounded up to the next possible objective, if objectives have steps."""
        return next_step(self.mip, self.step, bound)


def total(constant: float, least: FloatArray) -> float:
    """The bound, rounded down; none if a component has none."""
    terms = [constant, *least.tolist()]
    if not np.all(np.isfinite(terms)):
        return -math.inf
    return math.fsum(terms) - 8.0 * UNIT * float(np.abs(terms).sum())
