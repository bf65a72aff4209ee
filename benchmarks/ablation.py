"""What each part of the default method buys: the same problems with one part taken away.

The reference files are not part of the project: give their folder by --data or DOVETAIL_DATA.
"""

from __future__ import annotations

from pathlib import Path

import dovetail as dt
from benchmarks.cells import mean_found
from benchmarks.parallel import each
from benchmarks.reference import SEEDS, Solved, Task, folder_of_files, solved
from dovetail_study.table import ResultTable

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
    "no bundle": dt.Auto(bundle=0),
    "one start": dt.Auto(effort=1),
    "no columns": dt.Auto(column_generation=False),
    "no tables": dt.Auto(tables=False),
    "no exact leg": dt.Auto(exact=False),
}


def run(data: Path | None, jobs: int) -> ResultTable:
    limits = ", ".join(f"{name} {seconds:g} s" for name, seconds in PROBLEMS.items())
    table = ResultTable(
        "ablation",
        f"The default method with one part taken away (mean of seeds {', '.join(map(str, SEEDS))})",
        ["variant", *PROBLEMS],
        reading=(
            f"Objectives, lower is better; * where every seed was proved optimal. Time limits: {limits}. "
            "'one start' makes one descent and one pricing round in each phase and then stops."
        ),
    )
    folder = folder_of_files(data, table)
    if folder is None:
        return table
    tasks = [
        Task(folder, name, method, seconds, seed)
        for method in VARIANTS.values()
        for name, seconds in PROBLEMS.items()
        for seed in SEEDS
    ]
    found = list(zip(tasks, each(solved, tasks, jobs), strict=True))
    for variant, method in VARIANTS.items():
        mine = [(task.file, run) for task, run in found if task.method is method]
        cells = [_cell([run for file, run in mine if file == name]) for name in PROBLEMS]
        table.rows.append([variant, *cells])
    return table


def _cell(runs: list[Solved]) -> str:
    star = "*" if all(run.proved for run in runs) else ""
    return mean_found([run.objective for run in runs if run.found], len(runs), 6) + star
