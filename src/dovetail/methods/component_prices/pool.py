"""Columns: points of single components, each true to its networks and to its private rows.

Coupling rows are all read as G z <= h (an equality as two of them).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import HAIR, SMALLEST, Mip
from dovetail.linearised.merit import WIDEST
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.structure.components import NOBODY, Components

ROOM = 1e-7
"""Private rows and bounds of a column may be missed by this much: a tenth of what the check accepts, since
columns are added up."""
DIGITS = 9
"""Columns that agree in cost and scaled use to so many decimals are one: engines tell no more apart."""
SMALLEST_SCALE = 1e-6
"""Of a row whose limit is 0 and whose columns hardly move: the check's tolerance."""


@dataclass(frozen=True, eq=False)
class CouplingLimits:
    """The rows that tie components together: G z <= h."""

    G: sp.csr_array
    h: FloatArray
    scale: FloatArray
    """(R,) what a row is measured in: the size of its limit, or where that is 0 of what it adds up."""

    @classmethod
    def of(cls, scaled: ScaledProblem, components: Components) -> CouplingLimits:
        """Upper and lower sides of the rows that are nobody's."""
        G, h = components.coupling(scaled.host)
        typical = np.sqrt(G.multiply(G) @ np.minimum(scaled.width, WIDEST) ** 2)
        if_zero = np.where(np.abs(h) < HAIR, np.maximum(typical, SMALLEST_SCALE), 0.0)
        return cls(G, h, np.maximum(np.abs(h), if_zero))


@dataclass(eq=False)
class Columns:
    """What some points of components cost, and what they use of the coupling rows; or at least, of boxes."""

    host: Mip
    """Minimised."""
    components: Components
    coupling: CouplingLimits
    owner: IntArray
    """(K,) the component of each."""
    cost: FloatArray
    activity: FloatArray
    """(K, R) what each adds to the coupling rows."""

    @property
    def size(self) -> int:
        """How many columns there are."""
        return int(self.owner.size)

    @cached_property
    def shared(self) -> IntArray:
        """The host's columns that belong to no component."""
        return np.flatnonzero(self.components.shared)

    def ranked(self, key: FloatArray) -> tuple[IntArray, IntArray]:
        """All columns, component by component and by `key` within each; and each one's rank in its own."""
        order = np.lexsort((key, self.owner))
        owner = self.owner[order]
        first = np.searchsorted(owner, np.arange(self.components.count))
        return order, np.arange(order.size) - first[owner]

    def as_mip(self, which: IntArray | None = None) -> Mip:
        """One column for each component, and the shared columns of the host, which come first.

            min  shared cost + cost'theta    s.t.  sum of theta over a component = 1,  G z <= h

        Where every point of the problem is in one of each component's boxes, the bound of this program is one
        of the problem.
        """
        which = np.arange(self.size) if which is None else which
        host, shared, coupling = self.host, self.shared, self.coupling
        count, rows = self.components.count, coupling.h.size
        used = self.activity[which]
        small = np.abs(used) < SMALLEST  # entries that engines would drop: rather too little than too much
        used = np.where(small, np.where(used < 0.0, -SMALLEST, 0.0), used)
        place = self.owner[which], np.arange(which.size)
        convexity = sp.csr_array((np.ones(which.size), place), shape=(count, which.size))
        A = sp.block_array(
            [
                [sp.csr_array((count, shared.size)), convexity],
                [coupling.G[:, shared], sp.csr_array(used.T)],
            ],
            format="csr",
        )
        return Mip(
            np.concatenate([host.cost[shared], self.cost[which]]),
            sp.csr_array(A),
            np.concatenate([np.ones(count), np.full(rows, -np.inf)]),
            np.concatenate([np.ones(count), coupling.h]),
            np.concatenate([host.lower[shared], np.zeros(which.size)]),
            np.concatenate([host.upper[shared], np.ones(which.size)]),
            np.concatenate([host.integer[shared], np.ones(which.size, dtype=bool)]),
            offset=host.offset,
        )


