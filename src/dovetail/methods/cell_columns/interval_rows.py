"""Rows over many boxes at once: what they add up to at least, and what they leave to each column."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import PAD, UNIT
from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.mip import TOLERANCE, Mip


class IntervalRows:
    """Rows of a program, none of them empty, entry by entry."""

    def __init__(self, A: sp.csr_array) -> None:
        self._kept = np.flatnonzero(np.diff(A.indptr))
        self._rows = A.shape[0]
        self.a, self.column = A.data, A.indices.astype(np.intp)
        self._first = A.indptr[:-1][self._kept].astype(np.intp)
        self.row = np.repeat(np.arange(self._kept.size), np.diff(A.indptr)[self._kept])

    @property
    def kept(self) -> np.ndarray:
        """The numbers of rows that are not empty."""
        return self._kept

    def parts(self, a: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(N, entries) the least of each entry `a` times its column between (N, columns) bounds."""
        return np.asarray(a * np.where(a > 0.0, lower[:, self.column], upper[:, self.column]))

    def sums(self, parts: FloatArray) -> FloatArray:
        """(N, kept rows) of (N, entries)."""
        if self._first.size == 0:
            return np.zeros((len(parts), 0))
        return np.asarray(np.add.reduceat(parts, self._first, axis=1))

    def least(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(N, rows) what each is at least between (N, columns) bounds, rounded down; 0 where it is empty."""
        parts, found = self.parts(self.a, lower, upper), np.zeros((len(lower), self._rows))
        total, size = self.sums(parts), self.sums(np.abs(parts))
        entries = np.bincount(self.row, minlength=self._kept.size)
        found[:, self._kept] = np.where(
            np.isfinite(total), total - 2.0 * UNIT * (entries + 2) * size, -np.inf
        )
        return found


class Propagation:
    """What the rows of a program leave to its columns, for many boxes at once (see `bounds.box`)."""

    def __init__(self, mip: Mip) -> None:
        self._mip, self._rows = mip, IntervalRows(mip.A)
        low, high = mip.sides_as_checked
        row = self._rows.row
        self._sides = high[self._rows.kept][row], -low[self._rows.kept][row]
        self._noise = 2.0 * UNIT * (np.bincount(row)[row] + 2) / np.abs(self._rows.a)
        self._order = np.argsort(self._rows.column, kind="stable")
        self._columns, self._begin = np.unique(self._rows.column[self._order], return_index=True)

    def tighten(self, lower: FloatArray, upper: FloatArray) -> BoolArray:
        """(N,) which boxes hold nothing; bounds (N, columns) are tightened in place, in one pass.

        A box that is cut again passes on what the first pass left.
        """
        whole = self._mip.integer
        for sign, side in zip((1.0, -1.0), self._sides, strict=True) if self._rows.a.size else ():
            self._pass_on(sign * self._rows.a, side, lower, upper)
        lower[:, whole] = np.ceil(lower[:, whole] - TOLERANCE)
        upper[:, whole] = np.floor(upper[:, whole] + TOLERANCE)
        return np.asarray(np.any(lower > upper, axis=1))

    def _pass_on(self, a: FloatArray, side: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        rows = self._rows
        least = rows.parts(a, lower, upper)
        endless = np.isinf(least)
        finite = np.where(endless, 0.0, least)
        total, size = rows.sums(finite)[:, rows.row], rows.sums(np.abs(finite))[:, rows.row]
        says = np.isfinite(side)
        if np.any(endless):
            says = says & (rows.sums(endless.astype(np.int64))[:, rows.row] == endless)
        limit = np.where(says, side - (total - finite), 0.0) / a
        room = PAD * np.maximum(1.0, np.abs(limit)) + self._noise * size
        above = np.where(says & (a > 0.0), limit + room, np.inf)[:, self._order]
        below = np.where(says & (a < 0.0), limit - room, -np.inf)[:, self._order]
        own = self._columns
        upper[:, own] = np.minimum(upper[:, own], np.minimum.reduceat(above, self._begin, axis=1))
        lower[:, own] = np.maximum(lower[:, own], np.maximum.reduceat(below, self._begin, axis=1))
