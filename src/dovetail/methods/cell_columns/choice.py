"""One box for each component: the cheapest choice whose least uses are within the coupling rows.

    min  shared cost + cost'theta    s.t.  sum of theta over a component = 1,  G shared + uses'theta <= h

Every point of the problem is such a choice, since it lies in a box of each component and uses no less than
that box does: what the LP or the MIP proves is a bound of the problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from dovetail.branching.confirmed import EngineSettings
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import EngineError
from dovetail.core.mip import LARGEST, SMALLEST, Mip
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import Program
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus
from dovetail.run.failures import expendable
from dovetail.structure.components import Components

NOTHING = 1e-12
"""A price of the cost that is none: there are engines' roundings, and nothing to divide by."""


class PricedRows(NamedTuple):
    """What an LP says."""

    status: MipStatus
    """Of a failed engine, as of one without time: LIMIT."""
    prices: FloatArray | None = None
    """Of rows, never negative; None where the LP has no solution."""
    value: float = -np.inf


@dataclass(frozen=True, eq=False)
class BoxChoice:
    """The boxes of all components, as one program."""

    host: Mip
    """Minimised, as far out as the check accepts."""
    shared: IntArray
    G: sp.csr_array
    h: FloatArray
    owner: IntArray
    """(K,) the component of each box."""
    use: FloatArray
    """(K, 1 + R)."""

    @classmethod
    def of(
        cls, host: Mip, parts: Components, coupling: tuple[sp.csr_array, FloatArray], uses: list[FloatArray]
    ) -> BoxChoice:
        """Of the (boxes, 1 + R) least uses of each component."""
        owner = np.repeat(np.arange(len(uses)), [len(use) for use in uses])
        return cls(host, np.flatnonzero(parts.shared), *coupling, owner, np.concatenate(uses))

    @property
    def mip(self) -> Mip:
        """Shared columns, then the boxes."""
        host, count, size = self.host, int(self.owner.max()) + 1, self.owner.size
        used = self.use[:, 1:]
        small = np.abs(used) < SMALLEST  # entries that engines would drop: rather too little than too much
        used = np.where(small, np.where(used < 0.0, -SMALLEST, 0.0), used)
        convexity = sp.csr_array((np.ones(size), (self.owner, np.arange(size))), shape=(count, size))
        A = sp.block_array(
            [
                [sp.csr_array((count, self.shared.size)), convexity],
                [self.G[:, self.shared], sp.csr_array(used.T)],
            ],
            format="csr",
        )
        return Mip(
            np.concatenate([host.cost[self.shared], self.use[:, 0]]),
            sp.csr_array(A),
            np.concatenate([np.ones(count), np.full(self.h.size, -np.inf)]),
            np.concatenate([np.ones(count), self.h]),
            np.concatenate([host.lower[self.shared], np.zeros(size)]),
            np.concatenate([host.upper[self.shared], np.ones(size)]),
            np.concatenate([host.integer[self.shared], np.ones(size, dtype=bool)]),
            offset=host.offset,
        )

    def prices(self, budget: Budget, settings: EngineSettings) -> PricedRows:
        """Of the coupling rows, by the LP."""
        mip = self.mip
        return self._priced(mip, mip.n_rows - self.h.size, budget, settings)

    def load_prices(self, cost: float, budget: Budget, settings: EngineSettings) -> FloatArray | None:
        """(1 + R,) prices where no row is scarce: those of the choice up to `cost` that fills rows least.

            min t    s.t.  G shared + uses'theta <= h + t size of h,  shared cost + cost'theta <= cost

        What fills rows that still have room says where to look closer before they have none. The first price
        is that of the cost, 1; or 0 where what fills the rows does not hang on it.
        """
        mip, first = self.mip, self.mip.n_rows - self.h.size
        costs = np.where(np.abs(mip.cost) < SMALLEST, 0.0, mip.cost)
        if np.max(np.abs(costs), initial=0.0) > LARGEST:
            return None
        load = np.concatenate([np.zeros(first), -np.maximum(1.0, np.abs(self.h))])
        loaded = Mip(
            np.append(np.zeros(mip.n_columns), 1.0),
            sp.csr_array(sp.block_array([[mip.A, load[:, None]], [costs[None], None]], format="csr")),
            np.append(mip.row_lower, -np.inf),
            np.append(mip.row_upper, cost - mip.offset),
            np.append(mip.lower, -np.inf),
            np.append(mip.upper, np.inf),
        )
        found = self._priced(loaded, first, budget, settings)
        if found.prices is None:
            return None
        *rows, own = found.prices
        return np.array([0.0, *rows]) if own <= NOTHING else np.array([own, *rows]) / own

    @staticmethod
    def _priced(mip: Mip, first: int, budget: Budget, settings: EngineSettings) -> PricedRows:
        """Of the rows from `first` on."""
        with expendable("LP of a choice", EngineError):
            live = LoadedHighs(Program.of(mip.relaxed()), seed=settings.seed, threads=settings.threads)
            live.set_objective(mip.cost, mip.offset)
            status, _, value = live.run(budget, 0.0)
            if status is not MipStatus.OPTIMAL:
                return PricedRows(status)
            return PricedRows(status, np.maximum(0.0, -live.row_duals()[first:]), value)
        return PricedRows(MipStatus.LIMIT)

    def chosen(self, x: FloatArray) -> IntArray:
        """(components,) the box of each with most weight at a point of the program."""
        order = np.lexsort((-x[self.shared.size :], self.owner))
        return np.asarray(order[np.searchsorted(self.owner[order], np.arange(int(self.owner.max()) + 1))])
