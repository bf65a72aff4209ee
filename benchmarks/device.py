"""The network step on the CPU and on a GPU; answers are checked on the CPU both times."""

from __future__ import annotations

import torch

import dovetail as dt
from dovetail_study.experiment import ResultTable
from dovetail_study.problems.water import water

CASES = ((100, "2x16"), (100, "6x128"), (400, "6x128"), (400, "32x256"), (100, "lstm"), (400, "lstm"))
"""From where a GPU is idle to where it is not, and the one kind that goes step by step."""
ITERATIONS = 15
"""The same number on both, enough to measure a step."""


def run() -> ResultTable:
    table = ResultTable(
        "device",
        f"The network step on the CPU and on {_gpu() or 'no GPU'}: water, {ITERATIONS} iterations",
        [
            *("network", "n", "untouched", "potable, CPU", "potable, GPU", "flipped, CPU", "flipped, GPU"),
            *("verified", "NN s, CPU", "NN s, GPU", "CPU/GPU"),
        ],
    )
    if _gpu() is None:
        table.reading = "No GPU here: nothing was measured."
        return table
    method = dt.DualDecomposition(iterations=ITERATIONS, patience=None)
    for n, network in CASES:
        instance = water(n, network, allow_constant=True)
        _warm_up(instance.problem)
        here = dt.solve(instance.problem, method, time_limit=300, log=False)
        there = dt.solve(instance.problem, method, time_limit=300, device="cuda", log=False)
        seconds = [sum(result.trace.column("nn_seconds")) for result in (here, there)]
        verified = all(dt.check(instance.problem, result.x).within() for result in (here, there))
        table.rows.append(
            [
                network,
                str(n),
                str(instance.counts(here).untouched),
                *[str(instance.counts(result).potable) for result in (here, there)],
                *[str(instance.counts(result).flipped) for result in (here, there)],
                "yes" if verified else "NO",
                *[f"{s:.2f}" for s in seconds],
                f"{seconds[0] / seconds[1]:.1f}",
            ]
        )
    table.reading = (
        "A GPU adds in another order, so iterates and counts may differ. The network step runs in float64, "
        "which smaller GPUs do more slowly. Small networks gain nothing, because the call takes longer than "
        "the pass."
    )
    return table


def _gpu() -> str | None:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def _warm_up(problem: dt.Problem) -> None:
    dt.solve(problem, dt.DualDecomposition(iterations=1), time_limit=60, device="cuda", log=False)
