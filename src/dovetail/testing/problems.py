"""Small problems with known answers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from dovetail.core.family_arrays import Family, FamilyRow
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem


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


def busy(n: int = 5, seed: int = 0) -> Problem:
    """Enough to do for many iterations: samples under a common budget, a class each."""
    rng = np.random.default_rng(seed)
    x = n + np.arange(3 * n).reshape(n, 3)
    A = np.zeros((1, 4 * n))
    A[0, x.ravel()] = 1.0
    mip = Mip(
        cost=np.repeat([1.0, 0.0], [n, 3 * n]), A=A, row_lower=[-np.inf], row_upper=[0.5],
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
