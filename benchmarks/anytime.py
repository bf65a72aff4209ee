"""How soon solutions and bounds come: every kind of the zoo and the reference files, run after run.

    python -m benchmarks.anytime run --out new.jsonl --seconds 30 --jobs 16 [--method big-m] [--data DIR]
    python -m benchmarks.anytime compare old.jsonl new.jsonl [scip.jsonl]

`run` writes one line a problem: when each better solution and each better bound came. `compare` prints, for
each problem and file, the mean distance of the incumbent and of the bound from the best objective of all
files over the whole time limit (0: known at once, 1: nothing known; see `distance`), and the seconds to
the proof.
The list of problems was fixed before the schedule of `auto` was tuned on it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

import dovetail as dt
from benchmarks.parallel import ended
from benchmarks.reference import KNOWN
from benchmarks.reference import build as build_file
from dovetail_study.zoo import KINDS, build

FILES = tuple(KNOWN)
ZOO = tuple((kind, size, 0) for size in (1, 2) for kind in KINDS)
PATIENCE = 90.0
"""Seconds beyond the limit for training, imports and what overruns."""


@dataclass(frozen=True)
class Task:
    """One problem, one method."""

    problem: str
    """A file, or `kind size seed` of the zoo."""
    method: str
    seconds: float
    gap: float
    data: Path | None


@dataclass(frozen=True)
class Run:
    """What a solve told, and when; objective and bounds in minimisation form."""

    problem: str
    status: str
    seconds: float
    cpu: float
    objective: float = math.nan
    bound: float = math.nan
    incumbents: list[tuple[float, float]] = field(default_factory=list)
    bounds: list[tuple[float, float]] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    """Of the default method, those that had a turn."""


def solved(task: Task) -> Run:
    """Build the problem and solve it."""
    parts = task.problem.split()
    if len(parts) == 3:
        problem = build(parts[0], int(parts[1]), int(parts[2]))
    else:
        assert task.data is not None
        arrays = np.load(task.data / "reference" / f"{task.problem}.npz", allow_pickle=False)
        problem = build_file(dict(arrays))
    before, wall, sign = time.process_time(), time.perf_counter(), problem.mip.sign
    try:
        result = dt.solve(problem, task.method, time_limit=task.seconds, gap=task.gap, log=False)
    except dt.UnsupportedError:
        return Run(task.problem, "refused", 0.0, 0.0)
    return Run(
        task.problem,
        str(result.status.value),
        time.perf_counter() - wall,
        time.process_time() - before,
        math.nan if result.objective is None else sign * result.objective,
        math.nan if result.bound is None else sign * result.bound,
        [(gain.seconds, sign * gain.value) for gain in result.trace.incumbents],
        [(gain.seconds, sign * gain.value) for gain in result.trace.bounds],
        sorted({turn.part for turn in result.trace.turns}),
    )


def distance(value: float, best: float) -> float:
    """|value - best| relative to the larger of both, at most 1."""
    larger = max(abs(value), abs(best))
    return 0.0 if larger == 0.0 else min(1.0, abs(value - best) / larger)


def mean_distance(gains: Sequence[tuple[float, float]], best: float, seconds: float) -> float:
    """Over the time from 0 to `seconds`; 1 while there is nothing."""
    area, since, apart = 0.0, 0.0, 1.0
    for moment, value in gains:
        moment = min(moment, seconds)
        area, since, apart = area + apart * (moment - since), moment, distance(value, best)
    return (area + apart * (seconds - since)) / seconds


def read(file: Path) -> dict[str, Run]:
    """The runs of a file by problem."""
    return {one["problem"]: Run(**one) for one in map(json.loads, file.read_text().splitlines())}


def compare(files: Sequence[Path], seconds: float) -> None:
    """A line for each problem, three numbers for each file."""
    runs = [read(file) for file in files]
    names = [name for name in runs[0] if all(name in one for one in runs[1:])]
    print("| problem | best |" + "".join(f" {file.stem} | bound | proof s |" for file in files))
    print("| --- | ---: |" + " ---: | ---: | ---: |" * len(files))
    for name in names:
        mine = [one[name] for one in runs]
        best = min((run.objective for run in mine if not math.isnan(run.objective)), default=math.nan)
        cells = []
        for run in mine:
            points = mean_distance(run.incumbents, best, seconds)
            bounds = mean_distance(run.bounds, best, seconds)
            proof = f"{run.seconds:.1f}" if run.status == "optimal" else run.status
            cells.append(f" {points:.4f} | {bounds:.4f} | {proof} |")
        print(f"| {name} | {best:.7g} |" + "".join(cells))


def main() -> None:
    """Read the options; run or compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.anytime", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("what", choices=("run", "compare"))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, default=Path("anytime.jsonl"))
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--gap", type=float, default=1e-6)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="of the zoo's problems")
    parser.add_argument("--only", default="", help="problems whose name contains one of these, with commas")
    parser.add_argument("--data", type=Path, default=os.environ.get("DOVETAIL_DATA") or None)
    parser.add_argument("--within", type=float, default=math.inf, help="seconds in all")
    options = parser.parse_args()
    if options.what == "compare":
        compare(options.files, options.seconds)
        return
    names = [f"{kind} {size} {options.seed}" for kind, size, _ in reversed(ZOO)]
    names = [*(FILES if options.data is not None else ()), *names]
    wanted = [part for part in options.only.split(",") if part]
    names = [name for name in names if not wanted or any(part in name for part in wanted)]
    tasks = [Task(name, options.method, options.seconds, options.gap, options.data) for name in names]
    with options.out.open("a") as out:
        for task, run in ended(solved, tasks, options.jobs, options.seconds + PATIENCE, options.within):
            out.write(json.dumps(asdict(run or Run(task.problem, "ended", math.nan, math.nan))) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
