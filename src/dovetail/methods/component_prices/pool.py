"""Columns: points of single components, each of which satisfies its networks and private rows.

All coupling rows have the form G z <= h (an equality is two of them).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import HAIR, Mip
from dovetail.decomposition.choice import Columns, SharedColumns
from dovetail.linearised.scaled_problem import WIDEST_AT_STAKE, ScaledProblem
from dovetail.structure.components import NOBODY, Components

ROOM = 1e-7
"""Private rows and bounds of a column may be violated by this much: a tenth of the check's tolerance, since
columns are added up."""
DIGITS = 9
"""Columns that agree in cost and scaled use to this number of decimals are equal: engines cannot distinguish
them."""
SMALLEST_SCALE = 1e-6
"""The scale of a row whose limit is 0 and whose columns hardly move: the check's tolerance."""


def shared_columns(host: Mip, components: Components, G: sp.csr_array) -> SharedColumns:
    """The host's columns that belong to no component, minimised."""
    mine = components.shared
    return SharedColumns(
        host.cost[mine], sp.csr_array(G[:, mine]), host.lower[mine], host.upper[mine], host.integer[mine]
    )


def _scale(G: sp.csr_array, limit: FloatArray, scaled: ScaledProblem) -> FloatArray:
    """(R,) the scale of each row: the size of its limit or, if that is 0, of its sums."""
    typical = np.sqrt(G.multiply(G) @ np.minimum(scaled.width, WIDEST_AT_STAKE) ** 2)
    if_zero = np.where(np.abs(limit) < HAIR, np.maximum(typical, SMALLEST_SCALE), 0.0)
    return np.asarray(np.maximum(np.abs(limit), if_zero))


class ColumnPool(Columns):
    """All columns found so far: the k-th is `points[k]`, a point of component `owner[k]`."""

    def __init__(self, scaled: ScaledProblem, components: Components) -> None:
        self.scaled, self.components, self.members = scaled, components, components.members
        self.G, limit = components.coupling(scaled.host)
        super().__init__(
            components.count,
            limit,
            _scale(self.G, limit, scaled),
            shared_columns(scaled.host, components, self.G),
            np.empty(0, dtype=np.int64),
            np.empty(0),
            np.empty((0, limit.size)),
        )
        entries = self.G.tocoo()
        owned = components.owner[entries.col] != NOBODY
        self._entry_row, self._entry_column = entries.row[owned], entries.col[owned]
        self._entry_value, self._entry_owner = entries.data[owned], components.owner[entries.col[owned]]
        self.points: list[FloatArray] = []
        self._known: dict[tuple[int, bytes], int] = {}

    def add(self, z: FloatArray) -> IntArray:
        """The valid components of a completed point as columns: (C,) their numbers, -1 where not valid."""
        cost, use = self.measure(z)
        numbers = np.full(self.components.count, -1)
        keys = self._keys(np.arange(self.components.count), cost, use)
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
            self.use = np.concatenate([self.use, use[fresh]])
        return numbers

    def _keys(self, owner: IntArray, cost: FloatArray, use: FloatArray) -> list[tuple[int, bytes]]:
        """The key of columns: component, cost and use."""
        table = np.round(np.concatenate([cost[:, None], use / self.scale], axis=1), DIGITS) + 0.0
        raw, width = table.tobytes(), table.itemsize * table.shape[1]
        return [(c, raw[k * width : (k + 1) * width]) for k, c in enumerate(owner.tolist())]

    def measure(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(C,) cost and (C, R) use of the coupling rows, component by component."""
        count, owner = self.components.count, self.components.owner
        owned = owner != NOBODY
        cost: FloatArray = np.bincount(
            owner[owned], (self.scaled.host.cost * z)[owned], minlength=count
        ).astype(np.float64)
        rows = self.limit.size
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
        """(C,) the cost of the cheapest column of each component at these prices of the coupling rows."""
        known = np.full(self.components.count, np.inf)
        np.minimum.at(known, self.owner, self.cost + self.use @ prices)
        return known

    def keep(self, which: IntArray) -> None:
        """Remove all other columns."""
        self.owner, self.cost, self.use = self.owner[which], self.cost[which], self.use[which]
        self.points = [self.points[k] for k in which]
        self._known = {key: k for k, key in enumerate(self._keys(self.owner, self.cost, self.use))}

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
