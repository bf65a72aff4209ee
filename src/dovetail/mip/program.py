"""The program of an engine: rows and columns; costs come with each solve."""

from __future__ import annotations

from typing import NamedTuple

import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.mip import Mip


class LinearProgram(NamedTuple):
    """row_lower <= A x <= row_upper, lower <= x <= upper, some of x integer. Unlike `Mip`, it has no names
    and costs and is not checked."""

    A: sp.csr_array
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray

    @classmethod
    def of(cls, mip: Mip) -> LinearProgram:
        """A program from a `Mip`."""
        return cls(mip.A, mip.row_lower, mip.row_upper, mip.lower, mip.upper, mip.integer)
