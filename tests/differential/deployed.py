"""What is claimed of a network, against the network itself: every integer input, evaluated as it is deployed.

The other generators compute the truth from weights. Here the module is the truth, whatever its layers look
like: it is asked for all inputs at once, for each alone, and in parts.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

import dovetail as dt

TABLES = dt.Auto(effort=1)
WRITTEN = dt.Auto(effort=1, tables=False)
"""The two ways of `auto` to a proof over integers."""


@dataclass(frozen=True)
class Case:
    """A problem over integers, the module whose answers are its outputs, and what the outputs are made of."""

    problem: dt.Problem
    module: nn.Module
    dtype: torch.dtype
    threshold: float | None = None
    """None for numbers; else outputs are classes."""

    def answers(self, X: np.ndarray, rows: int) -> np.ndarray:
        """What the module says of each row of X, asked for so many rows at a time."""
        with torch.no_grad():
            parts = [
                self.module(torch.tensor(X[k : k + rows], dtype=self.dtype)) for k in range(0, len(X), rows)
            ]
        values = torch.cat(parts).double().numpy().reshape(len(X), -1)
        if self.threshold is None:
            return values
        if values.shape[1] == 1:
            return (values >= self.threshold).astype(float)
        return np.eye(values.shape[1])[np.argmax(values, axis=1)]

    def points(self) -> np.ndarray:
        """Every choice of the integers, with outputs as the module gives them in batches of several sizes."""
        mip = self.problem.mip
        (block,) = self.problem.blocks
        ranges = [np.arange(mip.lower[j], mip.upper[j] + 1) for j in block.inputs[0]]
        X = np.array(list(itertools.product(*ranges)))
        points = np.zeros((3, len(X), mip.n_columns))
        points[:, :, block.inputs[0]] = X
        for k, rows in enumerate((1, 7, len(X))):
            points[k][:, block.outputs[0]] = self.answers(X, rows)
        return points.reshape(-1, mip.n_columns)


def grid_problem(
    rng: np.random.Generator, outputs: int, *, classes: bool, offset: float = 0.0, widest: int = 8
) -> dt.Problem:
    """A few integers, a row on them, and outputs that carry the cost; `offset` is taken off the objective."""
    k = int(rng.integers(2, 4))
    lower = rng.integers(-4, 1, k).astype(float)
    upper = lower + rng.integers(2, 1 + (widest if k == 2 else widest // 2), k)
    own = 10.0 ** rng.uniform(-6, -1)
    cost = np.concatenate([rng.normal(0, own, k), rng.choice([-1.0, 1.0], outputs)])
    A = np.concatenate([np.ones(k), np.zeros(outputs)])[None, :]
    free = np.full(outputs, np.inf)
    mip = dt.Mip(
        cost=cost,
        A=A,
        row_lower=[-np.inf],
        row_upper=[float(np.sum(upper)) - 1.0],
        lower=np.concatenate([lower, np.zeros(outputs) if classes else -free]),
        upper=np.concatenate([upper, np.ones(outputs) if classes else free]),
        integer=np.concatenate([np.ones(k, bool), np.full(outputs, classes)]),
        sense=str(rng.choice(["min", "max"])),
        offset=-offset * float(np.sum(cost[k:])),
    )
    return dt.Problem(mip)


def network(
    rng: np.random.Generator, features: int, outputs: int, dtype: torch.dtype, *, offset: float = 0.0
) -> nn.Sequential:
    """A small ReLU network; with an offset its outputs lie about there, by its bias or by its neurons."""
    width = int(rng.integers(3, 7))
    net = nn.Sequential(
        nn.Linear(features, width, dtype=dtype), nn.ReLU(), nn.Linear(width, outputs, dtype=dtype)
    )
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.as_tensor(rng.normal(0, 0.7, tuple(parameter.shape))))
        if offset == 0.0:
            return net
        flat = min(10.0 ** rng.uniform(0, 4) * 1e-7 * offset, 1.0)  # so that last digits decide what is best
        if rng.random() < 0.5:
            net[2].weight *= flat
            net[2].bias += offset
        else:  # large numbers that are rounded, added and taken off each other
            net[0].weight *= flat
            net[0].bias += offset * torch.as_tensor(rng.uniform(0.5, 1.0, width), dtype=dtype)
            at_0 = net[:2](torch.zeros(1, features, dtype=dtype))
            net[2].bias += offset - (at_0 @ net[2].weight.T)[0]
    return net


def faults(case: Case, result: dt.Result, where: str) -> list[str]:
    """Claims of a result that the module contradicts."""
    mip = case.problem.mip
    points = case.points()
    activity = points @ mip.A.toarray().T
    beyond = np.maximum(mip.row_lower - activity, activity - mip.row_upper).max(axis=1, initial=0.0)
    outside = np.maximum(mip.lower - points, points - mip.upper).max(axis=1)
    points = points[np.maximum(beyond, outside) <= 1e-12]  # not by tolerance: a bound is one of exact rows
    worth = mip.sign * (points @ mip.cost + mip.offset)
    said = []
    if result.status in ("error", "unbounded") or (result.status == "infeasible" and len(points)):
        said.append(f"{where}: status {result.status}, {len(points)} points are feasible: {result.message}")
    if len(points) == 0:
        return said
    best = float(worth.min())
    slack = 1e-6 * abs(best) + 1e-9
    if result.bound is not None and mip.sign * result.bound > best + slack:
        said.append(f"{where}: bound {result.bound}, but {mip.sign * best} is attained")
    beaten = result.status == "optimal" and mip.sign * result.objective > best + 2.0 * slack
    if beaten:  # by more than the objective in one batch differs from that in another
        said.append(f"{where}: {result.objective} called optimal, but {mip.sign * best} is attained")
    return said
