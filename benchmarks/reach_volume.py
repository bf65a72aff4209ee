"""Predictors and chains with bounds out of reach, at volume: `python -m benchmarks.reach_volume --to 10000`.

Each problem (`tests/differential/reach_cases.py`) is solved in strict mode and judged against points that are
found without dovetail. Every finding, an exception or a false claim, is a line of the file, and is printed;
so is every chunk of problems that is done, so that a run that was ended goes on. Ends with 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.differential.reach_claims import Judged, judged

from benchmarks.parallel import ended

CHUNK = 50
"""Problems per task: half a minute, so that libraries are not imported for longer than they are used."""
PATIENCE = 600.0
"""Seconds after which a task is given up and named."""


@dataclass(frozen=True)
class Task:
    """Problems of a range."""

    first: int
    last: int
    seconds: float


def work(task: Task) -> list[Judged]:
    """One after the other, on one thread, in strict mode."""
    import warnings

    import torch

    os.environ["DOVETAIL_STRICT"] = "1"
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    return [judged(seed, task.seconds) for seed in range(task.first, task.last)]


def counted(count: Counter[str]) -> str:
    """In one line."""
    named = ("exceptions", "false claims", "no answer")
    rest = ", ".join(f"{count[name]} {name}" for name in sorted(count) if name not in (*named, "problems"))
    return f"{count['problems']} problems: {', '.join(f'{count[name]} {name}' for name in named)}; {rest}"


def count_of(found: list[Judged]) -> Counter[str]:
    """What a chunk adds to the counts."""
    count = Counter[str](problems=len(found))
    for one in found:
        count[one.said] += 1
        count["exceptions"] += one.said == "raised"
        count["false claims"] += len(one.wrong)
        count["empty, proved"] += one.empty and one.said == "infeasible"
        count["empty, not proved"] += one.empty and one.said == "no_solution"
    return count


def kept(file: Path | None) -> dict[int, Counter[str]]:
    """The chunks that a file has, by their first problem."""
    lines = file.read_text().splitlines() if file is not None and file.exists() else []
    known = [json.loads(line) for line in lines]
    return {line["first"]: Counter(line["count"]) for line in known if "count" in line}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reach_volume", description=__doc__)
    parser.add_argument("--from", type=int, default=0, dest="first", help="number of the first problem")
    parser.add_argument("--to", type=int, default=1_000, dest="last", help="number after the last one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=0.5, help="time limit of one solve")
    parser.add_argument("--within", type=float, default=float("inf"), help="seconds in all")
    parser.add_argument("--out", type=Path, help="file of lines, to be gone on with")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    have = kept(options.out)
    total, begin = sum(have.values(), Counter[str]()), time.perf_counter()
    tasks = [
        Task(k, min(k + CHUNK, options.last), options.seconds)
        for k in range(options.first, options.last, CHUNK)
        if k not in have
    ]
    for number, (task, found) in enumerate(
        ended(work, tasks, options.jobs, PATIENCE, options.within), start=1
    ):
        lines: list[dict[str, object]] = []
        if found is None:
            total["no answer"] += 1
            lines.append({"finding": f"no answer of problems {task.first} to {task.last - 1}"})
        else:
            count = count_of(found)
            total += count
            lines += [{"finding": asdict(one)} for one in found if one.wrong or one.said == "raised"]
            lines.append({"first": task.first, "count": count})
        for line in lines:
            if "finding" in line:
                print(json.dumps(line), flush=True)
            if options.out is not None:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
        if number % 10 == 0 or number == len(tasks):
            print(f"{time.perf_counter() - begin:8.0f} s  {counted(total)}", flush=True)
    print(counted(total))
    return 1 if total["exceptions"] or total["false claims"] or total["no answer"] else 0


if __name__ == "__main__":
    sys.exit(main())
