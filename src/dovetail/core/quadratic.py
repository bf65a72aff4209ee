"""Quadratic functions: what a model's quadratic terms are, and what a block of them computes.

A `Mip` is linear. What is quadratic in a foreign model is read as `QuadraticTerms`; blocks compute it
(`reformulations/quadratic_blocks.py`), and a `QuadraticFunction` says of each what it is: whether it bends up
or down, and what is tangent to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class QuadraticTerms:
    """The sum of coefficients[k] x[left[k]] x[right[k]], to be added to a row, or to the objective."""

    row: int | None
    """Of the `Mip`, which has the row's linear part and limits; None: the objective."""
    left: IntArray
    right: IntArray
    coefficients: FloatArray

    def moved(self, column: IntArray, row: IntArray) -> QuadraticTerms:
        """The same where columns and rows have new places."""
        place = None if self.row is None else int(row[self.row])
        return QuadraticTerms(place, column[self.left], column[self.right], self.coefficients)


@dataclass(frozen=True, eq=False)
class QuadraticFunction:
    """(x - centre)'Q (x - centre) + linear'x, where Q is symmetric."""

    Q: FloatArray
    centre: FloatArray
    linear: FloatArray

    @classmethod
    def form(cls, Q: FloatArray, centre: FloatArray | None = None) -> QuadraticFunction:
        """Nothing but a form, around its centre."""
        nothing = np.zeros(len(Q))
        return cls(Q, nothing if centre is None else centre, nothing)

    @classmethod
    def product(cls, size: int, left: int, right: int) -> QuadraticFunction:
        """x[left] x[right]."""
        Q = np.zeros((size, size))
        Q[left, right] += 0.5
        Q[right, left] += 0.5
        return cls.form(Q)

    @classmethod
    def square(cls, size: int, place: int, centre: float = 0.0) -> QuadraticFunction:
        """(x[place] - centre)^2."""
        Q, middle = np.zeros((size, size)), np.zeros(size)
        Q[place, place], middle[place] = 1.0, centre
        return cls.form(Q, middle)

    @classmethod
    def entry(cls, size: int, place: int) -> QuadraticFunction:
        """x[place] itself."""
        return cls(np.zeros((size, size)), np.zeros(size), np.eye(size)[place])

    @cached_property
    def factors(self) -> tuple[FloatArray, FloatArray]:
        """F and G with x'Qx = |F x|^2 - |G x|^2: a row for each direction that bends up, or down."""
        return factors(self.Q)


def factors(Q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """F and G with x'Qx = |F x|^2 - |G x|^2, by the directions in which a symmetric matrix does not mix.

    Curvatures that are rounding, beside the largest, are none: a sum of squares multiplied out has some.
    """
    single = _single_square(Q)
    if single is not None:
        return single
    if not np.any(Q - np.diag(np.diag(Q))):  # squares of single variables: nothing is rotated, so nothing
        curvature, directions = np.diag(Q), np.eye(len(Q))  # but a root is rounded
    else:
        curvature, directions = np.linalg.eigh(Q)
    noise = 4.0 * len(Q) * np.finfo(np.float64).eps * float(np.max(np.abs(curvature), initial=0.0))
    up, down = curvature > noise, curvature < -noise
    rows = np.sqrt(np.abs(curvature))[:, None] * directions.T
    return rows[up], rows[down]


def _single_square(Q: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """The factors of plus or minus one square, as it was written: (x - y)^2 has to be 0 where x = y."""
    top = int(np.argmax(np.abs(np.diag(Q))))
    peak = float(Q[top, top])
    if peak == 0.0:
        return None
    row = (Q[top] / np.sign(peak) / np.sqrt(abs(peak)))[None]
    if not np.array_equal(np.sign(peak) * row.T @ row, Q):
        return None
    nothing = np.zeros((0, len(Q)))
    return (row, nothing) if peak > 0.0 else (nothing, row)
