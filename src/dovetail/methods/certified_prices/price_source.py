"""Where prices come from that are worth a proof, and where points go that a proof meets."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.methods.column_generation.master import Master
from dovetail.methods.column_generation.method import ColumnGenerationRun, column_run
from dovetail.run.context import SolveContext


class PriceSource(Protocol):
    """Columns of all components, and prices at which they are in balance."""

    def prices(self) -> FloatArray | None:
        """(R,) on the coupling rows, upper sides first, then lower ones; None where there are none."""
        ...

    def known_costs(self, prices: FloatArray) -> FloatArray:
        """(C,) what the cheapest column of each component costs at these prices."""
        ...

    def add(self, z: FloatArray) -> int:
        """A point's components as columns; how many are new."""
        ...


class ColumnPrices:
    """Of a run of column generation: by its master LP."""

    def __init__(self, context: SolveContext, run: ColumnGenerationRun) -> None:
        self._context, self._run = context, run
        self._master = Master(context, run.pool)

    def prices(self) -> FloatArray | None:
        """Of the master LP over the columns found so far."""
        master = self._master.solve(self._context.budget)
        return None if master is None else master.prices.rows

    def known_costs(self, prices: FloatArray) -> FloatArray:
        """Of the pool."""
        pool = self._run.pool
        known = np.full(pool.components.count, np.inf)
        np.minimum.at(known, pool.owner, pool.cost + pool.activity @ prices)
        return known

    def add(self, z: FloatArray) -> int:
        """To the pool."""
        before = self._run.pool.size
        self._run.add(z)
        return self._run.pool.size - before


def column_prices(context: SolveContext) -> PriceSource | None:
    """Of the last run of column generation, or of a short one."""
    return ColumnPrices(context, context.once(column_run))
