"""Functions of single numbers that networks are made of, by name: all that is known of each, in one place.

A new function is one entry here, a curve for its planes (`bounds/planes/curve_table.py`), its bend for the
checker (`certificates/checker/lines.py`), and its kernel for ONNX where torch has no operation of that name.
What is made of straight pieces (leaky ReLU, clamp, a maximum) is written with ReLUs instead, and what is made
of other functions (mish) with those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from dovetail.core.arrays import FloatArray

OF_NUMBERS = Callable[[FloatArray], FloatArray]
ROOT = float(np.sqrt(8.0 / np.pi))
SHORT_OF_SOFTPLUS = float(np.exp(-20.0))
"""torch takes softplus(x) for x from 20 on."""


@dataclass(frozen=True, eq=False)
class ScalarFunction:
    """A function of one number."""

    name: str
    value: OF_NUMBERS
    steepest: float | Callable[[FloatArray, FloatArray], FloatArray]
    """The largest slope in size: anywhere, rounded up, or between two bounds."""
    least_slope: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    """Of a function that rises strictly, and so changes no order: the least slope between two bounds."""
    lowest: tuple[float, float] | None = None
    """Of a function that falls before it rises: about where it is least, and a little below that value."""
    positive: bool = False
    """Whether it is defined for positive numbers only."""
    bounded: bool = False
    """Whether its values, and so what rounding does to them, stay below 1 in size."""
    off: float = 0.0
    """How far libraries are from it on purpose."""
    torch: str = ""
    """torch's operation, where it has another name."""
    layer: str = ""
    """The class of `torch.nn` that is nothing but this function, where layers are written out with it; Keras
    has it by our name, and ONNX by that of the class."""

    @property
    def rises(self) -> bool:
        """Whether it rises strictly."""
        return self.least_slope is not None

    def slope(self, low: FloatArray, high: FloatArray) -> FloatArray | float:
        """The largest slope in size between two bounds."""
        return self.steepest(low, high) if callable(self.steepest) else self.steepest

    @property
    def operation(self) -> str:
        """What torch calls it."""
        return self.torch or self.name


def _farthest(low: FloatArray, high: FloatArray) -> FloatArray:
    return np.maximum(np.abs(low), np.abs(high))


def _sigmoid_slope(z: FloatArray) -> FloatArray:
    """At z or -z, whichever is positive: nothing overflows to NaN."""
    return np.asarray(special.expit(z) * special.expit(-z))


def _power(factor: float, power: float) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """The slope of a power of what is positive: it is steepest on the left."""
    return lambda low, high: np.asarray(factor * low**power)


_ALL = (
    ScalarFunction("relu", lambda z: np.maximum(z, 0.0), 1.0, layer="ReLU"),
    ScalarFunction(
        "sigmoid", special.expit, 0.25, lambda low, high: _sigmoid_slope(_farthest(low, high)),
        bounded=True, layer="Sigmoid",
    ),
    ScalarFunction(
        "tanh", np.tanh, 1.0, lambda low, high: 1.0 / np.cosh(_farthest(low, high)) ** 2,
        bounded=True, layer="Tanh",
    ),
    ScalarFunction(
        "softplus", lambda z: np.logaddexp(0.0, z), 1.0, lambda low, high: special.expit(low),
        off=SHORT_OF_SOFTPLUS, layer="Softplus",
    ),
    ScalarFunction("erf", special.erf, 1.13),
    ScalarFunction("atan", np.arctan, 1.0, lambda low, high: 1.0 / (1.0 + _farthest(low, high) ** 2)),
    ScalarFunction("gelu", lambda z: z * special.ndtr(z), 1.13, lowest=(-0.752, -0.17)),
    ScalarFunction(
        "gelu_tanh", lambda z: z * special.expit(ROOT * (z + 0.044715 * z**3)), 1.13,
        lowest=(-0.7525, -0.1701),
    ),
    ScalarFunction("silu", lambda z: z * special.expit(z), 1.1, lowest=(-1.2785, -0.2785)),
    ScalarFunction("elu", lambda z: np.where(z > 0.0, z, np.expm1(np.minimum(z, 0.0))), 1.0),
    ScalarFunction("exp", np.exp, lambda low, high: np.exp(high)),
    ScalarFunction("square", np.square, lambda low, high: 2.0 * _farthest(low, high), lowest=(0.0, 0.0)),
    ScalarFunction("log", np.log, _power(1.0, -1.0), positive=True),
    ScalarFunction("sqrt", np.sqrt, _power(0.5, -0.5), positive=True),
    ScalarFunction("rsqrt", lambda z: 1.0 / np.sqrt(z), _power(0.5, -1.5), positive=True),
    ScalarFunction("reciprocal", lambda z: 1.0 / z, _power(1.0, -2.0), positive=True),
)  # fmt: skip

FUNCTIONS = {function.name: function for function in _ALL}
"""All of them, by name."""
LAYERS = {function.name: function for function in _ALL if function.layer}
"""Those that layers are written out with."""
