"""The zoo, solved by the default method and, beside it, by big-M in SCIP.

    python -m benchmarks.zoo --size 1 --seeds 2 --seconds 20 [--kinds water,chain]

One thread, one solve after the other; seconds are of the wall, and problems are built before either clock
starts. Kinds with a star are held out: they are reported, and nothing is tuned on them. What big-M does not
take (trees, LSTMs, products) is marked as refused.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.console import Console

import dovetail as dt
from dovetail_study.experiment import NOTHING, ResultTable
from dovetail_study.zoo import KINDS, build

HEADER = ("kind", "objective", "bound", "status", "s", "big-M objective", "bound", "status", "s")
REFUSED = (NOTHING, NOTHING, "refused", NOTHING)


def run(size: int, seeds: int, seconds: float, kinds: Sequence[str] = ()) -> ResultTable:
    """A row for each kind and seed."""
    table = ResultTable(
        "zoo",
        f"The zoo at size {size}, {seeds} seed(s), {seconds:g} s each",
        HEADER,
        reading="Left `dt.solve`, right SCIP on the networks written out with big-M. * is held out.",
    )
    for name in kinds or KINDS:
        for seed in range(seeds):
            problem = build(name, size, seed)
            told = f"{name}{'*' if KINDS[name].held_out else ''}{f' {seed}' if seeds > 1 else ''}"
            table.rows.append([told, *_cells(problem, "auto", seconds), *_cells(problem, "big-m", seconds)])
    return table


def _cells(problem: dt.Problem, method: str, seconds: float) -> Sequence[str]:
    try:
        result = dt.solve(problem, method, time_limit=seconds, log=False)
    except dt.UnsupportedError:
        return REFUSED
    return (
        _number(result.objective),
        _number(result.bound),
        str(result.status.value),
        f"{result.seconds:.1f}",
    )


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.6g}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--size", type=int, choices=(1, 2, 3), default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0, help="for each solve")
    parser.add_argument("--kinds", default="", help="some of them, with commas between")
    options = parser.parse_args()
    kinds = [name for name in options.kinds.split(",") if name]
    unknown = set(kinds) - set(KINDS)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))} is not one of {', '.join(KINDS)}")
    run(options.size, options.seeds, options.seconds, kinds).show(Console(width=150))


if __name__ == "__main__":
    main()
