"""A network as a list of layers, for the methods that have to write it out.

Most of dovetail never looks inside a predictor. Where a method must (big-M), the predictor may say
what it is made of through `Description.layers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.networks.functions import LAYERS

SOFTMAX = "softmax"
ACTIVATIONS = (*LAYERS, SOFTMAX)
"""What stands between dense layers, by name."""


@dataclass(frozen=True, eq=False)
class Dense:
    """v -> weight v + bias."""

    weight: FloatArray
    """(outputs, inputs)."""
    bias: FloatArray

    def values(self, X: FloatArray) -> FloatArray:
        """Row by row."""
        return np.asarray(X @ self.weight.T + self.bias)

    def range(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Least and largest value of each output, each on its own, for inputs between the bounds."""
        up, down = np.maximum(self.weight, 0.0).T, np.minimum(self.weight, 0.0).T
        return lower @ up + upper @ down + self.bias, upper @ up + lower @ down + self.bias


@dataclass(frozen=True)
class Activation:
    """One of `functions.LAYERS`, on each value; "softmax" on each row."""

    kind: str

    def values(self, X: FloatArray) -> FloatArray:
        """Row by row."""
        return _softmax(X) if self.kind == SOFTMAX else np.asarray(LAYERS[self.kind].value(X))

    def range(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """All of them rise with their input; a softmax lies between 0 and 1."""
        if self.kind == SOFTMAX:
            return np.zeros_like(lower), np.ones_like(upper)
        return self.values(lower), self.values(upper)


def _softmax(X: FloatArray) -> FloatArray:
    powers = np.exp(X - X.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


Layer = Dense | Activation


def evaluate(layers: Sequence[Layer], X: FloatArray) -> FloatArray:
    """What the layers say of each row of `X`, in float64."""
    for layer in layers:
        X = layer.values(X)
    return X


def propagated(
    layers: Sequence[Layer], lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Bounds of the outputs, passed on layer by layer, and the largest bound any neuron had on the way.

    A bound that is NaN counts as infinite there.
    """
    widest = 0.0
    for layer in layers:
        lower, upper = layer.range(lower, upper)
        size = np.nan_to_num(np.maximum(np.abs(lower), np.abs(upper)), nan=np.inf, posinf=np.inf)
        widest = max(widest, float(np.max(size, initial=0.0)))
    return lower, upper, widest


def dropped(layers: Sequence[Layer], outputs: int, threshold: float) -> str:
    """The activation at the end that a class can be read off without, or nothing.

    In exact numbers it rises strictly; what rounding makes of that is `core/class_rounding.py`'s matter.
    """
    last = layers[-1]
    if not isinstance(last, Activation) or last.kind == "relu":
        return ""
    if outputs > 1:
        return last.kind
    return last.kind if last.kind == "sigmoid" and 0.0 < threshold < 1.0 else ""


def thresholded(layers: Sequence[Layer], outputs: int, threshold: float, centre: float) -> tuple[Layer, ...]:
    """Layers that end in a Dense whose values decide the class: one output is 1 where it is >= `centre`.

    What rises strictly does not change a class and is dropped; a threshold on a probability becomes
    one on its logit. With several outputs the largest wins, and only the order matters.
    """
    kept = list(layers)
    if dropped(layers, outputs, threshold):
        kept.pop()
        threshold = float(np.log(threshold / (1.0 - threshold))) if outputs == 1 else threshold
    end = kept[-1] if kept else None
    decisive = end if isinstance(end, Dense) else Dense(np.eye(outputs), np.zeros(outputs))
    shift = centre - threshold if outputs == 1 else 0.0
    before = kept[:-1] if decisive is end else kept
    return (*before, Dense(decisive.weight, decisive.bias + shift))
