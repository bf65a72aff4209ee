"""Dense layers and activations in sequence: the form in which some networks arrive, and in which some are
written out.

Layers are a description only; `program_of` makes the program that computes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.networks.arithmetic import Arithmetic
from dovetail.networks.functions import LAYERS
from dovetail.networks.graph import is_identity
from dovetail.networks.program import Program, Recording
from dovetail.networks.sums import Sums

SOFTMAX = "softmax"
ACTIVATIONS = (*LAYERS, SOFTMAX)
"""Activations between dense layers, by name."""


@dataclass(frozen=True, eq=False)
class Dense:
    """v -> weight v + bias."""

    weight: FloatArray
    """(outputs, inputs)."""
    bias: FloatArray


@dataclass(frozen=True)
class Activation:
    """One of `functions.LAYERS`, on each value; "softmax" on each row."""

    kind: str


Layer = Dense | Activation


def program_of(layers: Sequence[Layer], inputs: int, arithmetic: Arithmetic | None = None) -> Program:
    """The program of layers, one operation each, with provenance "layers"."""
    recording = Recording(inputs)
    numbers = np.arange(inputs)
    for layer in layers:
        if isinstance(layer, Dense):
            if layer.weight.shape[1] != len(numbers):
                raise UnsupportedError(
                    f"a layer of {layer.weight.shape[1]} inputs reads {len(numbers)} numbers"
                )
            numbers = recording.add(Sums.dense(int(numbers[0]), layer.weight, np.asarray(layer.bias, float)))
        elif layer.kind == SOFTMAX:
            numbers = recording.shares(numbers[None], logarithm=False)
        else:
            numbers = recording.functions(layer.kind, numbers)
    return replace(recording.program(numbers), arithmetic=arithmetic, provenance="layers")


def evaluate(layers: Sequence[Layer], X: FloatArray) -> FloatArray:
    """The values of the layers for each row of `X`, in float64."""
    return program_of(layers, X.shape[1]).values(X)


def folded(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """The same layers with neighbouring dense ones multiplied out, and without identities."""
    found: list[Layer] = []
    for layer in layers:
        before = found[-1] if found else None
        if not isinstance(layer, Dense):
            found.append(layer)
        elif isinstance(before, Dense):
            found[-1] = Dense(layer.weight @ before.weight, layer.weight @ before.bias + layer.bias)
        elif layer.bias.any() or not is_identity(layer.weight):
            found.append(layer)
    return tuple(found)


def dropped(layers: Sequence[Layer], outputs: int, threshold: float) -> str:
    """An activation at the end that does not change the class, or None. In exact arithmetic it is strictly
    increasing; `core/class_rounding.py` handles its rounding."""
    last = layers[-1]
    if not isinstance(last, Activation) or (last.kind != SOFTMAX and not LAYERS[last.kind].rises):
        return ""
    if outputs > 1:
        return last.kind
    return last.kind if last.kind == "sigmoid" and 0.0 < threshold < 1.0 else ""


def thresholded(layers: Sequence[Layer], outputs: int, threshold: float, centre: float) -> tuple[Layer, ...]:
    """Layers that end in a Dense whose values decide the class: one output is 1 if it is >= `centre`.
    Strictly increasing activations are dropped, and a threshold on a probability becomes one on its logit.
    With several outputs the largest wins."""
    kept = list(layers)
    if kept and dropped(layers, outputs, threshold):
        kept.pop()
        threshold = float(np.log(threshold / (1.0 - threshold))) if outputs == 1 else threshold
    end = kept[-1] if kept else None
    decisive = end if isinstance(end, Dense) else Dense(np.eye(outputs), np.zeros(outputs))
    shift = centre - threshold if outputs == 1 else 0.0
    before = kept[:-1] if decisive is end else kept
    return (*before, Dense(decisive.weight, decisive.bias + shift))
