"""Architectures of small networks, initialised so that depth stays meaningful.

With torch's default initialisation a plain ReLU network loses a factor of about 2.4 of its signal
per layer: at 32 layers it is a constant and cannot be trained. He initialisation keeps the signal's
size; a residual branch whose last layer starts at zero starts as the identity.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from dovetail.core.errors import OptionError


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


class ResidualNetwork(nn.Module):
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
