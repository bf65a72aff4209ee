"""Networks of every kind the suites run over, small and with fixed random weights."""

from __future__ import annotations

import torch
from torch import nn

from dovetail.problems import networks

FEATURES = 5


class GeluLayerNorm(nn.Module):
    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.into = nn.Linear(features, 12)
        self.norm = nn.LayerNorm(12)
        self.out = nn.Linear(12, outputs)

    def forward(self, x):
        h = self.into(x)
        return self.out(h + nn.functional.gelu(self.norm(h)))


class Attention(nn.Module):
    """Features as tokens, one self-attention layer."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.embed = nn.Linear(1, 8)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.out = nn.Linear(8 * features, outputs)

    def forward(self, x):
        tokens = self.embed(x.unsqueeze(2))
        mixed, _ = self.attend(tokens, tokens, tokens, need_weights=False)
        return self.out((tokens + mixed).flatten(1))


class WithDropoutAndBatchNorm(nn.Module):
    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(0.5), nn.Linear(16, outputs)
        )

    def forward(self, x):
        return self.body(x)


class OwnFirstState(nn.Module):
    """A GRU whose code makes its own zeros, in the default dtype."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.gru = nn.GRU(1, 6, batch_first=True)
        self.out = nn.Linear(6, outputs)

    def forward(self, x):
        first = torch.zeros(1, len(x), 6)
        return self.out(self.gru(x.unsqueeze(2), first)[0][:, -1])


def tanh_mlp() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(FEATURES, 16), nn.Tanh(), nn.Linear(16, 1))


class ExactHead(nn.Module):
    """A float32 body under a float64 head, which comes first in the list of parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.body = nn.Linear(4, 1).double(), nn.Linear(FEATURES, 4)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)).double())


class HalfInside(nn.Module):
    """Casts written into the code, in three ways."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(FEATURES, 4).half(), nn.Linear(4, 1)

    def forward(self, x):
        scale = torch.ones(1, dtype=torch.float16)
        return self.head((self.body(x.half()) * scale).to(torch.float32))


class Picks(nn.Module):
    """An integer buffer beside float16 weights."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("order", torch.arange(FEATURES).flip(0))
        self.body = nn.Linear(FEATURES, 1).half()

    def forward(self, x):
        return self.body(x[:, self.order])


DTYPES = {
    "float16": (lambda: tanh_mlp().half(), torch.float16, 5e-3),
    "bfloat16": (lambda: tanh_mlp().bfloat16(), torch.bfloat16, 5e-2),
    "float16-lstm": (lambda: networks.build("lstm", FEATURES, 1).half(), torch.float16, 5e-3),
    "float64-head-on-a-float32-body": (ExactHead, torch.float32, 1e-5),
    "float16-in-the-code": (HalfInside, torch.float32, 5e-3),
    "integer-buffer": (Picks, torch.float16, 5e-3),
}
"""Networks in other dtypes: how to make one, what it takes, and how close a float64 copy can be."""

KINDS = {
    "mlp": lambda d, q: networks.mlp(d, q, 2, 8),
    "conv1d": lambda d, q: networks.build("conv1d", d, q),
    "residual": lambda d, q: networks.build("residual-2x8", d, q),
    "lstm": lambda d, q: networks.build("lstm", d, q),
    "gelu-layernorm": GeluLayerNorm,
    "attention": Attention,
    "dropout-batchnorm": WithDropoutAndBatchNorm,
    "own-first-state": OwnFirstState,
}
SMOOTH = {"lstm", "gelu-layernorm", "attention", "dropout-batchnorm", "own-first-state"}


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
