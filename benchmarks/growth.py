"""Growth with the number of blocks and of workers: shards by number, so that nobody holds all blocks.

    python -m benchmarks.growth --sizes 10000 100000 1000000 --workers 1 2 4 8

The water of `benchmarks.many_blocks`, 2x16 (or --network), drawn shard by shard: the shards, and with them
the blocks, are the same however many workers they are spread over. One worker is the process of the solve
itself. One thread each, one run after the other, each in a process of its own; on a machine with other work
seconds of the wall say little.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import Console

import dovetail as dt
from benchmarks.many_blocks import shard_of, usable
from benchmarks.parallel import each
from benchmarks.usage import ENDED, cpu_seconds, peak
from dovetail_study.experiment import ResultTable
from dovetail_study.problems.water import train

LIMIT = 1800.0
"""Seconds; a run ends by itself."""
SHARDS = 16
"""The same for all numbers of workers."""


@dataclass(frozen=True)
class Asked:
    """One run."""

    n: int
    workers: int
    network: str
    shards: int
    ray: bool


@dataclass(frozen=True)
class Answer:
    """Seconds of the wall and of the CPU in all processes; GB at most."""

    result: dt.ShardedResult
    wall: float
    computing: float
    before: float
    """GB of this process before the solve."""
    driver: float
    worker: float
    """GB of the largest; of Ray's they are not ours to count."""


def answered(asked: Asked) -> Answer:
    """State and solve once."""
    import torch

    torch.set_num_threads(1)
    judge = train(asked.network, allow_constant=True, epochs=20)
    build = partial(shard_of, usable(judge), asked.n, asked.shards)
    before, begin, computed = peak(), time.perf_counter(), cpu_seconds()
    with tempfile.TemporaryDirectory() as folder:
        result = dt.solve_shards(
            build, range(asked.shards), out=folder, time_limit=LIMIT, n_jobs=asked.workers,
            cluster="local" if asked.ray else None, log=False,
        )  # fmt: skip
    wall, computed = time.perf_counter() - begin, cpu_seconds() - computed
    driver, worker = peak(), peak(ENDED)
    return Answer(result, wall, computed, before, driver, worker)


def run(
    sizes: Sequence[int],
    workers: Sequence[int],
    *,
    network: str = "2x16",
    shards: int = SHARDS,
    ray: bool = False,
) -> ResultTable:
    """One after the other."""
    table = ResultTable(
        "growth",
        f"Water, {network}, {shards} shards over {'Ray' if ray else 'processes'}",
        ["n", "workers", "potable", "columns allow", "rounds", "wall s", "times quicker", "CPU s",
         "bytes a step", "kB a round", "GB here", "GB before", "GB of a worker"],
    )  # fmt: skip
    for n in sizes:
        alone = None
        for count in workers:
            (answer,) = each(answered, [Asked(n, count, network, shards, ray)], 1)
            result, alone = answer.result, alone or answer.wall
            table.rows.append(
                [f"{n:,}", str(count), f"{result.objective or 0.0:,.0f}", f"{result.limit:,.1f}"]
                + [str(result.rounds)]
                + [f"{number:.1f}" for number in (answer.wall, alone / answer.wall, answer.computing)]
                + [f"{result.step_bytes:,.0f}", f"{result.total_bytes / result.rounds / 1e3:,.0f}"]
                + [f"{number:.2f}" for number in (answer.driver, answer.before, answer.worker)]
            )
    table.reading = (
        "*Times quicker* than the first number of workers. *Bytes a step*: both ways and over all shards, "
        "for one sum over all blocks at other prices; *kB a round*: all that travelled but the network, per "
        "round. *GB here*: the most that the process of the solve held; one worker is that process. Repeat "
        "with `python -m benchmarks.growth`."
    )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000], metavar="N")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], metavar="W")
    parser.add_argument("--network", default="2x16")
    parser.add_argument("--shards", type=int, default=SHARDS)
    parser.add_argument("--ray", action="store_true", help="over a Ray that is started here")
    options = vars(parser.parse_args())
    run(options.pop("sizes"), options.pop("workers"), **options).show(Console(width=170))


if __name__ == "__main__":
    main()
