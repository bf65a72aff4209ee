"""Triangular systems with constant coefficients, as in the variance of a Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy.linalg import solve_triangular

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.networks.arithmetic import MORE, Arithmetic
from dovetail.networks.sums import Sums


@dataclass(frozen=True, eq=False)
class Solved(Sums):
    """L^-1 v for a lower triangular L: sums with the inverse, but more rounding.

    A computed solution z has (L + D) z = v with |D| <= gamma |L|, and a computed inverse is as far off
    (Higham, Accuracy and Stability, theorem 8.5), so that both are within gamma |L^-1| |L| |L^-1| |v| of the
    exact solution, to first order.
    """

    amplified: FloatArray = field(kw_only=True)
    """|L^-1| |L| |L^-1|."""

    @classmethod
    def by(cls, lower: FloatArray, read: IntArray) -> Self:
        """The solution for numbers at these places, which are distinct and in order."""
        size = len(lower)
        inverse = solve_triangular(lower, np.eye(size), lower=True)
        nothing, sizes = np.zeros(size), abs(inverse)
        return cls(read, inverse, nothing, nothing, amplified=sizes @ abs(lower) @ sizes)

    def error(
        self, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
    ) -> FloatArray:
        """The errors that the inverse passes on, the rounding of our sum, and that of both solutions."""
        size = np.maximum(np.abs(low), np.abs(high))[:, self.read] + error[:, self.read]
        rate = 4.0 * arithmetic.gamma(len(self.bias) + MORE)  # twice, with room for terms of second order
        return super().error(arithmetic, low, high, error) + rate * (size @ self.amplified.T)
