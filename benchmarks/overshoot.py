"""By how much solves run past their time limit, on what makes a limit hard to keep, and on a busy machine.

    python -m benchmarks.overshoot --busy 4 --limits 5 15 --kinds ensemble water --stretches 3

Every run is the first solve of a process of its own. `--busy` starts so many processes that only compute, and
ends them after each run. `--stretches` prints the longest times between two looks at the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import dovetail as dt
from benchmarks.limit_kinds import kinds
from dovetail.methods import METHODS
from dovetail_study.experiment import ResultTable

HARDEST = (
    "a predictor of 1 s per call", "1,000 different networks", "98 million weights", "water, n = 100, 4x64",
    "water, n = 1,000, 2x16",
)  # fmt: skip
"""Kinds on which all methods are tried where nothing else is asked for."""
LIMITS = (1.0, 3.0)
"""Seconds: short, since a limit is hard to keep where one call takes as long."""
ALLOWED, SHARE = 2.0, 0.05
"""Seconds past the limit that are allowed, or this share of it, whichever is more."""
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(10**5))"


def run(
    names: Sequence[str] = HARDEST,
    methods: Sequence[str] = tuple(METHODS),
    limits: Sequence[float] = LIMITS,
    busy: int = 0,
    data: Path | None = None,
    stretches: int = 0,
) -> ResultTable:
    """Each method once on each kind of problem, with each limit."""
    rows, within, total, worst = [], 0, 0, 0.0
    for name in names:
        for method in methods:
            for limit in limits:
                answer = _asked(name, method, limit, busy, data, stretches)
                if answer is None:
                    continue  # a method that refuses what has no layers, or too many
                over = max(0.0, answer["seconds"] - limit)
                fine = over <= max(ALLOWED, SHARE * limit)
                within, total, worst = within + fine, total + 1, max(worst, over)
                rows.append(
                    [name, method, f"{limit:g}", f"{over:+.2f}", f"{answer['cpu']:.2f}", answer["ended"]]
                )
                print(*rows[-1], *([] if fine else ["LATE"]), sep="  ", flush=True)
                for told in answer["stretches"]:
                    print(f"    {told}", flush=True)
    table = ResultTable(
        "overshoot",
        f"Seconds past the time limit, {busy} busy processes beside",
        ["problem", "method", "limit", "past it", "CPU past it", "ended"],
        rows,
    )
    table.reading = (
        f"{within} of {total} runs within max({ALLOWED:g} s, {100 * SHARE:g} %) of their limit; "
        f"the worst took {worst:.2f} s more."
    )
    return table


def _asked(
    name: str, method: str, limit: float, busy: int, data: Path | None, stretches: int
) -> dict[str, Any] | None:
    """A process that builds the problem, waits until the machine is busy, and solves."""
    told = json.dumps([name, method, limit, None if data is None else str(data), stretches])
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.overshoot", "--one", told]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", name
        with _busy(busy):
            process.stdin.write("\n")
            process.stdin.flush()
            answer: dict[str, Any] | None = json.loads(process.stdout.readline())
        return answer


@contextmanager
def _busy(count: int) -> Iterator[None]:
    with ExitStack() as ended:
        for _ in range(count):
            # sessions of their own: Linux shares the cores between sessions, not between processes
            process = subprocess.Popen([sys.executable, "-c", BUSY], start_new_session=True)
            ended.callback(process.wait)
            ended.callback(process.kill)
        yield


def _one(name: str, method: str, limit: float, data: str | None, stretches: int) -> None:
    problem = kinds(None if data is None else Path(data))[name]()
    print("ready", flush=True)
    sys.stdin.readline()
    looks = None
    if stretches:
        from benchmarks.looks import Looks

        looks = Looks()
    begin = time.perf_counter()
    try:
        result = dt.solve(problem, method, time_limit=limit, log=False)
    except dt.UnsupportedError:
        print("null", flush=True)
        return
    seconds = time.perf_counter() - begin
    longest: list[str] = []
    cpu = float("nan")
    if looks is not None:
        looks.close()
        cpu = looks.cpu_after(limit) if seconds > limit else 0.0
        for one in sorted(looks.stretches, key=lambda stretch: -stretch.cpu)[:stretches]:
            longest.append(f"at {one.begin:.1f}: {one.wall:.2f} s, {one.cpu:.2f} s of CPU: {one.stack}")
    ended = f"{result.status.value} ({result.stop_reason.value})"
    print(json.dumps({"seconds": seconds, "cpu": cpu, "ended": ended, "stretches": longest}), flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overshoot", description=__doc__)
    parser.add_argument("--kinds", nargs="*", default=[""], help="what their names contain")
    parser.add_argument("--methods", nargs="*", default=["auto"])
    parser.add_argument("--limits", nargs="*", type=float, default=[5.0, 15.0], help="seconds")
    parser.add_argument("--busy", type=int, default=0, help="processes that compute beside the solve")
    parser.add_argument("--data", type=Path, default=os.environ.get("DOVETAIL_DATA") or None)
    parser.add_argument("--stretches", type=int, default=0, help="so many of the longest of each run")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        _one(*json.loads(options.one))
        return
    known = [name for name in kinds(options.data) if any(part in name for part in options.kinds)]
    table = run(known, options.methods, options.limits, options.busy, options.data, options.stretches)
    print(table.reading)


if __name__ == "__main__":
    main()
