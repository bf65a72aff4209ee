"""The same problem written in other ways: the same status, the same optimum, and how much more work.

    python -m benchmarks.invariance --kinds diet,heat --size 1 --seeds 2 --combined 3 --seconds 60

Each problem of the zoo is solved as its kind writes it, once by every rule of `dovetail_study.zoo.rewriting`
that changes it, and by random combinations of three rules. Work is nodes plus LPs to the end of the proof;
`ratio` is the work of a form over the least work of all forms of that problem.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import dovetail as dt
from dovetail.core.problem import Problem
from dovetail_study.zoo.rewriting import RULES, rewritten

SAME = 2e-4
"""Relative: objectives that differ by less are the same, at a gap of 1e-4."""
TWICE, FEW = 2.0, 100
"""Work beyond twice the least counts as more, where it is more than a few nodes and LPs at all."""


@dataclass(frozen=True)
class Solved:
    """One form of one problem."""

    form: str
    status: str
    value: float
    """In minimisation form, so that a negated objective compares."""
    bound: float
    work: int
    seconds: float
    part: str


def solved(form: str, problem: Problem, seconds: float) -> Solved:
    """Solve one form."""
    began = time.perf_counter()
    result = dt.solve(problem, time_limit=seconds, log=False)
    sign = problem.mip.sign
    value = np.nan if result.objective is None else sign * result.objective
    bound = np.nan if result.bound is None else sign * result.bound
    seconds = time.perf_counter() - began
    return Solved(
        form,
        str(result.status),
        value,
        bound,
        result.work.nodes + result.work.lps,
        seconds,
        result.bound_source,
    )


def forms(problem: Problem, combined: int, seed: int) -> Iterator[tuple[str, Problem]]:
    """The problem as given, by every rule, and by random combinations."""
    yield "as given", problem
    rng = np.random.default_rng(seed)
    rules = list(RULES)
    ways = [([name], seed) for name in rules]
    ways += [([str(name) for name in rng.choice(rules, 3, replace=False)], seed + k) for k in range(combined)]
    for names, rolled in ways:
        try:
            other = rewritten(problem, names, rolled)
        except ModuleNotFoundError as missing:
            print(f"left out: {' + '.join(names)}: {missing}")
            continue
        if other is not None:
            yield " + ".join(names), other


@dataclass(frozen=True)
class Missed:
    """A form that is not as good as the best one."""

    form: str
    why: str


def compare(label: str, problem: Problem, *, seconds: float, combined: int, seed: int) -> str:
    """Print one line for each form; a row of the table: how many forms there are, and which of them miss."""
    made = [solved(form, other, seconds) for form, other in forms(problem, combined, seed)]
    best = min((one.value for one in made if not np.isnan(one.value)), default=np.nan)
    best_status = "optimal" if any(one.status == "optimal" for one in made) else made[0].status
    least = min(one.work for one in made if one.status == best_status)
    missed: list[Missed] = []
    for one in made:
        ratio = one.work / max(1, least)
        why = [f"status {one.status}"] if one.status != best_status else []
        why += [f"objective {one.value:.7g}"] if abs(one.value - best) > SAME * max(1.0, abs(best)) else []
        why += [f"{ratio:.1f} times the work"] if ratio > TWICE and one.work > FEW else []
        if why:
            missed.append(Missed(one.form, ", ".join(why)))
        print(
            f"{label:28} {one.form:44} {one.status:11} {one.value:14.7g} {one.bound:14.7g} {one.work:8} "
            f"{ratio:7.1f} {one.seconds:6.1f}s {one.part:16} {', '.join(why)}",
            flush=True,
        )
    listed = "; ".join(f"{one.form}: {one.why}" for one in missed)
    return f"| {label} | {len(made)} | {len(missed)} | {least:,} | {listed} |"


def main() -> None:
    """Read the options and compare."""
    from dovetail_study import zoo

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", default="", help="names, with commas; all of them without it")
    parser.add_argument("--size", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--combined", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    rows = []
    for name in options.kinds.split(",") if options.kinds else zoo.KINDS:
        for seed in range(options.seeds):
            problem = zoo.build(name, options.size, seed)
            label = f"{name} {seed}" + (" (held out)" if zoo.KINDS[name].held_out else "")
            rows.append(
                compare(label, problem, seconds=options.seconds, combined=options.combined, seed=seed)
            )
    print("| problem | forms | missed | least work | missed by |\n| --- | ---: | ---: | ---: | --- |")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
