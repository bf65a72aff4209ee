"""Many samples over several workers: what becomes potable, in what time, and what travels.

    python -m benchmarks.workers --sizes 10000 --workers 1 2 --over processes ray

The water of `benchmarks.many_blocks`, stated as a template. One worker over processes is this process alone.
Seconds of the wall, in which workers that share cores with other work take longer, and of the CPU in all.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from dovetail.run.workers import Workers
from rich.console import Console

import dovetail as dt
from benchmarks.many_blocks import stated
from benchmarks.parallel import each
from benchmarks.usage import cpu_seconds
from dovetail.decomposition import TemplatePricing, hiring
from dovetail_study.problems.water import train
from dovetail_study.table import ResultTable

LIMIT = 900.0
"""Seconds; a run ends by itself."""


@dataclass(frozen=True)
class Asked:
    """One run."""

    n: int
    workers: int
    over: str


@dataclass(frozen=True)
class Answer:
    """Seconds of the wall; bytes both ways, over all workers."""

    potable: int
    opening: float
    """Until there is a Ray to ask."""
    hiring: float
    """Until all workers have their blocks."""
    solving: float
    """Of the solve, hiring included."""
    computing: float
    """Of the CPU, in all processes; those of Ray are not ours to count."""
    steps: int
    per_step: float
    total: float


@contextmanager
def _watched() -> Iterator[tuple[list[float], list[Workers]]]:
    """How long hiring takes, and who is hired."""
    seconds, found, hired = list[float](), list[Workers](), hiring._hired

    def timed(*arguments):  # type: ignore[no-untyped-def]
        begin = time.perf_counter()
        workers, where = hired(*arguments)
        seconds.append(time.perf_counter() - begin)
        found.append(workers)
        return workers, where

    with patch.object(hiring, "_hired", timed), patch.object(hiring, "MANY_BLOCKS", 0):
        yield seconds, found


def answered(asked: Asked) -> Answer:
    """Build and solve once."""
    import torch

    torch.set_num_threads(1)
    instance = stated(asked.n, train("2x16", allow_constant=True, epochs=20))
    with _watched() as (seconds, found):
        begin, computed = time.perf_counter(), cpu_seconds()
        result = dt.solve(
            instance.problem, TemplatePricing(), time_limit=LIMIT, log=False, n_jobs=asked.workers,
            cluster="local" if asked.over == "ray" else None,
        )  # fmt: skip
        wall, computed = time.perf_counter() - begin, cpu_seconds() - computed
    traffic, potable = found[0].traffic, instance.counts(result).potable
    return Answer(
        potable, wall - result.seconds, seconds[0], result.seconds, computed,
        traffic.calls["smoothed"], traffic.per_call("smoothed"), traffic.total,
    )  # fmt: skip


def run(sizes: Sequence[int], workers: Sequence[int], over: Sequence[str]) -> ResultTable:
    """One after the other, each in a process of its own."""
    table = ResultTable(
        "workers",
        "Water, 2x16, over several workers",
        [
            "n",
            "over",
            "workers",
            "potable",
            "opening s",
            "hiring s",
            "solve s",
            "CPU s",
            "steps",
            "bytes a step",
            "MB",
        ],
    )
    for asked in (Asked(n, count, place) for n in sizes for place in over for count in workers):
        (answer,) = each(answered, [asked], 1)
        table.rows.append(
            [f"{asked.n:,}", asked.over, str(asked.workers), f"{answer.potable:,}"]
            + [
                f"{number:.1f}"
                for number in (answer.opening, answer.hiring, answer.solving, answer.computing)
            ]
            + [str(answer.steps), f"{answer.per_step:,.0f}", f"{answer.total / 1e6:.2f}"]
        )
    table.reading = (
        "*Opening*: until Ray runs; it is no part of the time limit. *Hiring*: until all workers have their "
        "blocks; it is part of the solve. *Steps*: sums over all blocks at other prices. *MB*: all that "
        "travelled but the blocks themselves. Repeat with `python -m benchmarks.workers`."
    )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000], metavar="N")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], metavar="W")
    parser.add_argument("--over", nargs="+", choices=["processes", "ray"], default=["processes"])
    options = parser.parse_args()
    run(options.sizes, options.workers, options.over).show(Console(width=150))


if __name__ == "__main__":
    main()
