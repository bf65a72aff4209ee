"""gurobi-machinelearning's activations, which say how one is written out: `activation_models={"relu": ...}`.

Each means the network's own function, which the network computes itself. Those of layers that their owner
puts together (`own_network.py`) are written out here, and are rows of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import OptionError, UnsupportedError
from dovetail.core.mip import INFINITY


class Activation:
    """A way to write an activation out."""

    means: ClassVar[tuple[str, ...]] = ("relu",)
    """The activations of networks that it can stand for."""

    def mip_model(self, layer: Any) -> None:
        """Tie the outputs of a layer to its inputs: ReLU as the larger of a number and 0."""
        model, shape = layer.gp_model, layer.output.shape
        mixed = layer.input
        if layer.coefs is not None:
            low, high = range_of(layer, layer.input)
            mixed = layer.mixing = model.addMVar(shape, lb=low, ub=high)
            model.addConstr(mixed == layer.input @ layer.coefs + layer.intercept)
        for place in np.ndindex(shape):
            model.addGenConstrMax(layer.output[place].item(), [mixed[place].item()], constant=0.0)

    def limits(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Between which numbers it is where what goes in is between these."""
        return np.maximum(low, 0.0), np.maximum(high, 0.0)


class Identity(Activation):
    """None."""

    means = ("identity", "linear")

    def __init__(self, setbounds: bool = False) -> None:
        self.setbounds = setbounds

    def mip_model(self, layer: Any) -> None:
        """Linear rows."""
        linear = layer.coefs is not None
        mixed = layer.input @ layer.coefs + layer.intercept if linear else layer.input
        layer.gp_model.addConstr(layer.output == mixed)

    def limits(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same."""
        return low, high


class ReLU(Activation):
    """By a general constraint of Gurobi's."""


class ReLUBigM(Activation):
    """By a binary and big-M rows."""

    def __init__(self, bigm: float | None = None) -> None:
        self.bigm = bigm


class SmoothReLU(Activation):
    """By a square root."""


class SoftReLU(Activation):
    """By the curve log(1 + exp(beta x)) / beta, which is softplus itself and, for ReLU, near it."""

    means: ClassVar[tuple[str, ...]] = ("relu", "softplus")

    def __init__(self, beta: float = 1.0) -> None:
        if not beta > 0.0:
            raise OptionError(f"beta must be strictly positive; it is {beta}.")
        self.beta = beta

    def mip_model(self, layer: Any) -> None:
        """An `UnsupportedError`: no row is a curve."""
        raise UnsupportedError(
            f"{type(self).__name__} is a curve, which no rows of a model are; pass the network itself to "
            "add_predictor_constr, for instance as a torch module with Softplus layers."
        )


class SoftPlus(SoftReLU):
    """The same by the name that it has for softplus itself."""

    means = ("softplus",)


_KINDS = Identity, ReLU, ReLUBigM, SmoothReLU, SoftReLU, SoftPlus
ACTIVATIONS = {kind.__name__: kind for kind in _KINDS}


def range_of(layer: Any, inputs: Any) -> tuple[FloatArray, FloatArray]:
    """Between which numbers is what goes into a layer's activation, by the bounds of its inputs.

    Without it, nothing would limit the larger of a sum and 0.
    """
    layer.gp_model.update()  # gurobipy shows no bounds of variables before
    low, high = (_ends(getattr(inputs, side)) for side in ("LB", "UB"))
    if layer.coefs is None:
        return low, high
    up, down = np.maximum(layer.coefs, 0.0), np.minimum(layer.coefs, 0.0)
    least, most = _sum(low, up) + _sum(high, down), _sum(high, up) + _sum(low, down)
    return least + layer.intercept, most + layer.intercept


def _ends(bounds: Any) -> FloatArray:
    found = np.asarray(bounds, dtype=np.float64)
    return np.where(np.abs(found) >= INFINITY, np.copysign(np.inf, found), found)


def _sum(ends: FloatArray, weights: FloatArray) -> FloatArray:
    """ends @ weights, where 0 times infinity is 0: an input that does not count may be anything."""
    with np.errstate(invalid="ignore"):
        terms = ends[:, :, None] * weights[None]
    return np.asarray(np.where(weights[None] == 0.0, 0.0, terms).sum(axis=1))


def require_meant(activation_models: Mapping[str, Any]) -> None:
    """An `OptionError` for an activation that would make another network of it."""
    for name, activation in activation_models.items():
        if name not in getattr(activation, "means", ()):
            raise OptionError(
                f"activation_models has {type(activation).__name__} for {name!r}: the network is evaluated "
                f"as it is, and what means {name!r} is taken, of {', '.join(ACTIVATIONS)}. Another function "
                "is another network: give that as the predictor."
            )