class ColumnPool(Columns):
    """All columns found so far: the k-th is `points[k]`, a point of component `owner[k]`."""

    def __init__(self, scaled: ScaledProblem, components: Components, coupling: CouplingLimits) -> None:
        self.scaled, self.members = scaled, components.members
        super().__init__(
            scaled.host,
            components,
            coupling,
            np.empty(0, dtype=np.int64),
            np.empty(0),
            np.empty((0, coupling.h.size)),
        )
        entries = coupling.G.tocoo()
        owned = components.owner[entries.col] != NOBODY
        self._entry_row, self._entry_column = entries.row[owned], entries.col[owned]
        self._entry_value, self._entry_owner = entries.data[owned], components.owner[entries.col[owned]]
        self.points: list[FloatArray] = []
        self._known: dict[tuple[int, bytes], int] = {}

    def add(self, z: FloatArray) -> IntArray:
        """The valid components of a completed point as columns: (C,) their numbers, -1 where not valid."""
        cost, activity = self.measure(z)
        numbers = np.full(self.components.count, -1)
        keys = self._keys(np.arange(self.components.count), cost, activity)
        fresh: list[int] = []
        valid, before = np.flatnonzero(self._valid(z)).tolist(), self.size
        for c in valid:
            number = self._known.setdefault(keys[c], before + len(fresh))
            if number == before + len(fresh):
                fresh.append(c)
                self.points.append(z[self.members[c]])
            numbers[c] = number
        if fresh:
            self.owner = np.concatenate([self.owner, fresh])
            self.cost = np.concatenate([self.cost, cost[fresh]])
            self.activity = np.concatenate([self.activity, activity[fresh]])
        return numbers

    def _keys(self, owner: IntArray, cost: FloatArray, activity: FloatArray) -> list[tuple[int, bytes]]:
        """What tells columns apart: whose they are, what they cost, what they use."""
        table = (
            np.round(np.concatenate([cost[:, None], activity / self.coupling.scale], axis=1), DIGITS) + 0.0
        )
        raw, width = table.tobytes(), table.itemsize * table.shape[1]
        return [(c, raw[k * width : (k + 1) * width]) for k, c in enumerate(owner.tolist())]

    def measure(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(C,) cost and (C, R) use of the coupling rows, component by component."""
        count, owner = self.components.count, self.components.owner
        owned = owner != NOBODY
        cost: FloatArray = np.bincount(
            owner[owned], (self.scaled.host.cost * z)[owned], minlength=count
        ).astype(np.float64)
        rows = self.coupling.h.size
        used: FloatArray = np.bincount(
            self._entry_owner * rows + self._entry_row,
            self._entry_value * z[self._entry_column],
            minlength=count * rows,
        ).astype(np.float64)
        return cost, used.reshape(count, rows)

    def _valid(self, z: FloatArray) -> BoolArray:
        host, components = self.scaled.host, self.components
        valid = np.ones(components.count, dtype=bool)
        wrong = host.bound_violation(z) > ROOM
        wrong |= host.integer & (np.abs(z - np.round(z)) > ROOM)
        valid[components.owner[wrong & ~components.shared]] = False
        valid[components.row_owner[(host.row_violation(z) > ROOM) & components.private_rows]] = False
        return valid

    def least_costs(self, prices: FloatArray) -> FloatArray:
        """(C,) what the cheapest column of each component costs at these prices of the coupling rows."""
        known = np.full(self.components.count, np.inf)
        np.minimum.at(known, self.owner, self.cost + self.activity @ prices)
        return known

    def keep(self, which: IntArray) -> None:
        """Forget all other columns."""
        self.owner, self.cost, self.activity = self.owner[which], self.cost[which], self.activity[which]
        self.points = [self.points[k] for k in which]
        self._known = {key: k for k, key in enumerate(self._keys(self.owner, self.cost, self.activity))}

    def point(self, chosen: IntArray, z: FloatArray) -> FloatArray:
        """`z` with the components of the chosen columns put in."""
        z = z.copy()
        for k in chosen:
            z[self.members[self.owner[k]]] = self.points[k]
        return z

    def convex_combination(self, weights: FloatArray, z: FloatArray) -> FloatArray:
        """`z` with each component the combination of its columns by `weights`, which sum to 1 in each."""
        z = z.copy()
        used = np.flatnonzero(weights > HAIR)
        for c in np.unique(self.owner[used]):
            z[self.members[c]] = 0.0
        for k in used:
            z[self.members[self.owner[k]]] += weights[k] * self.points[k]
        return z
