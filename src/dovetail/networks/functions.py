"""Functions of single numbers that networks are made of, by name: all their properties, in one place.

A new function is one entry here, its bend for the checker (`certificates/checker/planes.py`), and its kernel
for ONNX (`predictors/onnx/operators/elementwise.py`) where there is none yet. Value and derivative are
written once, for numpy and for torch. Everything else follows: between two inflection points the slope is
monotone, so that slopes are extreme at the ends of an interval and at the bends inside it, and
`bounds/planes/relaxation.py` finds lines below and above the function in the same way.

A function has one slope at every point (of all but ReLU this is used). Functions with kinks or straight
pieces (leaky ReLU, clamp, hard swish, a maximum) are written with ReLUs instead, in
`predictors/torch/traced.py`; so are functions with options (celu).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import special

from dovetail.core.arrays import FloatArray

Formula = Callable[[Any, Any], Any]
"""A library (`NUMPY` or torch), and an array of it."""

NUMPY = SimpleNamespace(
    sigmoid=special.expit, erf=special.erf, erfc=special.erfc, atan=np.arctan, asinh=np.arcsinh,
    tanh=np.tanh, cosh=np.cosh, exp=np.exp, expm1=np.expm1, log=np.log, logaddexp=np.logaddexp, sqrt=np.sqrt,
    square=np.square, abs=np.abs, where=np.where, clip=np.clip, zeros_like=np.zeros_like,
)  # fmt: skip
"""The operations that formulas use from a library, by torch's names."""

ROOT = math.sqrt(8.0 / math.pi)
CUBIC = 0.044715
"""Of the tanh form of GELU."""
SOON = 1e-300
"""Just right of 0, where a root is as steep as numbers allow and its slope is still finite."""
SHORT_OF_SOFTPLUS = math.exp(-20.0)
"""torch takes softplus(x) for x from 20 on."""
NEAR, PAD = 1e-3, 1e-9
"""Width of the interval around `lowest_at` in which a function may be least; relative, the error of slopes
and of that least value."""


