"""Resident memory of a large solve, and whether it grows from iteration to iteration, or solve to solve."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import dovetail as dt
from benchmarks.made_up import made_up
from dovetail.methods import METHODS
from dovetail_study.table import ResultTable

MARKS = (5, 50, 100, 150, 200)
"""Iterations after which memory is read; growth is counted from the fiftieth on."""
SOLVES, DECIDED = 200, 20
"""Solves in one process, and after how many of them its libraries have what they keep."""
SHORT = 0.2
"""Seconds of each: what leaks leaks per solve."""


def run(n: int = 2000, network: str = "6x128") -> ResultTable:
    """Measured in a process of its own, so that nothing else is counted."""
    command = [sys.executable, "-m", "benchmarks.memory", str(n), network]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    resident = {int(k): v for k, v in json.loads(done.stdout).items()}
    table = ResultTable(
        "memory",
        f"Resident memory: water, n = {n:,}, {network}",
        ["after iteration", "MiB"],
        [[str(k), f"{resident[k]:.0f}"] for k in sorted(resident)],
    )
    last = max(resident)
    growth = resident[last] - resident[50]
    table.reading = (
        f"Peak {max(resident.values()):.0f} MiB (wanted: under 2,048); "
        f"{growth:+.0f} MiB from iteration 50 to {last} (wanted: no growth)."
    )
    return table


def _resident() -> float:
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _child(n: int, network: str) -> None:
    problem = made_up(n, network).problem
    resident: dict[int, float] = {}

    def look(event: dt.Event) -> None:
        if event.row.iteration in MARKS:
            resident[event.row.iteration] = _resident()

    method = dt.DualDecomposition(iterations=max(MARKS), patience=None, tolerance=1e-12)
    dt.solve(problem, method, time_limit=3600, callback=look, log=False)
    print(json.dumps(resident))


def run_solves() -> ResultTable:
    """Each method in a process of its own, many solves one after the other."""
    table = ResultTable(
        "solves",
        f"{SOLVES} solves in one process: water, n = 10, 2x16, {SHORT:g} s each",
        ["method", f"MiB after {DECIDED}", f"MiB after {SOLVES}", "growth", "threads", "open files"],
    )
    growths = []
    for method in METHODS:
        command = [sys.executable, "-m", "benchmarks.memory", "solves", method]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        (before, threads, files), (after, more_threads, more_files) = json.loads(done.stdout)
        growths.append(after / before - 1.0)
        table.rows.append(
            [method, f"{before:.0f}", f"{after:.0f}", f"{100 * growths[-1]:+.1f} %",
             f"{threads} -> {more_threads}", f"{files} -> {more_files}"]
        )  # fmt: skip
    table.reading = f"The largest growth is {100 * max(growths):.1f} % (wanted: under 5 %)."
    return table


def _child_solves(method: str) -> None:
    problem = made_up(10, "2x16").problem
    marks = []
    for k in range(1, SOLVES + 1):
        dt.solve(problem, method, time_limit=SHORT, seed=k, log=False)
        if k in (DECIDED, SOLVES):
            threads, files = (len(os.listdir(f"/proc/self/{kind}")) for kind in ("task", "fd"))
            marks.append((_resident(), threads, files))
    print(json.dumps(marks))


if __name__ == "__main__":
    if sys.argv[1] == "solves":
        _child_solves(sys.argv[2])
    else:
        _child(int(sys.argv[1]), sys.argv[2])
