"""The differential suite of bounds at volume: `python -m benchmarks.bounds_volume --instances 10000`.

Prints what was counted, and every claim that is wrong; ends with 1 if there is one. With `--out FILE` each
task is a line of that file, and those that it has already are not done again: `--within` seconds at a time,
on any number of machines, until all are there. `--only-count` reads such a file and runs nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.differential.claims import ACCEPTED, EXACT, Count, every_round, judge
from tests.differential.proof_cases import make
from tests.differential.proof_phases import ProofPhases

import dovetail as dt
from benchmarks.parallel import ended
from dovetail.methods import METHODS
from dovetail.methods.branching import Branching

CHUNK = 40
"""Instances per task: half a minute, so that the counts move, workers end together, and libraries are not
imported for longer than they are used."""


PROOFS = {
    **{name: (METHODS.make(name), EXACT) for name in METHODS},
    "auto": (dt.Auto(effort=1), EXACT),
    "phases": (ProofPhases(), ACCEPTED),
    "branching": (Branching(), EXACT),
}
"""What is asked, and by how much the points that it is held against may miss rows: a proof phase has to hold
for everything that the check accepts; engines, which `auto` asks as well, hold for exact rows. `auto` is
asked freely, and from a poor point that it must keep; the others in the second way only. Methods that only
search have many lines of traces a second; what they claim is the bound of rows and integers."""


PATIENCE = 300.0
"""Seconds after which a task is given up, named, and left to be asked again: ten instances take a fifth of it
on a machine that has nothing else to do."""


@dataclass(frozen=True)
class Task:
    """Instances of a range."""

    first: int
    last: int
    seconds: float
    method: str
    certifying: float


def work(task: Task) -> Count:
    """Judge them."""
    import torch

    torch.set_num_threads(1)
    count, (method, room) = Count(), PROOFS[task.method]
    alone = task.method != "auto"
    with every_round():
        for seed in range(task.first, task.last):
            given = {"time_limit": task.seconds, "room": room, "certifying": task.certifying}
            try:
                count.add(judge(make(seed), method, deaf_only=alone, from_best=False, **given))
            except dt.ModelError:  # some methods need inputs with bounds
                count.add(Count(instances=1))
    return count


def kept(file: Path | None) -> dict[int, tuple[Task, Count]]:
    """What a file has, by the first instance of each task."""
    if file is None or not file.exists():
        return {}
    found = {}
    for line in file.read_text().splitlines():
        known = json.loads(line)
        found[known["task"]["first"]] = Task(**known["task"]), Count(**known["count"])
    return found


def added(counts: Iterable[Count]) -> Count:
    """All together."""
    total = Count()
    for count in counts:
        total.add(count)
    return total


def run(tasks: list[Task], jobs: int, within: float, out: Path | None) -> Count:
    """What is counted in the tasks that end in time."""
    total, begin = Count(), time.perf_counter()
    for number, (task, answer) in enumerate(ended(work, tasks, jobs, PATIENCE, within), start=1):
        if answer is None:
            print(f"NO ANSWER of cases {task.first} to {task.last - 1}", flush=True)
            continue
        total.add(answer)
        for wrong in answer.wrong:
            print("WRONG", wrong, flush=True)
        if out is not None:
            with out.open("a") as lines:
                lines.write(json.dumps({"task": asdict(task), "count": asdict(answer)}) + "\n")
        if number % 10 == 0 or number == len(tasks):
            print(f"{time.perf_counter() - begin:8.0f} s  {total}", flush=True)
    return total


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bounds_volume", description=__doc__)
    parser.add_argument("--instances", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first instance")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=2.0, help="time limit of one solve")
    parser.add_argument("--certifying", type=float, default=2.0, help="seconds for a certificate, each")
    parser.add_argument("--method", choices=sorted(PROOFS), default="auto")
    parser.add_argument("--within", type=float, default=float("inf"), help="seconds in all")
    parser.add_argument("--out", type=Path, help="file of lines, to be gone on with")
    parser.add_argument("--only-count", action="store_true", help="add up what the file has")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    have, last = kept(options.out), options.first + options.instances
    total = added(count for task, count in have.values() if task.method == options.method)
    if not options.only_count:
        tasks = [
            Task(k, min(k + CHUNK, last), options.seconds, options.method, options.certifying)
            for k in range(options.first, last, CHUNK)
            if k not in have
        ]
        total.add(run(tasks, options.jobs, options.within, options.out))
    print(total)
    return 1 if total.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
