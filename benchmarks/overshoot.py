"""By how much solves run past their time limit: all methods, on what makes a limit hard to keep."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch

import dovetail as dt
from benchmarks.made_up import made_up
from dovetail.experiments.table import Table
from dovetail.methods import METHODS
from dovetail.problems import networks

NETWORKS = 1000
"""Each has to be asked by itself, so that one pass over all takes long."""
WIDTH = 7000
"""Two hidden layers of so many neurons have 98 million weights between them and their neighbours."""
LIMITS = (1.0, 3.0)
"""Seconds: short, since a limit is hard to keep where one call takes as long."""
ALLOWED, SHARE = 2.0, 0.05
"""Seconds past the limit that are allowed, or this share of it, whichever is more."""


def run() -> Table:
    """Each method once on each problem, with each limit."""
    rows, worst = [], 0.0
    counts = [0, 0]
    for name, build in PROBLEMS.items():
        problem = build()
        for method in METHODS:
            measured = [_measured(problem, method, limit) for limit in LIMITS]
            if all(over is None for over, _ in measured):
                continue  # big-M refuses what has no layers, or too many
            for (over, _), limit in zip(measured, LIMITS, strict=True):
                if over is not None:
                    worst = max(worst, over)
                    counts[0] += over <= max(ALLOWED, SHARE * limit)
                    counts[1] += 1
            told = ["-" if over is None else f"{over:+.2f}" for over, _ in measured]
            rows.append([name, method, *told, ", ".join(dict.fromkeys(said for _, said in measured))])
    table = Table(
        "overshoot",
        "Seconds past the time limit",
        ["problem", "method", *(f"limit {limit:g} s" for limit in LIMITS), "ended"],
        rows,
    )
    table.reading = (
        f"{counts[0]} of {counts[1]} runs within max({ALLOWED:g} s, {100 * SHARE:g} %) of their limit; "
        f"the worst took {worst:.2f} s more."
    )
    return table


def _measured(problem: dt.Problem, method: str, limit: float) -> tuple[float | None, str]:
    begin = time.perf_counter()
    try:
        result = dt.solve(problem, method, time_limit=limit, log=False)
    except dt.UnsupportedError:
        return None, "refused"
    return max(
        0.0, time.perf_counter() - begin - limit
    ), f"{result.status.value} ({result.stop_reason.value})"


def _ends() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Columns of the inputs and the output of one block after another."""
    k = 0
    while True:
        yield np.array([k, k + 1]), np.array([k + 2])
        k += 3


def _joined(predictors: list[object]) -> dt.Problem:
    """Blocks with two inputs each, under a common budget; their outputs are the cost."""
    count = len(predictors)
    problem = dt.Problem(
        dt.Mip(
            cost=np.tile([0.0, 0.0, 1.0], count),
            A=[np.tile([1.0, 1.0, 0.0], count)],
            row_lower=[-np.inf],
            row_upper=[0.3 * count],
            lower=np.tile([-1.0, -1.0, -np.inf], count),
            upper=np.tile([1.0, 1.0, np.inf], count),
        )
    )
    for predictor, (inputs, output) in zip(predictors, _ends(), strict=False):
        problem.add_predictor(predictor, inputs, output)
    return problem


def _slow() -> dt.Problem:
    def slow(X: np.ndarray) -> np.ndarray:
        time.sleep(1.0)
        return np.sum(np.abs(X - 0.3), axis=1)

    return _joined([slow])


def _many() -> dt.Problem:
    torch.manual_seed(0)
    return _joined([networks.build("2x16", 2) for _ in range(NETWORKS)])


def _large() -> dt.Problem:
    torch.manual_seed(0)
    sizes = (2, WIDTH, WIDTH, WIDTH, 1)
    parts: list[torch.nn.Module] = []
    for into, out in itertools.pairwise(sizes):
        parts += [torch.nn.Linear(into, out), torch.nn.ReLU()]
    return _joined([torch.nn.Sequential(*parts[:-1])])


PROBLEMS: dict[str, Callable[[], dt.Problem]] = {
    "a predictor of 1 s per call": _slow,
    "1,000 different networks": _many,
    "98 million weights": _large,
    "water, n = 100, 4x64": lambda: made_up(100, "4x64").problem,
    "water, n = 1,000, 2x16": lambda: made_up(1000, "2x16").problem,
}
