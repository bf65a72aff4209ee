"""`n_jobs=8` beside one: the same files, seconds and seeds, in one run.

The runs with one job take turns on a core of their own beside those with eight.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

import dovetail as dt
from benchmarks.parallel import each
from benchmarks.reference import KNOWN, build, folder_of_files, judge
from dovetail.experiments.table import Table

FILES = ("wine_2x16", "wine_3x16", "wine_2x32", "water_4x32_n100", "water_6x128_n100")
"""Those that one job does not solve to the best known value in the time."""
SEEDS = (0, 1, 2)
LIMIT, JOBS = 20.0, 8


@dataclass(frozen=True)
class Asked:
    """One run on one file."""

    folder: Path
    file: str
    seed: int
    n_jobs: int


def answered(asked: Asked) -> tuple[float, float]:
    """The objective that numpy finds at the point, NaN without one, and the seconds of the wall to it."""
    arrays = dict(np.load(asked.folder / f"{asked.file}.npz", allow_pickle=False))
    begin = time.perf_counter()
    result = dt.solve(build(arrays), time_limit=LIMIT, seed=asked.seed, n_jobs=asked.n_jobs, log=False)
    seconds = result.trace.incumbents[-1].seconds if result.trace.incumbents else time.perf_counter() - begin
    return (float("nan") if result.x is None else judge(arrays, result.x)), seconds


def run(data: Path | None, files: Sequence[str] = FILES) -> Table:
    """The table; nothing in it without the files."""
    table = Table(
        "jobs",
        f"n_jobs={JOBS} beside 1, {LIMIT:g} s, lower is better (seeds {', '.join(map(str, SEEDS))})",
        ["file", "1 job: each seed", "median", f"{JOBS} jobs: each seed", "median", "best known"],
    )
    folder = folder_of_files(data, table)
    if folder is None:
        return table
    one, many = ([Asked(folder, file, seed, n) for file in files for seed in SEEDS] for n in (1, JOBS))
    with ThreadPoolExecutor(2) as both:
        runs = [both.submit(each, answered, tasks, 1) for tasks in (one, many)]
        found = [dict(zip(((t.file, t.seed) for t in one), run.result(), strict=True)) for run in runs]
    for file in files:
        cells = []
        for answers in found:
            values = [answers[file, seed][0] for seed in SEEDS]
            cells += [", ".join(f"{value:.5g}" for value in values), f"{median(values):.5g}"]
        table.rows.append([file, *cells, KNOWN[file][2]])
    table.reading = "Points re-evaluated by numpy alone. The solve with one job has one thread."
    return table
