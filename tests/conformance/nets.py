"""The networks of the public suites, and others in more dtypes."""

from __future__ import annotations

import torch
from torch import nn

from dovetail.testing.problems import FEATURES, KINDS, SMOOTH, Recurrent, make

__all__ = ["DTYPES", "FEATURES", "KINDS", "SMOOTH", "make"]


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
    "float16-lstm": (lambda: Recurrent(1).half(), torch.float16, 5e-3),
    "float64-head-on-a-float32-body": (ExactHead, torch.float32, 1e-5),
    "float16-in-the-code": (HalfInside, torch.float32, 5e-3),
    "integer-buffer": (Picks, torch.float16, 5e-3),
}
"""Networks in other dtypes: how to make one, what it takes, and how close a float64 copy can be."""
