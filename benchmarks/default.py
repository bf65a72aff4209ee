"""The default method on the reference problems, within the seconds each is worth, judged with numpy alone.

The reference files are not part of the project: give their folder by --data or DOVETAIL_DATA.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import mean

import numpy as np

import dovetail as dt
from benchmarks.reference import KNOWN, SEEDS, build, judge
from dovetail.experiments.table import Table

SECONDS = {
    "water_2x16_n25": 15.0,
    "water_2x16_n100": 25.0,
    "water_2x16_n400": 45.0,
    "water_4x32_n100": 25.0,
    "water_4x32_n400": 45.0,
    "water_6x128_n25": 3.0,
    "water_6x128_n100": 30.0,
    "water_raw_units_7x16_n25": 10.0,
    "wine_2x16": 10.0,
    "wine_2x32": 10.0,
    "wine_3x16": 10.0,
    "function_3x16": 2.0,
    "diet_2x16": 10.0,
    "tree_8x32": 2.0,
}
BEST = {"function_3x16": "6591.5737", "diet_2x16": "3263.6672"}
"""Of files that the reference table leaves out, since the paper's loop finds nothing there."""


def run(data: Path | None, jobs: int) -> Table:
    table = Table(
        "default",
        f"The default method on the reference problems (seeds {', '.join(map(str, SEEDS))})",
        ["file", "seconds", "objective, mean", "worst seed", "best known before", "proved optimal", "CPU s"],
        reading=(
            "Lower is better. *Seconds* is the time limit, *CPU s* what the process used on average. Every "
            "point was re-evaluated by code that knows only the arrays of the file."
        ),
    )
    if data is None or not (data / "reference").is_dir():
        table.reading = (
            "Nothing was measured: give the folder that holds reference/ by --data or DOVETAIL_DATA."
        )
        return table
    tasks = [(data, name, seed) for name in SECONDS for seed in SEEDS]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        found = dict(zip(tasks, pool.map(_solve, tasks, chunksize=1), strict=True))
    for name, seconds in SECONDS.items():
        objective, proved, used = zip(*(found[data, name, seed] for seed in SEEDS), strict=True)
        best = KNOWN[name][2] if name in KNOWN else BEST[name]
        cells = [f"{seconds:g}", f"{mean(objective):.6g}", f"{max(objective):.6g}", best]
        table.rows.append([name, *cells, f"{sum(proved)} of {len(SEEDS)}", f"{mean(used):.1f}"])
    return table


def _solve(task: tuple[Path, str, int]) -> tuple[float, bool, float]:
    data, name, seed = task
    arrays = dict(np.load(data / "reference" / f"{name}.npz", allow_pickle=False))
    problem = build(arrays)
    before = time.process_time()
    result = dt.solve(problem, time_limit=SECONDS[name], seed=seed, log=False)
    used = time.process_time() - before
    return (np.nan if result.x is None else judge(arrays, result.x)), result.status == "optimal", used
