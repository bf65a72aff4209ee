"""The Lagrangian bound (`bounds/lagrangian.py`) of components that only coupling rows tie together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import UNIT, Box, propagate
from dovetail.bounds.lagrangian import lagrangian_constant, priced_cost
from dovetail.bounds.whole_objective import objective_step
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.methods.certified_prices.priced_components import Group, Priced, groups, priced
from dovetail.structure.boxes import class_limits
from dovetail.structure.components import Components, CouplingSides
from dovetail.structure.structure import Structure


@dataclass(frozen=True, eq=False)
class CoupledProblem:
    """A problem in minimisation form."""

    mip: Mip
    parts: Components
    box: Box
    groups: list[Group]
    sides: CouplingSides
    G: sp.csr_array
    lower: FloatArray
    """Of all columns, with what is known of classes."""
    upper: FloatArray
    size: FloatArray
    """(columns,) the largest absolute value of each."""
    step: float
    """Of the objective (see `objective_step`)."""

    @classmethod
    def of(cls, structure: Structure, device: str = "cpu", *, loose: bool = True) -> CoupledProblem | None:
        """None where some component is no single sample of a ReLU network over a closed-form set.

        `loose`: of all points that the check accepts, not only of those that meet rows and bounds exactly.
        """
        problem, parts = structure.proved, structure.proved_parts
        mip = structure.loose.mip if loose else problem.mip.minimised().as_checked()
        box = structure.loose_box if loose else propagate(mip)
        found = groups(structure, box, TOLERANCE if loose else 0.0, device)
        if found is None:
            return None
        lower, upper, integer = class_limits(problem, box.lower, box.upper)
        sides, step = parts.sides(mip), objective_step(mip, integer)
        matrix, size = sides.matrix(mip), _sizes(box, found)
        return cls(mip, parts, box, found, sides, matrix, lower, upper, size, step)

    def at(self, prices: FloatArray) -> PricedProblem:
        """With (R,) prices on the coupling rows; negative ones count as 0."""
        prices = np.where(np.isfinite(prices), np.maximum(prices, 0.0), 0.0)
        cost = priced_cost(self.mip, self.G, prices)
        parts = [priced(group, cost, self.lower, self.upper) for group in self.groups]
        constant = lagrangian_constant(
            self.mip, self.G, self.sides.limit, prices, self.parts.shared, self.box, self.size
        )
        return PricedProblem(self, parts, constant)

    def row_prices(self, prices: FloatArray) -> FloatArray:
        """(rows,) multipliers of all rows, for such prices: negative on sides above."""
        return self.sides.row_prices(prices, self.mip.n_rows)


def _sizes(box: Box, made: list[Group]) -> FloatArray:
    """(columns,) the largest absolute value of each; of outputs without bounds, what their networks say."""
    size = np.maximum(np.abs(box.lower), np.abs(box.upper))
    for group in made:
        outputs = np.array([part.block.outputs[part.sample] for part in group.parts])
        if group.block.classifies or np.all(np.isfinite(size[outputs])):
            continue
        reach = group.planes.ranges(group.domain).size(len(group.planes.graph.steps)).cpu().numpy()
        size[outputs] = np.minimum(size[outputs], reach + group.slack)
    return size


@dataclass(frozen=True, eq=False)
class PricedProblem:
    """All components at prices."""

    problem: CoupledProblem
    parts: list[Priced]
    constant: float

    def bound(self, values: list[FloatArray | None]) -> float:
        """Of the objective, given what searches proved of the asked targets of each part."""
        total = [
            one for part, value in zip(self.parts, values, strict=True) for one in part.bounds(value).tolist()
        ]
        terms = [self.constant, *total]
        if not np.all(np.isfinite(terms)):
            return -math.inf
        return math.fsum(terms) - 8.0 * UNIT * float(np.abs(terms).sum())
