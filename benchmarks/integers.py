"""What the integer search buys: the same problems without it."""

from __future__ import annotations

from dataclasses import dataclass

import dovetail as dt
from benchmarks.cells import mean_found
from benchmarks.parallel import each
from dovetail_study.experiment import ResultTable

PROBLEMS = {"heat, 24 hours": 10.0, "heat, 48 hours": 20.0, "dispatch 240 x 24": 30.0}
"""Seconds for each."""
VARIANTS = {
    "all of it": dt.Auto(),
    "no integer search": dt.Auto(integer_search=False),
}
SEEDS = (0, 1, 2)
"""Each is an instance of its own, with its own networks."""


@dataclass(frozen=True)
class Run:
    """One solve."""

    problem: str
    variant: str
    seed: int


def run(jobs: int) -> ResultTable:
    limits = ", ".join(f"{name} {seconds:g} s" for name, seconds in PROBLEMS.items())
    table = ResultTable(
        "integers",
        f"With and without integer search (mean of instances {', '.join(map(str, SEEDS))})",
        ["variant", *PROBLEMS],
        reading=(
            "Heat: cost, lower is better. Dispatch: smallest efficiency, higher is better. "
            f"Time limits: {limits}."
        ),
    )
    tasks = [Run(name, variant, seed) for variant in VARIANTS for name in PROBLEMS for seed in SEEDS]
    found = dict(zip(tasks, each(_solve, tasks, jobs), strict=True))
    for variant in VARIANTS:
        cells = []
        for name in PROBLEMS:
            values = [found[Run(name, variant, seed)] for seed in SEEDS]
            cells.append(mean_found([value for value in values if value is not None], len(values), 5))
        table.rows.append([variant, *cells])
    return table


def _solve(task: Run) -> float | None:
    from dovetail_study.problems.dispatch import dispatch
    from dovetail_study.problems.heat import heat

    if task.problem.startswith("heat"):
        problem = heat(int(task.problem.split()[1]), "3x32", seed=task.seed).problem
    else:
        problem = dispatch(seed=task.seed).problem
    method = VARIANTS[task.variant]
    return dt.solve(problem, method, time_limit=PROBLEMS[task.problem], log=False).objective
