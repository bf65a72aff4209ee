"""Tree ensembles: `auto` beside SCIP on the form that PySCIPOpt-ML writes, leaf by leaf.

    python -m benchmarks.trees diet:30x5 water:10x5 --seeds 0 1 2 --seconds 60
    python -m benchmarks.trees --grid --jobs 15 --within 540 --out runs.jsonl
    python -m benchmarks.trees --table runs.jsonl

After the colon: trees x depth, of a family of `benchmarks/tree_families.py`. One process and one thread for
each run. With `--out` every run is a line of a file, and those that have one are not run again; the grid is
what docs/benchmarks/trees.md has.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.parallel import ended
from benchmarks.tree_runs import Answer, Asked, answered
from benchmarks.tree_table import Runs, read, summary, table, written

GRID = (
    *(f"{family}:{size}" for size in ("500x8", "300x7", "100x8", "30x8") for family in ("plant", "diet")),
    *(f"{family}:{size}" for size in ("100x6", "100x4", "30x5") for family in ("plant", "diet")),
    *("wine:10x5", "water:10x5", "treatment:10x5", "planting:10x5", "plant:4x4", "diet:4x4"),
)
"""Sizes of 4 to 500 trees and depths of 4 to 8; the longest runs first, so that no core waits for one."""
GRACE = 120.0
"""Seconds beyond the limit, for training and the peer's building; then a run is ended, and has no answer."""


def asked_for(
    names: Sequence[str], seeds: Sequence[int], seconds: float, solve_seeds: Sequence[int], peer: bool
) -> list[Asked]:
    """All runs, both sides of an instance one after the other."""
    whose: list[int | None] = [*solve_seeds, *([None] if peer else [])]
    return [
        Asked.named(name, seed, seconds, who) for name in names for seed in seeds for who in whose
    ]  # fmt: skip


def run(asked: Sequence[Asked], jobs: int, within: float, out: Path | None) -> Runs:
    """What has no line in the file yet; with what has."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # of the processes that are begun from here
    runs = {} if out is None else read(out)
    console = Console(stderr=True)
    todo = [one for one in asked if one not in runs]
    patience = GRACE + max((one.seconds for one in todo), default=0.0)
    for one, answer in ended(answered, todo, jobs, patience, within):
        runs[one] = answer or Answer(float("nan"), float("nan"), False, float("nan"), note="ended, no answer")
        console.print(one.instance, one.solve_seed, runs[one].objective, f"{runs[one].cpu:.1f} s")
        if out is not None:
            with out.open("a", encoding="utf-8") as file:
                file.write(written(one, runs[one]) + "\n")
    return runs


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees", description=__doc__)
    parser.add_argument("instances", nargs="*", default=[])
    parser.add_argument("--grid", action="store_true", help="all that the documentation has")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--solve-seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--within", type=float, default=float("inf"), help="seconds for all of it")
    parser.add_argument("--out", type=Path, help="a file of lines, one for each run; goes on where it ended")
    parser.add_argument("--table", type=Path, help="run nothing: the table of such a file, as Markdown")
    options = parser.parse_args()
    if options.table is not None:
        runs = read(options.table)
        print(table(runs).markdown(level=1), summary(runs).markdown(), sep="\n")
        return
    names = [*options.instances, *(GRID if options.grid else [])]
    asked = asked_for(names, options.seeds, options.seconds, options.solve_seeds, not options.no_peer)
    runs = run(asked, options.jobs, options.within, options.out)
    table({one: runs[one] for one in asked if one in runs}).show(Console(width=200))


if __name__ == "__main__":
    main()
