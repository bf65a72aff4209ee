"""The Lagrangian bound (`bounds/lagrangian.py`) of components that only coupling rows tie together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.analysis.components import Components, components
from dovetail.analysis.host import class_limits
from dovetail.bounds.box import UNIT, Box, propagate
from dovetail.bounds.lagrangian import lagrangian_constant, priced_cost
from dovetail.bounds.whole_objective import objective_step
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.problem import Problem
from dovetail.methods.certified_prices.priced_components import Group, Priced, groups, priced


@dataclass(frozen=True, eq=False)
class CoupledProblem:
    """A problem in minimisation form."""

    mip: Mip
    parts: Components
    box: Box
    groups: list[Group]
    G: sp.csr_array
    h: FloatArray
    lower: FloatArray
    """Of all columns, with what is known of classes."""
    upper: FloatArray
    size: FloatArray
    """(columns,) the largest absolute value of each."""
    step: float
    """Of the objective (see `objective_step`)."""

    @classmethod
    def of(cls, problem: Problem, device: str = "cpu", *, loose: bool = True) -> CoupledProblem | None:
        """None where some component is no single sample of a ReLU network over a closed-form set.

        `loose`: of all points that the check accepts, not only of those that meet rows and bounds exactly.
        """
        mip = problem.mip.minimised()
        mip = mip.loosened() if loose else mip.as_checked()
        parts, box = components(problem), propagate(mip)
        found = groups(problem, parts, box, TOLERANCE if loose else 0.0, device)
        if found is None:
            return None
        lower, upper, integer = class_limits(problem, box.lower, box.upper)
        G, h = parts.coupling(mip)
        step = objective_step(mip, integer)
        return cls(mip, parts, box, found, G, h, lower, upper, _sizes(box, found), step)

    def at(self, prices: FloatArray) -> PricedProblem:
        """With (R,) prices on the coupling rows; negative ones count as 0."""
        prices = np.where(np.isfinite(prices), np.maximum(prices, 0.0), 0.0)
        cost = priced_cost(self.mip, self.G, prices)
        parts = [priced(group, cost, self.lower, self.upper) for group in self.groups]
        constant = lagrangian_constant(
            self.mip, self.G, self.h, prices, self.parts.shared, self.box, self.size
        )
        return PricedProblem(self, parts, constant)

    def row_prices(self, prices: FloatArray) -> FloatArray:
        """(rows,) multipliers of all rows, for such prices: negative on sides above."""
        above, below = self.parts.coupling_sides(self.mip)
        found = np.zeros(self.mip.n_rows)
        found[above] -= prices[: above.size]
        found[below] += prices[above.size :]
        return found

    def side_prices(self, row_prices: FloatArray) -> FloatArray:
        """(R,) the other way round."""
        above, below = self.parts.coupling_sides(self.mip)
        return np.concatenate([np.maximum(-row_prices[above], 0.0), np.maximum(row_prices[below], 0.0)])


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
