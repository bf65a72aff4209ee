"""What each part of the default method buys: the same problems with one part taken away.

The reference files are not part of the project: give their folder by --data or DOVETAIL_DATA.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import mean

import numpy as np

import dovetail as dt
from benchmarks.reference import build, judge
from dovetail.experiments.table import Table

SEEDS = (0, 1, 2)
PROBLEMS = {
    "wine_2x16": 10.0,
    "wine_3x16": 10.0,
    "function_3x16": 2.0,
    "diet_2x16": 10.0,
    "tree_8x32": 10.0,
    "water_2x16_n25": 5.0,
    "water_2x16_n100": 10.0,
    "water_4x32_n400": 20.0,
}
"""Seconds for each."""
VARIANTS = {
    "all of it": dt.Auto(),
    "one width for all inputs": dt.Auto(scaling="none"),
    "no bundle": dt.Auto(memory=0),
    "one start": dt.Auto(effort=1),
    "no columns": dt.Auto(columns=False),
    "no tables": dt.Auto(tables=False),
    "no exact leg": dt.Auto(exact=False),
}


def run(data: Path | None, jobs: int) -> Table:
    limits = ", ".join(f"{name} {seconds:g} s" for name, seconds in PROBLEMS.items())
    table = Table(
        "ablation",
        f"The default method with one part taken away (mean of seeds {', '.join(map(str, SEEDS))})",
        ["variant", *PROBLEMS],
        reading=(
            f"Objectives, lower is better; * where every seed was proved optimal. Time limits: {limits}. "
            "'one start' makes one descent and one pricing round in each phase and then stops."
        ),
    )
    if data is None or not (data / "reference").is_dir():
        table.reading = (
            "Nothing was measured: give the folder that holds reference/ by --data or DOVETAIL_DATA."
        )
        return table
    tasks = [(data, name, variant, seed) for variant in VARIANTS for name in PROBLEMS for seed in SEEDS]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        found = dict(zip(tasks, pool.map(_solve, tasks, chunksize=1), strict=True))
    for variant in VARIANTS:
        cells = [[found[data, name, variant, seed] for seed in SEEDS] for name in PROBLEMS]
        table.rows.append([variant, *(_cell(runs) for runs in cells)])
    return table


def _solve(task: tuple[Path, str, str, int]) -> tuple[float, bool]:
    data, name, variant, seed = task
    arrays = dict(np.load(data / "reference" / f"{name}.npz", allow_pickle=False))
    result = dt.solve(build(arrays), VARIANTS[variant], time_limit=PROBLEMS[name], seed=seed, log=False)
    return (np.nan if result.x is None else judge(arrays, result.x)), result.status == "optimal"


def _cell(runs: list[tuple[float, bool]]) -> str:
    values = [value for value, _ in runs if np.isfinite(value)]
    missing = f" ({len(runs) - len(values)} without)" if len(values) < len(runs) else ""
    star = "*" if all(proved for _, proved in runs) else ""
    return (f"{mean(values):.6g}" if values else "none") + star + missing
