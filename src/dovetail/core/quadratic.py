"""Quadratic functions: the quadratic terms of a model, and the block that computes them.

A `Mip` has linear terms only. Quadratic terms of another tool's model are read as `QuadraticTerms`. Blocks
compute these terms (`reformulations/quadratic_blocks.py`), and a `QuadraticFunction` gives the curvature and
the tangents of each block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class QuadraticTerms:
    """The sum of coefficients[k] x[left[k]] x[right[k]], as part of a row or of the objective."""

    row: int | None
    """The row of the `Mip` that has the linear part and the limits; None: the objective."""
    left: IntArray
    right: IntArray
    coefficients: FloatArray

    def moved(self, column: IntArray, row: IntArray) -> QuadraticTerms:
        """The same terms after columns and rows were renumbered."""
        place = None if self.row is None else int(row[self.row])
        return QuadraticTerms(place, column[self.left], column[self.right], self.coefficients)


@dataclass(frozen=True, eq=False)
class QuadraticFunction:
    """(z - centre)'Q (z - centre) + linear'z of the inputs z = x[places] that it reads; Q is symmetric. A
    square of one input out of a thousand needs a matrix of one number."""

    places: IntArray
    Q: FloatArray
    centre: FloatArray
    linear: FloatArray

    @classmethod
    def form(cls, Q: FloatArray, centre: FloatArray | None = None) -> QuadraticFunction:
        """A quadratic form of all inputs around its centre."""
        nothing = np.zeros(len(Q))
        return cls(np.arange(len(Q)), Q, nothing if centre is None else centre, nothing)

    @classmethod
    def product(cls, left: int, right: int) -> QuadraticFunction:
        """x[left] x[right]."""
        if left == right:
            return cls.square(left)
        nothing = np.zeros(2)
        return cls(np.array([left, right]), np.array([[0.0, 0.5], [0.5, 0.0]]), nothing, nothing)

    @classmethod
    def square(cls, place: int, centre: float = 0.0) -> QuadraticFunction:
        """(x[place] - centre)^2."""
        return cls(np.array([place]), np.ones((1, 1)), np.array([centre]), np.zeros(1))

    @classmethod
    def entry(cls, place: int) -> QuadraticFunction:
        """x[place] itself."""
        return cls(np.array([place]), np.zeros((1, 1)), np.zeros(1), np.ones(1))

    @cached_property
    def factors(self) -> tuple[FloatArray, FloatArray]:
        """F and G with x'Qx = |F x|^2 - |G x|^2: a row for each direction that bends up, or down."""
        return factors(self.Q)


def factors(Q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """F and G with x'Qx = |F x|^2 - |G x|^2, by the eigenvectors of a symmetric matrix. Eigenvalues within
    rounding of the largest count as 0."""
    single = _single_square(Q)
    if single is not None:
        return single
    if not np.any(Q - np.diag(np.diag(Q))):  # squares of single variables need no rotation: only the
        curvature, directions = np.diag(Q), np.eye(len(Q))  # square root is rounded
    else:
        curvature, directions = np.linalg.eigh(Q)
    noise = 4.0 * len(Q) * np.finfo(np.float64).eps * float(np.max(np.abs(curvature), initial=0.0))
    up, down = curvature > noise, curvature < -noise
    rows = np.sqrt(np.abs(curvature))[:, None] * directions.T
    return rows[up], rows[down]


def _single_square(Q: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """The two factors of plus or minus one square, as it was written: (x - y)^2 must be exactly 0 where x =
    y."""
    top = int(np.argmax(np.abs(np.diag(Q))))
    peak = float(Q[top, top])
    if peak == 0.0:
        return None
    row = (Q[top] / np.sign(peak) / np.sqrt(abs(peak)))[None]
    if not np.array_equal(np.sign(peak) * row.T @ row, Q):
        return None
    nothing = np.zeros((0, len(Q)))
    return (row, nothing) if peak > 0.0 else (nothing, row)
