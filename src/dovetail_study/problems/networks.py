"""Networks for the benchmark problems, initialised so that depth stays meaningful.

With torch's default initialisation a plain ReLU network loses a factor of about 2.4 of its signal
per layer: at 32 layers it is a constant and cannot be trained. He initialisation keeps the signal's
size; a residual branch whose last layer starts at zero starts as the identity.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import OptionError

KINDS = "LxW such as 2x16, conv1d, residual, residual-LxW, lstm"
"""What `build` knows, for its message."""


@dataclass(frozen=True)
class Recipe:
    """How a kind of network is trained well."""

    rate: float = 1e-3
    decay: float = 1e-3
    """Of the weights, against learning small data by heart."""


def recipe(kind: str) -> Recipe:
    """Recurrent networks need longer steps and less decay: the usual one keeps an LSTM's gates half open."""
    return Recipe(rate=5e-3, decay=1e-4) if kind == "lstm" else Recipe()


def build(kind: str, features: int, outputs: int = 1, *, init: str = "he") -> nn.Module:
    """A network by name: "2x16" is two hidden layers of 16; also conv1d, residual, lstm.

    `init="default"` leaves torch's own initialisation in a plain network, as the paper did.
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
        return Residual(features, outputs, int(residual[1] or 8), int(residual[2] or 32))
    if kind == "lstm":
        return Recurrent(outputs)
    raise OptionError(f"network {kind!r} is not known; give {KINDS}.")


def mlp(features: int, outputs: int, layers: int, width: int, *, init: str = "he") -> nn.Sequential:
    """`layers` hidden ReLU layers of `width`."""
    if layers < 1 or width < 1:
        raise OptionError(f"an {layers}x{width} network has no hidden layer; give at least 1x1.")
    parts: list[nn.Module] = []
    sizes = [features, *[width] * layers]
    for into, out in itertools.pairwise(sizes):
        linear = nn.Linear(into, out)
        if init == "he":
            nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
            nn.init.zeros_(linear.bias)
        parts += [linear, nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(width, outputs))


class Convolutional(nn.Module):
    """Convolutions along the features, taken as a sequence with one channel."""

    def __init__(self, features: int, outputs: int, channels: int = 16) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, channels, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(channels, channels, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Linear(channels * features, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, outputs)."""
        result: Tensor = self.head(self.body(x.unsqueeze(1)))
        return result


class Residual(nn.Module):
    """`blocks` residual branches of two layers each; every branch starts as zero."""

    def __init__(self, features: int, outputs: int, blocks: int, width: int) -> None:
        super().__init__()
        self.stem = nn.Linear(features, width)
        self.branches = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)) for _ in range(blocks)
        )
        for branch in self.branches:
            last = branch[2]  # type: ignore[index]
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, outputs)."""
        h = self.stem(x)
        for branch in self.branches:
            h = h + branch(torch.relu(h))
        result: Tensor = self.head(torch.relu(h))
        return result


class Recurrent(nn.Module):
    """An LSTM that reads the features one by one."""

    def __init__(self, outputs: int, hidden: int = 32) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, outputs)."""
        states, _ = self.lstm(x.unsqueeze(2))
        result: Tensor = self.head(states[:, -1])
        return result


@dataclass(frozen=True, eq=False)
class Scale:
    """Mean and standard deviation, per column (or of one vector)."""

    mean: FloatArray
    deviation: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> Scale:
        """Of the rows of `values`; a constant column is only shifted, there is nothing to divide by."""
        mean, deviation = values.mean(axis=0), values.std(axis=0)
        constant = deviation <= 1e-9 * np.maximum(1.0, np.abs(mean))
        return cls(np.asarray(mean), np.where(constant, 1.0, deviation))

    def standard(self, values: FloatArray) -> FloatArray:
        """`values` in standard units."""
        return (values - self.mean) / self.deviation


def ends(network: nn.Module) -> tuple[nn.Linear, nn.Linear]:
    """The first and the last layer, where both are linear: the two that a scaling can be folded into."""
    first: object = None
    last: object = None
    if isinstance(network, Residual):
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
