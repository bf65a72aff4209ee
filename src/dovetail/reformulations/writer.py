"""Columns and rows to be appended to a MIP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray
from dovetail.core.deadline import require_time
from dovetail.core.mip import SMALLEST, Mip


@dataclass
class Writer:
    """Collects columns and rows; entries below what engines keep are dropped."""

    first: int
    """Number of columns before the new ones."""
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    row_lower: list[float] = field(default_factory=list)
    row_upper: list[float] = field(default_factory=list)
    _rows: list[np.ndarray] = field(default_factory=list)
    _columns: list[np.ndarray] = field(default_factory=list)
    _values: list[np.ndarray] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Number of new columns so far."""
        return len(self.lower)

    def columns(self, lower: FloatArray, upper: FloatArray, *, integer: bool = False) -> np.ndarray:
        """Append columns; returns their indices."""
        start = self.first + self.size
        self.lower += lower.tolist()
        self.upper += upper.tolist()
        self.integer += [integer] * lower.size
        return np.arange(start, start + lower.size)

    def row(
        self, columns: Sequence[int] | np.ndarray, values: FloatArray, lower: float, upper: float
    ) -> None:
        """Append lower <= values'z[columns] <= upper."""
        require_time()
        values = np.asarray(values, dtype=np.float64)
        kept = np.abs(values) >= SMALLEST
        self._rows.append(np.full(int(kept.sum()), len(self.row_lower)))
        self._columns.append(np.asarray(columns)[kept])
        self._values.append(values[kept])
        self.row_lower.append(lower)
        self.row_upper.append(upper)

    def extend(self, mip: Mip) -> Mip:
        """`mip` with everything appended."""
        width, count = mip.n_columns + self.size, len(self.row_lower)
        rows = np.concatenate([np.empty(0, dtype=np.int64), *self._rows])
        columns = np.concatenate([np.empty(0, dtype=np.int64), *self._columns])
        values = np.concatenate([np.empty(0), *self._values])
        new = sp.csr_array((values, (rows, columns)), shape=(count, width))
        new.data[np.abs(new.data) < SMALLEST] = 0.0  # entries of a column read twice may cancel
        old = sp.csr_array((mip.A.data, mip.A.indices, mip.A.indptr), shape=(mip.n_rows, width))
        return replace(
            mip,
            cost=np.concatenate([mip.cost, np.zeros(self.size)]),
            A=sp.vstack([old, new], format="csr"),
            row_lower=np.concatenate([mip.row_lower, self.row_lower]),
            row_upper=np.concatenate([mip.row_upper, self.row_upper]),
            lower=np.concatenate([mip.lower, self.lower]),
            upper=np.concatenate([mip.upper, self.upper]),
            integer=np.concatenate([mip.integer, np.array(self.integer, dtype=bool)]),
            names=None,
            row_names=None,
        )