@dataclass(frozen=True, eq=False)
class ScalarFunction:
    """A function of one number."""

    name: str
    formula: Formula
    derivative: Formula
    bends: tuple[float, ...] = ()
    """The bends, where it turns from convex to concave or back, in increasing order."""
    convex_first: bool = True
    """Whether the function is convex left of the first bend."""
    stationary: Callable[[Any, Any, int], Any] | None = None
    """The point with a given slope, in a piece between bends by number; without it, a table is used. For
    torch."""
    lowest_at: float | None = None
    """The point where the function is least, if it falls before and rises after; None if it only rises or
    only falls."""
    least: float = -math.inf
    most: float = math.inf
    """Bounds of all values."""
    above: float = -math.inf
    """The function is defined right of this number only."""
    rises: bool = False
    """Whether the function rises strictly, and so may be dropped before a class is decided."""
    off: float = 0.0
    """The largest deliberate deviation of libraries from the formula."""
    torch: str = ""
    """torch's operation, if it has another name."""
    gate: tuple[str, ...] | None = None
    """If the function is its argument times functions of the argument, one after the other: these functions.
    Exporters write the function as a product; linear bounds of the function itself are tighter."""
    layer: str = ""
    """The class of `torch.nn` for exactly this function, if layers are written out with it; Keras uses our
    name, and ONNX the name of the class. Libraries compute it to a few units in the last place."""

    @property
    def bounded(self) -> bool:
        """Whether its values, and so the effects of rounding on them, stay below 1 in size."""
        return self.least >= -1.0 and self.most <= 1.0

    @property
    def operation(self) -> str:
        """torch's name of the function."""
        return self.torch or self.name

    def value(self, z: FloatArray) -> FloatArray:
        """In float64."""
        return np.asarray(self.formula(NUMPY, z))

    def range(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least and the largest value between two bounds; NaN or infinite if it is not defined there."""
        ends = self.value(low), self.value(high)
        least, most = np.minimum(*ends), np.maximum(*ends)
        if self.lowest_at is not None:
            near = (low <= self.lowest_at + NEAR) & (high >= self.lowest_at - NEAR)
            lowest = max(float(self.value(np.array(self.lowest_at))) - PAD, self.least)
            least = np.where(near, np.minimum(least, lowest), least)
        return least, most

    def steepest(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """The largest slope in size between two bounds."""
        slopes = [np.abs(slope) for slope in self._slopes(low, high)]
        return np.asarray(np.maximum.reduce(slopes) * (1.0 + PAD))

    def least_slope(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """The least slope between two bounds, of a function that rises."""
        return np.asarray(np.minimum.reduce(self._slopes(low, high)) * (1.0 - PAD))

    def _slopes(self, low: FloatArray, high: FloatArray) -> list[FloatArray]:
        """The values at the ends, and at the bends between them."""
        points = [low, high, *(np.clip(bend, low, high) for bend in self.bends)]
        with np.errstate(all="ignore"):  # a slope that is too small to be seen is 0
            return [np.asarray(self.derivative(NUMPY, z)) for z in points]


def _either_side(size: Any, piece: int) -> Any:
    """Of two points at equal distance from 0, the one in the convex piece left of 0 or the one in the concave
    piece right of 0."""
    return -size if piece == 0 else size


def _sigmoid_slope(t: Any, z: Any) -> Any:
    return t.sigmoid(z) * t.sigmoid(-z)


def _where_sigmoid(t: Any, slope: Any, piece: int) -> Any:
    root = t.sqrt((1.0 - 4.0 * slope).clamp(min=0.0))  # p (1 - p) = slope
    return _either_side((2.0 * t.log1p(root) - t.log(4.0 * slope)).clamp(min=0.0), piece)


def _normal(t: Any, z: Any) -> Any:
    """The normal distribution function at z; small values are as accurate as large ones."""
    return 0.5 * t.erfc(-z / math.sqrt(2.0))


def _inside_gelu(z: Any) -> Any:
    return ROOT * (z + CUBIC * z * z * z)


def _tanh_gelu_slope(t: Any, z: Any) -> Any:
    rise = ROOT * (1.0 + 3.0 * CUBIC * z * z)
    return t.sigmoid(_inside_gelu(z)) + z * _sigmoid_slope(t, _inside_gelu(z)) * rise


def _matern(t: Any, square: Any, factor: Callable[[Any], Any], fall: Any) -> Any:
    root = t.sqrt(t.clip(square, 0.0, None))
    return factor(root) * t.exp(-root) - t.where(square < 0.0, fall, 0.0)


def _softplus(t: Any, z: Any) -> Any:
    return t.logaddexp(z, t.zeros_like(z))


def _mish_slope(t: Any, z: Any) -> Any:
    gate = _softplus(t, z)
    return t.tanh(gate) + z * t.sigmoid(z) / t.cosh(gate) ** 2


_ALL = (
    ScalarFunction(
        "relu", lambda t, z: t.clip(z, 0.0, None), lambda t, z: t.where(z > 0.0, 1.0, 0.0), least=0.0,
        layer="ReLU",
    ),
    ScalarFunction(
        "sigmoid", lambda t, z: t.sigmoid(z), _sigmoid_slope, (0.0,), stationary=_where_sigmoid,
        least=0.0, most=1.0, rises=True, layer="Sigmoid",
    ),
    ScalarFunction(
        "tanh", lambda t, z: t.tanh(z), lambda t, z: 1.0 / t.cosh(z) ** 2, (0.0,),
        stationary=lambda t, s, piece: _either_side(t.atanh(t.sqrt((1.0 - s).clamp(min=0.0))), piece),
        least=-1.0, most=1.0, rises=True, layer="Tanh",
    ),
    ScalarFunction(
        "softplus", _softplus, lambda t, z: t.sigmoid(z),
        stationary=lambda t, s, _: t.log(s) - t.log1p(-s), least=0.0, rises=True, off=SHORT_OF_SOFTPLUS,
        layer="Softplus",
    ),
    ScalarFunction(
        "erf", lambda t, z: t.erf(z), lambda t, z: (2.0 / math.sqrt(math.pi)) * t.exp(-z * z), (0.0,),
        stationary=lambda t, s, piece: _either_side(
            t.sqrt(-t.log(s * (math.sqrt(math.pi) / 2.0)).clamp(max=0.0)), piece
        ),
        least=-1.0, most=1.0,
    ),
    ScalarFunction(
        "atan", lambda t, z: t.atan(z), lambda t, z: 1.0 / (1.0 + z * z), (0.0,),
        stationary=lambda t, s, piece: _either_side(t.sqrt((1.0 / s - 1.0).clamp(min=0.0)), piece),
        least=-0.5 * math.pi, most=0.5 * math.pi, rises=True,
    ),
    ScalarFunction(
        "softsign", lambda t, z: z / (1.0 + t.abs(z)), lambda t, z: 1.0 / (1.0 + t.abs(z)) ** 2, (0.0,),
        stationary=lambda t, s, piece: _either_side((1.0 / t.sqrt(s) - 1.0).clamp(min=0.0), piece),
        least=-1.0, most=1.0, rises=True, layer="Softsign",
    ),
    ScalarFunction(
        "asinh", lambda t, z: t.asinh(z), lambda t, z: 1.0 / t.sqrt(1.0 + z * z), (0.0,),
        stationary=lambda t, s, piece: _either_side(t.sqrt((1.0 / (s * s) - 1.0).clamp(min=0.0)), piece),
        rises=True,
    ),
    ScalarFunction(
        "gelu", lambda t, z: z * _normal(t, z),
        lambda t, z: _normal(t, z) + z * t.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi),
        (-math.sqrt(2.0), math.sqrt(2.0)), convex_first=False, lowest_at=-0.7517915246935645,
    ),
    ScalarFunction(
        "gelu_tanh", lambda t, z: z * t.sigmoid(_inside_gelu(z)), _tanh_gelu_slope,
        (-1.4185040087908284, 1.4185040087908284), convex_first=False, lowest_at=-0.7524614220710163,
    ),
    ScalarFunction(
        "silu", lambda t, z: z * t.sigmoid(z), lambda t, z: t.sigmoid(z) + z * _sigmoid_slope(t, z),
        (-2.3993572805154677, 2.3993572805154677), convex_first=False, lowest_at=-1.2784645427610738,
        gate=("sigmoid",),
    ),
    ScalarFunction(
        "mish", lambda t, z: z * t.tanh(_softplus(t, z)), _mish_slope,
        (-2.256376396360793, 1.4905711794854285), convex_first=False, lowest_at=-1.1924312145154952,
        gate=("softplus", "tanh"),
    ),
    ScalarFunction(
        "elu", lambda t, z: t.where(z > 0.0, z, t.expm1(t.clip(z, None, 0.0))),
        lambda t, z: t.exp(t.clip(z, None, 0.0)), stationary=lambda t, s, _: t.log(s).clamp(max=0.0),
        least=-1.0,
    ),
    ScalarFunction(
        "exp", lambda t, z: t.exp(z), lambda t, z: t.exp(z), stationary=lambda t, s, _: t.log(s), least=0.0
    ),
    ScalarFunction(
        "square", lambda t, z: t.square(z), lambda t, z: 2.0 * z, stationary=lambda t, s, _: 0.5 * s,
        lowest_at=0.0, least=0.0, gate=(),
    ),
    ScalarFunction(
        "log", lambda t, z: t.log(z), lambda t, z: 1.0 / z, convex_first=False,
        stationary=lambda t, s, _: 1.0 / s, above=0.0,
    ),
    ScalarFunction(
        "sqrt", lambda t, z: t.sqrt(z), lambda t, z: 0.5 / t.sqrt(z), convex_first=False,
        stationary=lambda t, s, _: 0.25 / (s * s), least=0.0, above=0.0,
    ),
    ScalarFunction(
        "rsqrt", lambda t, z: 1.0 / t.sqrt(z), lambda t, z: -0.5 * z**-1.5,
        stationary=lambda t, s, _: (-2.0 * s) ** (-2.0 / 3.0), least=0.0, above=0.0,
    ),
    ScalarFunction(  # of numbers that are not negative, but for rounding
        "root", lambda t, z: t.sqrt(t.clip(z, 0.0, None)),
        lambda t, z: t.where(z > 0.0, 0.5 / t.sqrt(t.clip(z, SOON, None)), 0.0), (SOON,),
        stationary=lambda t, s, piece: 0.25 / (s * s) if piece else t.full_like(s, -math.inf), least=0.0,
    ),
    ScalarFunction(  # Matern kernels of squared distances: convex, and straight left of 0
        "matern32", lambda t, z: _matern(t, 3.0 * z, lambda r: 1.0 + r, 1.5 * z),
        lambda t, z: -1.5 * t.exp(-t.sqrt(t.clip(3.0 * z, 0.0, None))),
        stationary=lambda t, s, _: t.square(t.log(-s / 1.5)) / 3.0, least=0.0,
    ),
    ScalarFunction(
        "matern52", lambda t, z: _matern(t, 5.0 * z, lambda r: 1.0 + r + r * r / 3.0, z / 1.2),
        lambda t, z: -_matern(t, 5.0 * z, lambda r: 1.0 + r, 0.0 * z) / 1.2, least=0.0,
    ),
    ScalarFunction(
        "reciprocal", lambda t, z: 1.0 / z, lambda t, z: -1.0 / (z * z),
        stationary=lambda t, s, _: t.rsqrt(-s), above=0.0,
    ),
)  # fmt: skip

FUNCTIONS = {function.name: function for function in _ALL}
"""All functions, by name."""
LAYERS = {function.name: function for function in _ALL if function.layer}
"""Functions with which layers are written out."""
