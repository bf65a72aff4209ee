"""Columns that equations determine from columns that are known, level by level.

A row a'x = b with one unknown column determines that column; afterwards other rows may have only one unknown
column. An integer n that a row scales to x = n / 20 determines x, and the network that reads x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import Mip
from dovetail.core.sparse import entries_of, times


@dataclass(frozen=True, eq=False)
class DefinedColumns:
    """Columns that equations determine: z[columns] = constant + matrix z."""

    columns: IntArray
    matrix: sp.csr_array
    constant: FloatArray

    def fill(self, Z: FloatArray) -> None:
        """Compute the columns of many points."""
        Z[:, self.columns] = self.constant + times(self.matrix, Z)


class Equations:
    """The equations of a program."""

    def __init__(self, mip: Mip) -> None:
        self._mip = mip
        self._rows = np.flatnonzero(mip.row_lower == mip.row_upper)
        self._pattern = sp.csr_array(abs(mip.A[self._rows]) > 0).astype(np.float64)

    def define(self, known: BoolArray, barred: BoolArray) -> list[DefinedColumns]:
        """Columns that are the only unknown of an equation, repeatedly, except barred columns; they become
        known."""
        mip, levels = self._mip, list[DefinedColumns]()
        while True:
            missing = self._pattern @ (~known).astype(np.float64)
            columns, rows = [], []
            for r in np.flatnonzero(missing == 1.0):
                inside, _ = entries_of(self._pattern, r)
                j = int(inside[~known[inside]][0])
                if not barred[j] and j not in columns:
                    columns.append(j)
                    rows.append(int(self._rows[r]))
            if not columns:
                return levels
            matrix = sp.lil_array(mip.A[rows])
            scale = np.array([matrix[k, j] for k, j in enumerate(columns)])
            for k, j in enumerate(columns):
                matrix[k, j] = 0.0
            scaled = sp.csr_array(sp.diags_array(-1.0 / scale) @ sp.csr_array(matrix))
            scaled.eliminate_zeros()
            levels.append(DefinedColumns(np.array(columns), scaled, mip.row_lower[rows] / scale))
            known[columns] = True
