"""Columns that equations fix: x = 0.5 in a row says as much as two bounds at 0.5.

A row over one column is passed on to the bounds, but with room for rounding (`bounds/box.py`), so that such a
column looks as if it had a choice. Here the value is computed in fractions, from row to row, and kept only
where a float64 is exactly that: every point that meets the rows as they are written has it. 3 x = 1 fixes
nothing, since no float64 is a third.

Integers are left out: whole bounds are found without this. Equations over several columns that fix them only
together are not solved.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import Mip
from dovetail.core.sparse import row_of_entries

MOST_EQUATIONS = 20_000
"""Solved in fractions: some tenths of a second."""
LONGEST = 100
"""Entries of such an equation: sums of more fractions take their time, and are seldom a float64."""
ROUNDS = 10
"""Passes over the rows, as in `bounds/box.py`: a long chain of equations would take one for each link."""


def fixed_by_equations(mip: Mip) -> tuple[IntArray, FloatArray]:
    """The continuous columns that equations fix and bounds do not, and their values."""
    lower, upper = mip.lower.copy(), mip.upper.copy()
    equation = (mip.row_lower == mip.row_upper) & (np.diff(mip.A.indptr) <= LONGEST)
    row, solved, found = row_of_entries(mip.A), 0, list[int]()
    for _ in range(ROUNDS):
        unknown = (lower != upper)[mip.A.indices]
        ready = np.flatnonzero(equation & (np.bincount(row, unknown, mip.n_rows) == 1))
        ready = ready[: MOST_EQUATIONS - solved]
        solved += ready.size
        equation[ready] = False
        before = len(found)
        for i in ready:
            entries = slice(mip.A.indptr[i], mip.A.indptr[i + 1])
            j = int(mip.A.indices[entries][unknown[entries]][0])
            value = None if mip.integer[j] or lower[j] == upper[j] else _solved(mip, int(i), j, lower)
            if value is not None and lower[j] <= value <= upper[j]:
                lower[j] = upper[j] = value
                found.append(j)
        if len(found) == before:
            break
    columns = np.array(found, dtype=np.int64)
    return columns, lower[columns]


def _solved(mip: Mip, i: int, j: int, values: FloatArray) -> float | None:
    """What equation i makes of column j, the others being known; None where that is no float64."""
    rest, factor = Fraction(float(mip.row_lower[i])), Fraction(0)
    for k in range(mip.A.indptr[i], mip.A.indptr[i + 1]):
        column, a = int(mip.A.indices[k]), Fraction(float(mip.A.data[k]))
        if column == j:
            factor += a
        else:
            rest -= a * Fraction(float(values[column]))
    if not factor:
        return None
    value = float(rest / factor)  # entries are limited in size: nothing overflows in so few rounds
    return value if Fraction(value) * factor == rest else None
