"""Indicator constraints as one-sided rows over all columns: two of them where a row has two sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import UNIT, Box
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.errors import ModelError
from dovetail.core.indicator import Indicator
from dovetail.core.mip import INFINITY, Mip


@dataclass(frozen=True, eq=False)
class OneSided:
    """Rows C x <= limit, each of which holds where its binary is `active`."""

    C: sp.csr_array
    limit: FloatArray
    binary: IntArray
    active: FloatArray
    always: BoolArray
    """The binary has its active value at every point: the row needs no M."""
    indicator: IntArray
    """Which indicator each row belongs to."""

    @classmethod
    def of(cls, mip: Mip, indicators: Sequence[Indicator], box: Box) -> OneSided:
        """The rows that say something; a `ModelError` where no binary switches them."""
        binary = np.array([indicator.binary for indicator in indicators], dtype=np.int64)
        active = np.array([indicator.active for indicator in indicators], dtype=np.float64)
        _require_binaries(mip, indicators, binary)
        C = _coefficients(mip, indicators)
        upper = np.array([indicator.upper for indicator in indicators], dtype=np.float64)
        lower = np.array([indicator.lower for indicator in indicators], dtype=np.float64)
        lower[lower <= -INFINITY], upper[upper >= INFINITY] = -np.inf, np.inf
        can_be_0, can_be_1 = box.lower[binary] <= 0.0, box.upper[binary] >= 1.0
        always = np.where(active == 1.0, ~can_be_0, ~can_be_1)
        never = np.where(active == 1.0, ~can_be_1, ~can_be_0)
        both = cls(
            sp.vstack([C, -C], format="csr"),
            np.concatenate([upper, -lower]),
            np.tile(binary, 2),
            np.tile(active, 2),
            np.tile(always, 2),
            np.tile(np.arange(len(indicators)), 2),
        )
        return both.some(np.flatnonzero((both.limit < np.inf) & ~np.tile(never, 2)))

    def some(self, which: IntArray | BoolArray) -> OneSided:
        """Those asked for."""
        return OneSided(
            self.C[which],
            self.limit[which],
            self.binary[which],
            self.active[which],
            self.always[which],
            self.indicator[which],
        )

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.limit.size)

    def most(self, box: Box) -> FloatArray:
        """No point of the box has a larger C x while the row is switched off: rounding is added."""
        own = np.repeat(self.binary, np.diff(self.C.indptr)) == self.C.indices
        row = np.repeat(np.arange(self.count), np.diff(self.C.indptr))
        best = np.where(self.C.data > 0, box.upper[self.C.indices], box.lower[self.C.indices])
        best[own] = 1.0 - self.active[row[own]]
        parts = self.C.data * best
        total = np.bincount(row, parts, minlength=self.count)
        sizes = np.bincount(row, np.abs(parts), minlength=self.count)
        return np.asarray(total + 2.0 * UNIT * (np.diff(self.C.indptr) + 2) * sizes, dtype=np.float64)


def _require_binaries(mip: Mip, indicators: Sequence[Indicator], binary: IntArray) -> None:
    sound = mip.integer[binary] & (mip.lower[binary] > -1.0) & (mip.upper[binary] < 2.0)
    for k in np.flatnonzero(~sound)[:1]:
        j = int(binary[k])
        kind = "integer" if mip.integer[j] else "continuous"
        raise ModelError(
            f"indicator constraint {indicators[k].name}: {mip.column_name(j)} is {kind} with bounds "
            f"[{mip.lower[j]:g}, {mip.upper[j]:g}]; only a binary variable can switch a row on."
        )


def _coefficients(mip: Mip, indicators: Sequence[Indicator]) -> sp.csr_array:
    sizes = [len(indicator.columns) for indicator in indicators]
    columns = np.fromiter((j for i in indicators for j in i.columns), dtype=np.int64, count=sum(sizes))
    data = np.fromiter((c for i in indicators for c in i.coefficients), dtype=np.float64, count=sum(sizes))
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    C = sp.csr_array((data, columns, indptr), shape=(len(indicators), mip.n_columns))
    C.sum_duplicates()
    C.eliminate_zeros()
    return C
