"""The differential suite of tree ensembles at volume: `python -m benchmarks.trees_volume --jobs 12`.

Small problems against enumeration of all cells (`tests/differential/test_trees.py`). With `--out` every
problem is a line of a file, and those that have one are not solved again. Prints what was counted, and every
claim that is wrong; ends with 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path

from tests.differential.test_trees import Judged, judged

from dovetail.run.processes import WorkerLost, pooled

CHUNK = 10
"""Problems of a task: seconds."""


def work(seeds: list[int]) -> list[Judged]:
    """One after the other."""
    return [judged(seed) for seed in seeds]


def counted(every: Iterable[Judged]) -> str:
    """In one line."""
    count = Counter[str]()
    for one in every:
        kind = "empty" if one.empty else "hard" if one.hard else "easy"
        count.update([kind, *(f"{kind} {name}" for name in ("found", "proved") if getattr(one, name))])
        count.update(["wrong"] * bool(one.wrong))
    return (
        f"{count['empty'] + count['hard'] + count['easy']} problems, {count['wrong']} wrong; "
        f"{count['hard']} that a hundred random points do not solve: the optimum on {count['hard found']}, "
        f"proved {count['hard proved']}; {count['easy']} that they do: {count['easy found']}, proved "
        f"{count['easy proved']}; {count['empty']} without a point: proved {count['empty proved']}"
    )


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees_volume", description=__doc__)
    parser.add_argument("--problems", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--out", type=Path, help="a file of lines, one for each; goes on where it ended")
    options = parser.parse_args()
    known = options.out.read_text().splitlines() if options.out and options.out.exists() else []
    every = {one.seed: one for one in (Judged(**json.loads(line)) for line in known if line.endswith("}"))}
    todo = [k for k in range(options.first, options.first + options.problems) if k not in every]
    begin = time.perf_counter()
    take = partial(next, (todo[k : k + CHUNK] for k in range(0, len(todo), CHUNK)), None)
    with closing(pooled(work, take, options.jobs, program=True)) as answers:
        for number, (seeds, found) in enumerate(answers, start=1):
            if isinstance(found, WorkerLost):
                raise RuntimeError(f"the process of the problems from {seeds[0]} on {found}")
            for one in found:
                every[one.seed] = one
                if options.out is not None:
                    with options.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(one)) + "\n")
            if number % 10 == 0:
                print(f"{time.perf_counter() - begin:8.0f} s  {counted(every.values())}", flush=True)
    for one in every.values():
        if one.wrong:
            print("WRONG", one.seed, one.wrong)
    print(counted(every.values()))
    return 1 if any(one.wrong for one in every.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
