"""The operation for functions of single numbers (`functions.FUNCTIONS`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.networks.arithmetic import ULPS, Arithmetic
from dovetail.networks.functions import FUNCTIONS, ScalarFunction
from dovetail.networks.graph import Expressions, GraphBuilder
from dovetail.networks.operation import Between, Operation


@dataclass(frozen=True, eq=False)
class Functions(Operation):
    """A function of `functions.FUNCTIONS`, applied to single numbers."""

    kind: str
    read: IntArray

    @property
    def function(self) -> ScalarFunction:
        """The function with its properties."""
        return FUNCTIONS[self.kind]

    @property
    def size(self) -> int:
        """Number of results."""
        return len(self.read)

    def values(self, v: FloatArray) -> FloatArray:
        """In float64."""
        return self.function.value(v[:, self.read])

    def range(self, low: FloatArray, high: FloatArray) -> Between:
        """Infinite if numbers may leave the domain."""
        low, high = low[:, self.read], high[:, self.read]
        known = low > self.function.above
        least, most = self.function.range(np.where(known, low, 1.0), np.where(known, high, 1.0))
        return np.where(known, least, -np.inf), np.where(known, most, np.inf)

    def error(
        self, arithmetic: Arithmetic, low: FloatArray, high: FloatArray, error: FloatArray
    ) -> FloatArray:
        """From the steepest slope between the bounds, and the function's own rounding."""
        low, high, error = low[:, self.read], high[:, self.read], error[:, self.read]
        if self.kind == "relu":  # exact, and 0 for any error if the ReLU is certainly off
            return np.where(high + error <= 0.0, 0.0, error)
        known = low - error > self.function.above
        a, b = np.where(known, low - error, 1.0), np.where(known, high + error, 1.0)
        own = function_error(self.function, arithmetic, a, b)
        passed = self.function.steepest(a, b) * error
        if self.kind == "root":  # endlessly steep at 0, but roots of close numbers are close
            passed = np.minimum(passed, np.sqrt(error))
        return np.where(known, passed + own, np.inf)

    def write(self, graph: GraphBuilder) -> Expressions:
        """One step of its own."""
        return graph.function(self.kind, graph.read(self.read))


def function_error(
    function: ScalarFunction, arithmetic: Arithmetic, low: FloatArray, high: FloatArray
) -> FloatArray:
    """The error of a computed function for exact numbers between two bounds."""
    if function.name == "relu":
        return np.zeros_like(low)
    values = np.maximum(np.abs(function.value(low)), np.abs(function.value(high)))
    size: FloatArray | float = 1.0 if function.bounded else 1.0 + values
    if not (function.bounded or function.layer):  # made of several steps, each of which rounds its inputs
        size = size + np.maximum(np.abs(low), np.abs(high))
    own = (ULPS * arithmetic.unit + arithmetic.smallest) * size + function.off
    return np.where(values <= 0.5 * arithmetic.largest, own, np.inf)
