"""What an .lp file says, and whether a program that another reader made of it is the same."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.mip import INFINITY, Mip

TOLERANCE = 1e-6
"""By how much a whole number may miss a limit of an integer column."""


@dataclass
class LpRow:
    """coefficients, a sign (<=, >= or =), and the number behind it."""

    coefficients: dict[bytes, float]
    compare: bytes
    limit: float


@dataclass
class LpProgram:
    """What an .lp file says."""

    maximises: bool = False
    cost: dict[bytes, float] = field(default_factory=dict)
    offset: float = 0.0
    rows: list[LpRow] = field(default_factory=list)
    lower: dict[bytes, float] = field(default_factory=dict)
    upper: dict[bytes, float] = field(default_factory=dict)
    """Limits that are given; 0 and infinity are those of all others."""
    columns: dict[bytes, None] = field(default_factory=dict)
    """In the order of their first appearance."""
    labels: set[bytes] = field(default_factory=set)
    """Names of rows and of the objective."""
    integer: set[bytes] = field(default_factory=set)
    binary: set[bytes] = field(default_factory=set)

    def limits(self, column: bytes) -> tuple[float, float]:
        """What a column may be."""
        high = 1.0 if column in self.binary else math.inf
        return self.lower.get(column, 0.0), self.upper.get(column, high)

    def agrees(self, mip: Mip) -> bool:
        """Whether a program is the one in the text."""
        if mip.names is None or {name.encode() for name in mip.names} != self.columns.keys():
            return False
        if mip.n_rows != len(self.rows) or (mip.sense == "max") != self.maximises:
            return False
        names = [name.encode() for name in mip.names]
        return (
            _close(mip.cost, [self.cost.get(name, 0.0) for name in names])
            and _close(np.array([mip.offset]), [self.offset])
            and self._agrees_on_columns(mip, names)
            and self._agrees_on_rows(mip, {name: j for j, name in enumerate(names)})
        )

    def _agrees_on_columns(self, mip: Mip, names: list[bytes]) -> bool:
        whole = np.array([name in self.integer or name in self.binary for name in names])
        low, high = np.array([self.limits(name) for name in names]).T
        if not np.array_equal(whole, mip.integer):
            return False
        lower, upper = _unrounded(mip.lower, low, whole), -_unrounded(-mip.upper, -high, whole)
        return _close(lower, low) and _close(upper, high)

    def _agrees_on_rows(self, mip: Mip, place: dict[bytes, int]) -> bool:
        compare = np.array([row.compare for row in self.rows], dtype=object)
        limit = np.array([row.limit for row in self.rows], dtype=np.float64)
        entries = [
            (i, place[name], value)
            for i, row in enumerate(self.rows)
            for name, value in row.coefficients.items()
            if value != 0.0
        ]
        row_of, column_of, values = zip(*entries, strict=True) if entries else ((), (), ())
        A = sp.csr_array((values, (row_of, column_of)), shape=mip.A.shape, dtype=np.float64)
        same = np.array_equal(A.indptr, mip.A.indptr) and np.array_equal(A.indices, mip.A.indices)
        return (
            same
            and _close(mip.A.data, A.data)
            and _close(mip.row_lower, np.where(compare == b"<=", -np.inf, limit))
            and _close(mip.row_upper, np.where(compare == b">=", np.inf, limit))
        )


def _unrounded(theirs: FloatArray, ours: FloatArray, whole: BoolArray) -> FloatArray:
    """Limits from below, as they were before a program rounded those of its integers up."""
    rounded = whole & (np.ceil(ours - TOLERANCE) <= theirs) & (theirs <= np.ceil(ours))
    return np.where(rounded, ours, theirs)


def _close(theirs: FloatArray, ours: ArrayLike) -> bool:
    """The same to the last digits that two ways of reading a number may differ in."""
    ours = np.asarray(ours, dtype=np.float64)
    ours = np.where(np.abs(ours) >= INFINITY, np.copysign(np.inf, ours), ours)
    return np.allclose(theirs, ours, rtol=1e-12, atol=0.0)
