"""Where the prices of a proof come from: a master LP over columns, and pricing that adds to them."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.methods.component_prices.column_generation import ColumnGenerationRun, column_run
from dovetail.methods.component_prices.kinds import component_kinds
from dovetail.run.context import SolveContext

MOST_POINTS = 200
"""Of those that were searched before, evenly spread, as first columns: descents leave thousands, which take
longer to look at than the pricing that makes better ones (wine)."""
PRICING_SHARE, PRICING_ROUNDS = 0.05, 40
"""Descents for columns before a proof: of the time left, and at most so many. They take a hundredth of what a
proof takes, and every column saves some of those."""


class PriceSource(Protocol):
    """Columns of all components, and prices at which they are in balance."""

    def prices(self) -> FloatArray | None:
        """(R,) on the coupling rows, upper sides first, then lower ones; None where there are none."""
        ...

    def known_costs(self, prices: FloatArray) -> FloatArray:
        """(C,) what the cheapest column of each component costs at these prices."""
        ...

    def add(self, z: FloatArray) -> int:
        """A point's components as columns, which a proof has met; how many are new."""
        ...


class ColumnPrices:
    """Of a run of column generation. Where components are alike, a column of one is a column of all."""

    def __init__(self, context: SolveContext, run: ColumnGenerationRun) -> None:
        self._context, self._run = context, run
        self._prices = np.zeros(run.coupling.h.size)
        self._kinds = context.once(component_kinds)
        if run.pool.size == 0:
            points = context.archive.points
            for z in (*points[:: 1 + len(points) // MOST_POINTS], *run.first_points()):
                self._keep(z)

    def prices(self) -> FloatArray | None:
        """Of the master LP, after some more pricing."""
        budget = self._context.budget
        self._run.price(budget.part(PRICING_SHARE * budget.left), PRICING_ROUNDS, self._keep)
        found = self._run.master_prices(budget)
        self._prices = self._prices if found is None else found
        return found

    def known_costs(self, prices: FloatArray) -> FloatArray:
        """Of the pool."""
        return self._run.pool.least_costs(prices)

    def add(self, z: FloatArray) -> int:
        """To the pool, and what a descent makes of it: a proof has rows as loose as the check, the pool has
        not."""
        before, budget = self._run.pool.size, self._context.budget
        self._keep(z)
        self._run.descend(z, self._prices, budget.part(PRICING_SHARE * budget.left), self._keep)
        return self._run.pool.size - before

    def _keep(self, z: FloatArray) -> None:
        pool, z = self._run.pool, self._run.completed(z)
        pool.add(z)
        for turn in range(1, max((kind.members for kind in self._kinds), default=1)):
            turned = z.copy()
            for kind in self._kinds:
                turned[kind.columns] = z[np.roll(kind.columns, turn, axis=0)]
            pool.add(turned)


def column_prices(context: SolveContext) -> PriceSource:
    """Of the last run of column generation, or of a new one."""
    return ColumnPrices(context, context.once(column_run))
