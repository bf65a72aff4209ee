"""The fixed reference problems, solved through the public API and judged with numpy alone.

They are not part of the project: give their folder by --data or DOVETAIL_DATA (`reference/` inside it).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

import dovetail as dt
from benchmarks.parallel import each
from dovetail.run.context import Method
from dovetail_study.experiment import ResultTable

METHODS = ("paper", "paper-adaptive", "dual-decomposition", "single-step-gradient")
SEEDS = (0, 1, 2)
LIMIT = 60.0
"""Seconds of the methods: what big-M has in the tables beside this one."""
AUTO_SECONDS = {
    "water_2x16_n25": 15.0, "water_2x16_n100": 25.0, "water_2x16_n400": 45.0, "water_4x32_n100": 25.0,
    "water_4x32_n400": 45.0, "water_6x128_n25": 3.0, "water_6x128_n100": 30.0,
    "water_raw_units_7x16_n25": 10.0, "wine_2x16": 10.0, "wine_2x32": 10.0, "wine_3x16": 10.0,
    "function_3x16": 2.0, "diet_2x16": 10.0, "tree_8x32": 2.0,
}  # fmt: skip
"""Of `auto`, more for more samples and wider networks; kept as they are, so that tables can be compared."""

# Water: samples not potable when nothing is done. Then the objective of a throw-away prototype of the
# paper's loop, and the best value anyone has found.
KNOWN = {
    "water_2x16_n25": ("19", "9", "0"),
    "water_2x16_n100": ("82", "65", "43"),
    "water_2x16_n400": ("341", "about 315", "259"),
    "water_4x32_n100": ("92", "about 47", "25"),
    "water_4x32_n400": ("358", "about 274", "220"),
    "water_6x128_n25": ("25", "9", "0"),
    "water_6x128_n100": ("100", "", "26"),
    "water_raw_units_7x16_n25": ("20", "", "6"),
    "tree_8x32": ("", "7.150", "6.28990"),
    "wine_2x16": ("", "4.369", "4.1443"),
    "wine_2x32": ("", "", "3.9866"),
    "wine_3x16": ("", "", "3.9606"),
    "function_3x16": ("", "", "6591.5737"),
    "diet_2x16": ("", "", "3263.6672"),
}
LOOPS_FIND_NOTHING = ("function_3x16", "diet_2x16")
"""Files that only `auto` is tried on."""


def run(data: Path | None, jobs: int) -> ResultTable:
    table = ResultTable(
        "reference",
        f"Reference problems, lower is better (mean of seeds {', '.join(map(str, SEEDS))})",
        [
            "file", "method", "limit, s", "objective", "worst seed", "proved", "residual", "iterations",
            "CPU s", "nothing done", "prototype", "best known",
        ],
    )  # fmt: skip
    folder = folder_of_files(data, table)
    if folder is None:
        return table
    for name, known in KNOWN.items():
        for method in ("auto",) if name in LOOPS_FIND_NOTHING else (*METHODS, "auto"):
            limit = AUTO_SECONDS[name] if method == "auto" else LIMIT
            runs = each(solved, [Task(folder, name, method, limit, seed) for seed in SEEDS], jobs)
            table.rows.append([name, method, f"{limit:g}", *_summary(runs), *known])
    table.reading = (
        "Water's objective is the number of samples that are not potable at the end. Every point was "
        "re-evaluated by code that knows only the arrays of the file. CPU seconds are those of the process, "
        "one thread. 'prototype' is an earlier, independent program of the paper's loop (rho 10, unscaled, "
        "50 iterations); a blank was never measured."
    )
    return table


def folder_of_files(data: Path | None, table: ResultTable) -> Path | None:
    """Where the reference files are; None where there are none, and the table says so."""
    if data is not None and (data / "reference").is_dir():
        return data / "reference"
    table.reading = "Nothing was measured: give the folder that holds reference/ by --data or DOVETAIL_DATA."
    return None


def _summary(runs: list[Solved]) -> list[str]:
    found = [run.objective for run in runs if run.found]
    missing = f" ({len(runs) - len(found)} without)" if len(found) < len(runs) else ""
    return [
        (f"{mean(found):.5g}" if found else "none") + missing,
        f"{max(found):.5g}" if found else "none",
        f"{sum(run.proved for run in runs)} of {len(runs)}",
        f"{mean(run.residual for run in runs):.1e}",
        f"{mean(run.iterations for run in runs):.0f}",
        f"{mean(run.seconds for run in runs):.1f}",
    ]


@dataclass(frozen=True)
class Task:
    """One run on one file."""

    folder: Path
    file: str
    method: str | Method
    limit: float
    """Seconds."""
    seed: int


@dataclass(frozen=True)
class Solved:
    """What came of it."""

    objective: float
    """NaN without a point."""
    proved: bool
    residual: float
    iterations: int
    seconds: float
    """Of the CPU."""

    @property
    def found(self) -> bool:
        """Whether there is a point."""
        return not np.isnan(self.objective)


def solved(task: Task) -> Solved:
    """Build the problem of a file, solve it, and judge the point by numpy alone."""
    arrays = dict(np.load(task.folder / f"{task.file}.npz", allow_pickle=False))
    problem = build(arrays)
    before = time.process_time()
    result = dt.solve(problem, task.method, time_limit=task.limit, seed=task.seed, gap=1e-6, log=False)
    seconds = time.process_time() - before
    objective = float("nan") if result.x is None else judge(arrays, result.x)
    proved = result.status == "optimal"
    return Solved(objective, proved, result.residual or 0.0, result.iterations, seconds)


# --- the files, by numpy alone -------------------------------------------------------------------


def matrix(arrays: dict[str, Any]) -> sp.csr_array:
    parts = (arrays["A_data"], arrays["A_indices"], arrays["A_indptr"])
    return sp.csr_array(parts, shape=tuple(arrays["A_shape"]))


def judge(arrays: dict[str, Any], x: np.ndarray) -> float:
    """The objective of a point that is what it claims to be; anything else is an error."""
    activity = matrix(arrays) @ x
    excess = [
        arrays["row_lower"] - activity,
        activity - arrays["row_upper"],
        arrays["lower"] - x,
        x - arrays["upper"],
        np.abs(x - np.round(x))[arrays["integer"]],
    ]
    for b in range(int(arrays["n_blocks"])):
        y = x[arrays[f"block{b}_inputs"]]
        layers = int(arrays[f"block{b}_layers"])
        for k in range(layers):
            y = y @ arrays[f"block{b}_W{k}"].T + arrays[f"block{b}_b{k}"]
            y = np.maximum(y, 0.0) if k < layers - 1 else y
        y = (y >= 0.0).astype(float) if arrays[f"block{b}_class"] else y
        excess.append(np.abs(y - x[arrays[f"block{b}_outputs"]]).ravel())
    worst = max(float(part.max(initial=0.0)) for part in excess)
    if worst > 1.0001e-6:
        raise AssertionError(f"the returned point misses something by {worst:.1e}")
    return float(arrays["cost"] @ x + arrays["offset"])


def build(arrays: dict[str, Any]) -> dt.Problem:
    columns = {k: arrays[k] for k in ("cost", "row_lower", "row_upper", "lower", "upper", "integer")}
    problem = dt.Problem(dt.Mip(A=matrix(arrays), offset=float(arrays["offset"]), **columns))
    for b in range(int(arrays["n_blocks"])):
        problem.add_predictor(
            _network(arrays, b),
            arrays[f"block{b}_inputs"],
            arrays[f"block{b}_outputs"],
            output_type="classification" if arrays[f"block{b}_class"] else "regression",
        )
    return problem


def _network(arrays: dict[str, Any], b: int) -> torch.nn.Module:
    parts: list[torch.nn.Module] = []
    for k in range(int(arrays[f"block{b}_layers"])):
        weight, bias = (torch.as_tensor(arrays[f"block{b}_{kind}{k}"]) for kind in "Wb")
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
        linear.load_state_dict({"weight": weight, "bias": bias})
        parts += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1])
