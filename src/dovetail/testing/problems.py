"""Small networks of all kinds, and the problems of the suites.

Architectures of small networks, initialised so that depth stays meaningful.

With torch's default initialisation a plain ReLU network loses a factor of about 2.4 of its signal
per layer: at 32 layers it is a constant and cannot be trained. He initialisation keeps the signal's
size; a residual branch whose last layer starts at zero starts as the identity.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dovetail.core.errors import OptionError
from dovetail.core.family_arrays import Family, FamilyRow
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem

FEATURES = 5


class GeluLayerNorm(nn.Module):
    """A smooth residual block with a layer norm."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.into = nn.Linear(features, 12)
        self.norm = nn.LayerNorm(12)
        self.out = nn.Linear(12, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(n, outputs) for (n, features)."""
        h = self.into(x)
        answer: Tensor = self.out(h + nn.functional.gelu(self.norm(h)))
        return answer


class Attention(nn.Module):
    """Features as tokens, one self-attention layer."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.embed = nn.Linear(1, 8)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.out = nn.Linear(8 * features, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(n, outputs) for (n, features)."""
        tokens = self.embed(x.unsqueeze(2))
        mixed, _ = self.attend(tokens, tokens, tokens, need_weights=False)
        answer: Tensor = self.out((tokens + mixed).flatten(1))
        return answer


class OwnFirstState(nn.Module):
    """A GRU whose code makes its own zeros, in the default dtype."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.gru = nn.GRU(1, 6, batch_first=True)
        self.out = nn.Linear(6, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(n, outputs) for (n, features)."""
        first = torch.zeros(1, len(x), 6)
        answer: Tensor = self.out(self.gru(x.unsqueeze(2), first)[0][:, -1])
        return answer


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


KINDS: dict[str, Callable[[int, int], nn.Module]] = {
    "mlp": lambda d, q: mlp(d, q, 2, 8),
    "conv1d": Convolutional,
    "residual": lambda d, q: ResidualNetwork(d, q, 2, 8),
    "lstm": lambda d, q: Recurrent(q),
    "gelu-layernorm": GeluLayerNorm,
    "attention": Attention,
    "dropout-batchnorm": lambda d, q: nn.Sequential(
        nn.Linear(d, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(0.5), nn.Linear(16, q)
    ),
    "own-first-state": OwnFirstState,
}
"""Each made for a number of features and of outputs."""

SMOOTH = {"lstm", "gelu-layernorm", "attention", "dropout-batchnorm", "own-first-state"}
"""The kinds with useful second derivatives."""


def make(
    kind: str, outputs: int = 1, dtype: torch.dtype = torch.float32, features: int = FEATURES
) -> nn.Module:
    """A network of a kind, in training mode, because users may forget to switch to evaluation mode."""
    torch.manual_seed(len(kind))
    net = KINDS[kind](features, outputs).to(dtype)
    for name, parameter in net.named_parameters():
        if "branches" in name:  # zero-initialised branches would make a residual network linear
            nn.init.normal_(parameter, std=0.3)
    return net.train()


def linear_net(
    weights: npt.ArrayLike, bias: npt.ArrayLike = 0.0, dtype: torch.dtype = torch.float64
) -> nn.Linear:
    """y = weights x + bias with exactly these numbers."""
    matrix = np.atleast_2d(np.asarray(weights, dtype=float))
    net = nn.Linear(matrix.shape[1], matrix.shape[0], dtype=dtype)
    with torch.no_grad():
        net.weight.copy_(torch.from_numpy(matrix))
        net.bias.copy_(torch.as_tensor(np.broadcast_to(bias, matrix.shape[0]).copy()))
    return net


class Parabola(nn.Module):
    """y = sum (x - centre)^2: smooth, convex, with a known minimum."""

    centre: torch.Tensor

    def __init__(self, centre: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("centre", torch.as_tensor(centre, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, 1) squared distances."""
        return ((x - self.centre) ** 2).sum(dim=1, keepdim=True)


def random_mlp(
    features: int,
    outputs: int = 1,
    width: int = 8,
    layers: int = 2,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> nn.Sequential:
    """A ReLU network with fixed random weights."""
    generator = torch.Generator().manual_seed(seed)
    parts: list[nn.Module] = []
    sizes = [features, *[width] * layers]
    for into, out in itertools.pairwise(sizes):
        parts += [nn.Linear(into, out, dtype=dtype), nn.ReLU()]
    net = nn.Sequential(*parts, nn.Linear(width, outputs, dtype=dtype))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=dtype) * 0.7)
    return net


def knapsack(sense: Literal["min", "max"] = "min") -> Problem:
    """Four binaries, at most two of them, and a linear network that prices the choice.

    min  x0 + y,  y = -3 x0 + 2 x1 - x2 - 2 x3   over  x0 + ... + x3 <= 2: the optimum is -4 at x0 = x3 = 1.
    The maximum is 2 at x1 = 1.
    """
    mip = Mip(
        cost=[1.0, 0.0, 0.0, 0.0, 1.0],
        A=[[1.0, 1.0, 1.0, 1.0, 0.0]],
        row_lower=[-np.inf],
        row_upper=[2.0],
        lower=[0.0, 0.0, 0.0, 0.0, -np.inf],
        upper=[1.0, 1.0, 1.0, 1.0, np.inf],
        integer=[True, True, True, True, False],
        sense=sense,
        names=["a", "b", "c", "d", "y"],
    )
    problem = Problem(mip)
    problem.add_predictor(linear_net([-3.0, 2.0, -1.0, -2.0]), [0, 1, 2, 3], [4], name="price")
    return problem


def bowl(target: tuple[float, float] = (0.5, -0.25)) -> Problem:
    """min y, y = |x - target|^2, x0 + x1 = 1, x in [-2, 2]^2: the optimum is (1 - sum target)^2 / 2."""
    mip = Mip(
        cost=[0.0, 0.0, 1.0],
        A=[[1.0, 1.0, 0.0]],
        row_lower=[1.0],
        row_upper=[1.0],
        lower=[-2.0, -2.0, -np.inf],
        upper=[2.0, 2.0, np.inf],
    )
    problem = Problem(mip)
    problem.add_predictor(Parabola(target), [0, 1], [2], name="bowl")
    return problem


def busy(n: int = 5, seed: int = 0, *, budget: float = 0.5) -> Problem:
    """A problem that takes many iterations: samples that share a budget, with one class each.

    With a budget near -1.2 n the constraints alone promise more than any solution has, so that no search ends
    by meeting their bound.
    """
    rng = np.random.default_rng(seed)
    x = n + np.arange(3 * n).reshape(n, 3)
    A = np.zeros((1, 4 * n))
    A[0, x.ravel()] = 1.0
    mip = Mip(
        cost=np.repeat([1.0, 0.0], [n, 3 * n]), A=A, row_lower=[-np.inf], row_upper=[budget],
        lower=np.concatenate([np.zeros(n), rng.uniform(-1, 0, 3 * n)]), upper=1.0,
        integer=np.repeat([True, False], [n, 3 * n]), sense="max",
    )  # fmt: skip
    problem = Problem(mip)
    problem.add_predictor(random_mlp(3, seed=10), x, np.arange(n)[:, None], output_type="classification")
    return problem


def offers_of(shard: int | npt.ArrayLike) -> Problem:
    """Sixty blocks of a shard by its number, or one for each of (n, 2) rows: an offer to each, 20 in all."""
    rows = np.random.default_rng(shard).uniform(-1.0, 1.0, (60, 2)) if isinstance(shard, int) else shard
    rows = np.asarray(rows)
    problem = Problem(sense="max")
    made = problem.add_template(
        len(rows),
        {"offer": Family(upper=1.0), "about": Family(fixed=rows), "buys": Family(lower=-np.inf, cost=1.0)},
        coupling=[FamilyRow({"offer": 1.0}, upper=20.0, name="budget")],
    )
    problem.add_predictor(random_mlp(3, seed=4), made["offer", "about"], made["buys"])
    return problem
