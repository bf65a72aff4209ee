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
    """x'Qx + linear'x + constant, where Q is symmetric."""

    Q: FloatArray
    linear: FloatArray
    constant: float = 0.0

    @classmethod
    def product(cls, size: int, left: int, right: int) -> QuadraticFunction:
        """x[left] x[right]."""
        Q = np.zeros((size, size))
        Q[left, right] += 0.5
        Q[right, left] += 0.5
        return cls(Q, np.zeros(size))

    @classmethod
    def square(cls, size: int, place: int, centre: float = 0.0) -> QuadraticFunction:
        """(x[place] - centre)^2."""
        Q, linear = np.zeros((size, size)), np.zeros(size)
        Q[place, place], linear[place] = 1.0, -2.0 * centre
        return cls(Q, linear, centre * centre)

    @classmethod
    def entry(cls, size: int, place: int) -> QuadraticFunction:
        """x[place] itself."""
        return cls(np.zeros((size, size)), np.eye(size)[place])

    def value(self, x: FloatArray) -> float:
        """At one point."""
        return float(x @ self.Q @ x + self.linear @ x) + self.constant

    def gradient(self, x: FloatArray) -> FloatArray:
        """At one point."""
        return np.asarray(2.0 * (self.Q @ x) + self.linear)

    @cached_property
    def factors(self) -> tuple[FloatArray, FloatArray]:
        """F and G with x'Qx = |F x|^2 - |G x|^2: a row for each direction that bends up, or down."""
        return factors(self.Q)

    @property
    def convex(self) -> bool:
        """Whether it bends down nowhere."""
        return not len(self.factors[1])

    @property
    def concave(self) -> bool:
        """Whether it bends up nowhere."""
        return not len(self.factors[0])


def factors(Q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """F and G with x'Qx = |F x|^2 - |G x|^2, by the directions in which a symmetric matrix does not mix.

    Curvatures that are rounding, beside the largest, are none: a sum of squares multiplied out has some.
    """
    if not np.any(Q - np.diag(np.diag(Q))):  # squares of single variables: nothing is rotated, so nothing
        curvature, directions = np.diag(Q), np.eye(len(Q))  # but a root is rounded
    else:
        curvature, directions = np.linalg.eigh(Q)
    noise = 4.0 * len(Q) * np.finfo(np.float64).eps * float(np.max(np.abs(curvature), initial=0.0))
    up, down = curvature > noise, curvature < -noise
    rows = np.sqrt(np.abs(curvature))[:, None] * directions.T
    return rows[up], rows[down]
