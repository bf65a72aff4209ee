"""Problems of many kinds, each of which makes a time limit hard to keep in a way of its own."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

import dovetail as dt
from benchmarks.made_up import made_up
from benchmarks.reference import build as read_reference
from dovetail_study.problems import networks
from dovetail_study.zoo import KINDS as ZOO
from dovetail_study.zoo import build as build_kind

NETWORKS = 1000
"""Each has to be asked by itself, so that one pass over all takes long."""
WIDTH = 7000
"""Two hidden layers of so many neurons have 98 million weights between them and their neighbours."""


def network(inputs: int, hidden: Sequence[int], seed: int = 0, activation: type[nn.Module] = nn.ReLU) -> Any:
    """Weights by chance, one output."""
    torch.manual_seed(seed)
    parts: list[nn.Module] = []
    for into, out in itertools.pairwise((inputs, *hidden)):
        parts += [nn.Linear(into, out), activation()]
    return nn.Sequential(*parts, nn.Linear(hidden[-1], 1))


def joined(predictors: Sequence[object]) -> dt.Problem:
    """Blocks with two inputs each, under a common budget; their outputs are the cost."""
    count = len(predictors)
    problem = dt.Problem(
        dt.Mip(
            cost=np.tile([0.0, 0.0, 1.0], count), A=[np.tile([1.0, 1.0, 0.0], count)],
            row_lower=[-np.inf], row_upper=[0.3 * count],
            lower=np.tile([-1.0, -1.0, -np.inf], count), upper=np.tile([1.0, 1.0, np.inf], count),
        )
    )  # fmt: skip
    for k, predictor in enumerate(predictors):
        problem.add_predictor(predictor, [3 * k, 3 * k + 1], [3 * k + 2])
    return problem


def one(predictor: object, inputs: int, whole: int = 0, most: float = 1.0) -> dt.Problem:
    """The least output over a box and a row; the first inputs are whole numbers."""
    ends = np.append(np.ones(inputs), np.inf)
    row = np.append(np.ones(inputs), 0.0)[None]
    problem = dt.Problem(
        dt.Mip(
            np.eye(inputs + 1)[-1], A=row, row_lower=[-np.inf], row_upper=[most], lower=-ends, upper=ends,
            integer=np.arange(inputs + 1) < whole,
        )
    )  # fmt: skip
    problem.add_predictor(predictor, np.arange(inputs), [inputs])
    return problem


def slow() -> dt.Problem:
    """One second per call."""

    def asked(X: np.ndarray) -> np.ndarray:
        time.sleep(1.0)
        return np.sum(np.abs(X - 0.3), axis=1)

    return joined([asked])


def large_host(rows: int, columns: int) -> dt.Problem:
    """A packing problem in whole numbers, with a small network in a corner."""
    rng = np.random.default_rng(0)
    entries = 16 * columns
    places = rng.integers(0, rows, entries), rng.integers(0, columns, entries)
    A = sp.csr_array((rng.integers(1, 9, entries).astype(float), places), shape=(rows, columns + 1))
    problem = dt.Problem(
        dt.Mip(
            np.append(-rng.uniform(1.0, 3.0, columns), 5.0), A=A, row_lower=np.full(rows, -np.inf),
            row_upper=rng.integers(10, 40, rows).astype(float),
            lower=np.append(np.zeros(columns), -np.inf), upper=np.append(np.full(columns, 3.0), np.inf),
            integer=np.arange(columns + 1) < columns,
        )
    )  # fmt: skip
    problem.add_predictor(network(6, (32, 32)), np.arange(6), [columns])
    return problem


def convolutions() -> Any:
    """Of pictures of 12 x 12."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Unflatten(1, (1, 12, 12)), nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2),
        nn.ReLU(), nn.Flatten(), nn.Linear(400, 64), nn.ReLU(), nn.Linear(64, 1),
    )  # fmt: skip


def wavy(X: np.ndarray) -> np.ndarray:
    """A plain function."""
    return np.sum(np.abs(X - 0.3), axis=1) + np.sin(5.0 * X[:, 0])


def _reference(path: Path) -> dt.Problem:
    problem: dt.Problem = read_reference(dict(np.load(path, allow_pickle=False)))
    return problem


KINDS: dict[str, Callable[[], dt.Problem]] = {
    "a predictor of 1 s per call": slow,
    "1,000 different networks": lambda: joined([networks.build("2x16", 2) for _ in range(NETWORKS)]),
    "98 million weights": lambda: joined([network(2, (WIDTH, WIDTH, WIDTH))]),
    **{
        f"water, n = {n:,}, {shape}": partial(lambda n, shape: made_up(n, shape).problem, n, shape)
        for n, shape in [
            (25, "2x16"), (100, "4x64"), (100, "6x128"), (400, "4x32"), (1000, "2x16"), (10_000, "2x16"),
        ]
    },
    "4,000 rows": partial(large_host, 4_000, 8_000),
    "20,000 rows": partial(large_host, 20_000, 40_000),
    "tanh, 12 inputs": lambda: one(network(12, (64, 64), activation=nn.Tanh), 12),
    "tanh, 40 inputs": lambda: one(network(40, (256, 256), activation=nn.Tanh), 40),
    "ReLU, 6x128": lambda: one(network(20, (128,) * 6), 20, 7),
    "GELU, 6x128": lambda: one(network(20, (128,) * 6, activation=nn.GELU), 20, 7),
    "convolutions": lambda: one(convolutions(), 144, most=10.0),
    "plain function": lambda: one(wavy, 4),
    **{
        f"{kind}, size {size}": partial(build_kind, kind, size, 0)
        for kind in ZOO
        for size in (2, 3)
    },
}  # fmt: skip


def kinds(data: Path | None) -> dict[str, Callable[[], dt.Problem]]:
    """All of them, with the reference files where their folder is known."""
    files = sorted((data / "reference").glob("*.npz")) if data is not None else []
    return KINDS | {file.stem: partial(_reference, file) for file in files}
