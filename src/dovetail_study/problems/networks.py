"""Networks for the benchmark problems by name: how each is built, trained and scaled."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import OptionError
from dovetail.testing.problems import Convolutional, Recurrent, ResidualNetwork, mlp

KINDS = "LxW such as 2x16, conv1d, residual, residual-LxW, lstm"
"""The names of the networks of `build`, for its message."""


@dataclass(frozen=True)
class Recipe:
    """How a kind of network is trained well."""

    rate: float = 1e-3
    decay: float = 1e-3
    """Weight decay, against overfitting to small data."""


def recipe(kind: str) -> Recipe:
    """Recurrent networks need longer steps and less decay: the default decay keeps an LSTM's gates half
    open."""
    return Recipe(rate=5e-3, decay=1e-4) if kind == "lstm" else Recipe()


def build(kind: str, features: int, outputs: int = 1, *, init: str = "he") -> nn.Module:
    """A network by name: "2x16" is two hidden layers of 16; also conv1d, residual, lstm.

    `init="default"` keeps torch's own initialisation of a plain network, as in the paper.
    """
    if init not in ("he", "default"):
        raise OptionError(f'init is {init!r}; give "he" or "default".')
    plain = re.fullmatch(r"(\d+)x(\d+)", kind)
    if plain:
        return mlp(features, outputs, int(plain[1]), int(plain[2]), init=init)
    if kind == "conv1d":
        return Convolutional(features, outputs)
    residual = re.fullmatch(r"residual(?:-(\d+)x(\d+))?", kind)
    if residual:
        return ResidualNetwork(features, outputs, int(residual[1] or 8), int(residual[2] or 32))
    if kind == "lstm":
        return Recurrent(outputs)
    raise OptionError(f"network {kind!r} is not known; give {KINDS}.")


@dataclass(frozen=True, eq=False)
class Scale:
    """Mean and standard deviation, per column (or of one vector)."""

    mean: FloatArray
    deviation: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> Scale:
        """The scale of the rows of `values`; a constant column is only shifted."""
        mean, deviation = values.mean(axis=0), values.std(axis=0)
        constant = deviation <= 1e-9 * np.maximum(1.0, np.abs(mean))
        return cls(np.asarray(mean), np.where(constant, 1.0, deviation))

    def standard(self, values: FloatArray) -> FloatArray:
        """`values` in standard units."""
        return (values - self.mean) / self.deviation


def ends(network: nn.Module) -> tuple[nn.Linear, nn.Linear]:
    """The first and the last layer, if both are linear: a scaling can be folded into them."""
    first: object = None
    last: object = None
    if isinstance(network, ResidualNetwork):
        first, last = network.stem, network.head
    elif isinstance(network, nn.Sequential) and len(network) > 1:
        first, last = network[0], network[-1]
    if not (isinstance(first, nn.Linear) and isinstance(last, nn.Linear)):
        raise OptionError(
            f"{type(network).__name__}: a scaling cannot be folded into this network, whose first and last "
            "layers are not both linear; give LxW such as 2x16, or residual."
        )
    return first, last


def fold(network: nn.Module, into: Scale, out: Scale) -> None:
    """Change, in place, a network of standard units into the same one of raw units, in float64."""
    first, last = ends(network)
    network.double()
    shift, width = torch.as_tensor(into.mean), torch.as_tensor(into.deviation)
    with torch.no_grad():
        first.weight.div_(width)
        first.bias.sub_(first.weight @ shift)
        last.weight.mul_(float(out.deviation))
        last.bias.mul_(float(out.deviation)).add_(float(out.mean))
