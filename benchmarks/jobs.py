"""`n_jobs=8` beside one: the same files, seconds and seeds, in one run.

The runs with one job take turns on a core of their own beside those with eight.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

import dovetail as dt
from benchmarks.parallel import each
from benchmarks.reference import KNOWN, build, folder_of_files, judge
from dovetail_study.experiment import ResultTable

FILES = ("wine_2x16", "wine_3x16", "wine_2x32", "water_4x32_n100", "water_6x128_n100")
"""Those that one job does not solve to the best known value in the time."""
SEEDS = (0, 1, 2)
LIMIT, JOBS = 20.0, 8
AS_GOOD = 1e-6
"""Relative: what is less apart is one value."""


@dataclass(frozen=True)
class Asked:
    """One run on one file."""

    folder: Path
    file: str
    seed: int
    n_jobs: int


@dataclass(frozen=True)
class Answer:
    """What came of it."""

    objective: float
    """That numpy finds at the point; NaN without one."""
    gains: tuple[tuple[float, float], ...]
    """(seconds of the wall, objective) of each better point, as the solve saw it."""

    def seconds_to(self, objective: float) -> float:
        """When there first was a point as good as that; infinite where there was none."""
        good = objective + AS_GOOD * max(1.0, abs(objective))
        return next((seconds for seconds, value in self.gains if value <= good), float("inf"))


def answered(asked: Asked) -> Answer:
    """One run."""
    arrays = dict(np.load(asked.folder / f"{asked.file}.npz", allow_pickle=False))
    result = dt.solve(
        build(arrays), time_limit=LIMIT, seed=asked.seed, n_jobs=asked.n_jobs, gap=1e-6, log=False
    )
    gains = tuple((gain.seconds, gain.value) for gain in result.trace.incumbents)
    return Answer(float("nan") if result.x is None else judge(arrays, result.x), gains)


def run(data: Path | None, files: Sequence[str] = FILES) -> ResultTable:
    """The table; nothing in it without the files."""
    table = ResultTable(
        "jobs",
        f"n_jobs={JOBS} beside 1, {LIMIT:g} s, lower is better (seeds {', '.join(map(str, SEEDS))})",
        [
            "file", "1 job: each seed", "median", "seconds to it", f"{JOBS} jobs: each seed", "median",
            "seconds to as good as 1 job", "best known",
        ],
    )  # fmt: skip
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
            mine = [(answers[file, seed], found[0][file, seed].objective) for seed in SEEDS]
            values = [answer.objective for answer, _ in mine]
            cells += [", ".join(f"{value:.5g}" for value in values), f"{median(values):.5g}"]
            cells.append(f"{median(answer.seconds_to(single) for answer, single in mine):.1f}")
        table.rows.append([file, *cells, KNOWN[file][2]])
    table.reading = (
        "Solutions are re-evaluated by numpy alone. The solve with one job has one thread. Seconds: median "
        "time to a solution as good as the final one of one job with the same seed."
    )
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.jobs", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--files", nargs="+", default=list(FILES), choices=sorted(KNOWN))
    options = parser.parse_args(arguments)
    print(run(options.data, options.files).markdown())


if __name__ == "__main__":
    main()
