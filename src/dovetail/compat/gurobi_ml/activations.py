"""gurobi-machinelearning's activations, which say how one is written out: `activation_models={"relu": ...}`.

Each means the network's own function, which the network computes itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from dovetail.core.errors import OptionError


class Activation:
    """A way to write an activation out."""

    means: ClassVar[tuple[str, ...]] = ("relu",)
    """The activations of networks that it can stand for."""


class Identity(Activation):
    """None."""

    means = ("identity", "linear")

    def __init__(self, setbounds: bool = False) -> None:
        self.setbounds = setbounds


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

    means = ("relu", "softplus")

    def __init__(self, beta: float = 1.0) -> None:
        if not beta > 0.0:
            raise OptionError(f"beta must be strictly positive; it is {beta}.")
        self.beta = beta


ACTIVATIONS = {kind.__name__: kind for kind in (Identity, ReLU, ReLUBigM, SmoothReLU, SoftReLU)}


def require_meant(activation_models: Mapping[str, Any]) -> None:
    """An `OptionError` for an activation that would make another network of it."""
    for name, activation in activation_models.items():
        if name not in getattr(activation, "means", ()):
            raise OptionError(
                f"activation_models has {type(activation).__name__} for {name!r}: the network is evaluated "
                f"as it is, and what means {name!r} is taken, of {', '.join(ACTIVATIONS)}. Another function "
                "is another network: give that as the predictor."
            )
