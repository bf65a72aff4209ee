"""Random small networks of every kind that a bound may be asked of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

ELEMENTWISE: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "leaky": lambda: nn.LeakyReLU(0.1),
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "gelu-tanh": lambda: nn.GELU(approximate="tanh"),
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
    "elu": nn.ELU,
    "relu6": nn.ReLU6,
    "hardtanh": nn.Hardtanh,
}
"""Functions of single values."""
LAYERED = ("residual", "convolution", "norm", "pool", "softmax", "recurrent", "flatten")
"""Networks with something else in them."""
KINDS = (*ELEMENTWISE, *LAYERED)


class Residual(nn.Module):
    """x + relu(W x) between two layers."""

    def __init__(self, d: int, width: int) -> None:
        super().__init__()
        self.first, self.inner = nn.Linear(d, width), nn.Linear(width, width)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        X = self.first(X)
        return X + torch.relu(self.inner(X))


class Recurrent(nn.Module):
    """The inputs as a sequence of single values; the last state."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.GRU(1, width, batch_first=True)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.cell(X[:, :, None])[0][:, -1]


def _body(kind: str, d: int, width: int) -> list[nn.Module]:
    if kind in ELEMENTWISE:
        return [nn.Linear(d, width), ELEMENTWISE[kind]()]
    if kind == "residual":
        return [Residual(d, width)]
    if kind == "convolution":
        return [nn.Unflatten(1, (1, d)), nn.Conv1d(1, width, d), nn.ReLU(), nn.Flatten()]
    if kind == "norm":
        return [nn.Linear(d, width), nn.LayerNorm(width), nn.ReLU()]
    if kind == "pool":
        return [
            nn.Linear(d, 2 * width), nn.Unflatten(1, (1, 2 * width)), nn.MaxPool1d(2), nn.Flatten(),
        ]  # fmt: skip
    if kind == "softmax":
        return [nn.Linear(d, width), nn.Softmax(dim=1)]
    if kind == "recurrent":
        return [Recurrent(width)]
    return [nn.Flatten(), nn.Linear(d, width), nn.ReLU()]


def make(
    kind: str, points: np.ndarray, outputs: int, dtype: torch.dtype, rng: np.random.Generator
) -> nn.Sequential:
    """A network whose outputs spread over about 1 around 0 on the given inputs, in eval mode."""
    torch.manual_seed(int(rng.integers(2**31)))
    width, depth = int(rng.integers(3, 7)), int(rng.integers(1, 4))
    net = nn.Sequential(*_body(kind, points.shape[1], width))
    function = ELEMENTWISE.get(kind, nn.ReLU)
    for _ in range(depth - 1):
        net.extend([nn.Linear(width, width), function()])
    net.append(nn.Linear(width, outputs))
    net.double()
    X = torch.from_numpy(points)
    with torch.no_grad():
        for layer in net:  # kinks and bends lie where the inputs are
            if isinstance(layer, nn.Linear):
                layer.weight.normal_(0.0, 1.3 / np.sqrt(layer.in_features))
                layer.bias.copy_(-(X.mean(0) + X.std(0) * 0.3) @ layer.weight.T)
                layer.bias.add_(torch.randn_like(layer.bias) * 0.3)
            X = layer(X)
        last = net[-1]
        spread, middle = X.std(0) + 1e-3, X.median(0).values
        last.weight.div_(spread[:, None])
        last.bias.copy_((last.bias - middle) / spread)
    return net.to(dtype).eval()
