"""Networks of every kind the suites run over, small and with fixed random weights."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from dovetail.testing.architectures import Convolutional, Recurrent, ResidualNetwork, mlp

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
"""The kinds whose second derivatives say something."""


def make(
    kind: str, outputs: int = 1, dtype: torch.dtype = torch.float32, features: int = FEATURES
) -> nn.Module:
    """A network of a kind, in training mode, as a careless user would pass it."""
    torch.manual_seed(len(kind))
    net = KINDS[kind](features, outputs).to(dtype)
    for name, parameter in net.named_parameters():
        if "branches" in name:  # zero-initialised branches would make a residual network linear
            nn.init.normal_(parameter, std=0.3)
    return net.train()
