"""Resident memory of a large solve, and whether it grows from iteration to iteration."""

from __future__ import annotations

import json
import subprocess
import sys

import dovetail as dt
from benchmarks.made_up import made_up
from dovetail_study.experiment import ResultTable

MARKS = (5, 50, 100, 150, 200)
"""Iterations after which memory is read; growth is counted from the fiftieth on."""


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


if __name__ == "__main__":
    _child(int(sys.argv[1]), sys.argv[2])
