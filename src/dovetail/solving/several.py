"""Several solutions of one problem: the best, the best that differs from it, and so on.

Two solutions differ if an integer decision differs, or without integer decisions if an input of a predictor
differs by more than a part of its range. A re-solve excludes what is known: for each known solution v and
each decision x_j a binary p says that x_j >= v_j + step, and m that x_j <= v_j - step; one of them has to be
1.

    x_j >= l_j + (v_j + step - l_j) p        x_j <= u_j - (u_j - v_j + step) m        sum of all p, m >= 1

The search of the first solve keeps every verified solution, and a re-solve begins with the best of them that
differs; it is the answer if the time is over.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import propagate
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.check import check
from dovetail.core.errors import UnsupportedError
from dovetail.core.problem import Problem
from dovetail.report.log.journal import opened
from dovetail.run.budget import StopReason
from dovetail.run.environment import Interrupts
from dovetail.run.result import BoundKind, Result, Settings, Status
from dovetail.solving.follow_up import ProblemFollowUp
from dovetail.solving.job import loaded, solve_model
from dovetail.solving.options import SolveOptions

FIRST_SHARE = 0.5
"""Share of the time for the best solution; the others share what is left."""
MOST_KEPT = 10_000
"""Largest number of verified solutions that a search keeps; the best half is kept beyond it."""
ENDED_EARLY = (StopReason.INTERRUPT, StopReason.CALLBACK, StopReason.ERROR)


@dataclass(eq=False)
class VerifiedPoints:
    """The verified solutions of a search, for a minimised objective."""

    points: list[tuple[float, FloatArray]] = field(default_factory=list)

    def add(self, objective: float, x: FloatArray) -> None:
        """Keep a solution."""
        self.points.append((objective, x.copy()))
        if len(self.points) > MOST_KEPT:
            self.points = sorted(self.points, key=lambda pair: pair[0])[: MOST_KEPT // 2]

    def best(self, most: int, columns: int) -> FloatArray | None:
        """The best solutions over the first columns, at most so many."""
        order = sorted(self.points[:], key=lambda pair: pair[0])[:most]
        return np.array([x[:columns] for _, x in order]) if order else None


@dataclass(frozen=True, eq=False)
class _Decisions:
    """The columns by which solutions differ, and by how much."""

    columns: IntArray
    step: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, problem: Problem, known: int, distance: float) -> _Decisions:
        """The integer decisions among the first `known` columns, otherwise the predictors' inputs."""
        mip = problem.mip
        free = mip.lower < mip.upper
        free[problem.outputs] = False
        free[known:] = False
        columns = np.flatnonzero(free & mip.integer)
        if columns.size == 0:
            columns = np.intersect1d(problem.inputs, np.flatnonzero(free))
        box = propagate(mip)
        lower, upper = box.lower[columns], box.upper[columns]
        endless = np.flatnonzero(~np.isfinite(upper - lower))
        if endless.size or columns.size == 0:
            what = (
                f"{mip.column_name(int(columns[endless[0]]))} has none" if endless.size else "there are none"
            )
            raise UnsupportedError(
                f"solutions: needs integer variables or inputs of predictors with bounds, and {what}."
            )
        step = np.where(mip.integer[columns], 1.0, distance * (upper - lower))
        return cls(columns, step, lower, upper)

    def differ(self, x: FloatArray, z: FloatArray) -> bool:
        """Whether two solutions are different."""
        return bool(np.any(np.abs(x[self.columns] - z[self.columns]) >= self.step * (1.0 - 1e-6)))

    def excluding(self, problem: Problem, known: list[FloatArray]) -> Problem:
        """The problem without the known solutions and what does not differ from them."""
        for number, v in enumerate(known):
            problem = self._without(problem, v[self.columns], number)
        return problem

    def _without(self, problem: Problem, v: FloatArray, number: int) -> Problem:
        mip, d = problem.mip, self.columns.size
        first = mip.n_columns
        up, down = v + self.step <= self.upper + 1e-9, v - self.step >= self.lower - 1e-9
        names = [f"{way} {number} ({mip.column_name(j)})" for way in ("above", "below") for j in self.columns]
        room = np.concatenate([up, down]).astype(np.float64)
        mip = mip.with_columns(np.zeros(2 * d), room, np.ones(2 * d, dtype=bool), names)
        places, p = np.arange(d), np.arange(first, first + d)
        shape = (d, mip.n_columns)
        above = sp.csr_array((np.ones(d), (places, self.columns)), shape) - sp.csr_array(
            (np.where(up, v + self.step - self.lower, 0.0), (places, p)), shape
        )
        below = sp.csr_array((np.ones(d), (places, self.columns)), shape) + sp.csr_array(
            (np.where(down, self.upper - v + self.step, 0.0), (places, p + d)), shape
        )
        some = sp.csr_array((np.ones(2 * d), (np.zeros(2 * d, dtype=int), np.r_[p, p + d])), (1, shape[1]))
        nothing, free = np.full(d, -np.inf), np.full(d, np.inf)
        mip = mip.with_rows(
            sp.vstack([above, below, some]),
            np.concatenate([self.lower, nothing, [1.0]]),
            np.concatenate([free, self.upper, [np.inf]]),
            None if mip.row_names is None else [f"different {number} ({i})" for i in range(2 * d + 1)],
        )
        return problem.derived(mip, problem.blocks)

    def completed(self, x: FloatArray, known: list[FloatArray]) -> FloatArray:
        """A different solution with the binaries of the exclusions."""
        binaries = [
            part.astype(np.float64)
            for v in known
            for part in (
                x[self.columns] >= v[self.columns] + self.step * (1.0 - 1e-9),
                x[self.columns] <= v[self.columns] - self.step * (1.0 - 1e-9),
            )
        ]
        return np.concatenate([x, *binaries])


def solve_several(model: Any, options: SolveOptions, interrupts: Interrupts) -> Result:
    """The best solution with others in `alternatives`, the best of them first."""
    begin, points = time.perf_counter(), VerifiedPoints()
    first = solve_model(
        model, replace(options, time_limit=FIRST_SHARE * options.time_limit, verified=points, load=False),
        interrupts,
    )  # fmt: skip
    others: list[Result] = []
    if isinstance(first.follow_up, ProblemFollowUp) and first.x is not None:
        problem = first.follow_up.problem
        own = problem.stated.n_columns if first.origin is None else len(first.origin.reading.keys)
        decisions = _Decisions.of(problem, own, options.distance)
        journal = opened(options.log)
        while len(others) + 1 < options.solutions and first.stop_reason not in ENDED_EARLY:
            left = options.time_limit - (time.perf_counter() - begin)
            share = left / (options.solutions - 1 - len(others))
            found = _next(problem, decisions, [first, *others], points, share, options, interrupts)
            if found is None:
                break
            others.append(found)
            journal.say(
                f"  solution {len(others) + 1}: objective {found.objective:.8g}, {found.status.value}"
            )
            if found.stop_reason in ENDED_EARLY:
                break
        journal.close()
        others.sort(key=lambda other: problem.stated.sign * (other.objective or 0.0))
    settings = Settings.of(options.method, options.repeatable)
    seconds = time.perf_counter() - begin
    result = replace(first, alternatives=tuple(others), settings=settings, seconds=seconds)
    return loaded(result) if options.load else result


def _next(
    problem: Problem,
    decisions: _Decisions,
    before: list[Result],
    points: VerifiedPoints,
    seconds: float,
    options: SolveOptions,
    interrupts: Interrupts,
) -> Result | None:
    """The best solution that differs from all before; None if none was found."""
    known = [result.x for result in before if result.x is not None]
    kept = next(
        (
            x[: problem.stated.n_columns]
            for _, x in sorted(points.points, key=lambda pair: pair[0])
            if all(decisions.differ(x, v) for v in known)
        ),
        None,
    )
    start = None if kept is None else decisions.completed(kept, known)
    found = None
    if seconds > 0.0:
        found = solve_model(
            decisions.excluding(problem, known),
            replace(
                options, time_limit=seconds, start=start, target=None, log=None, callback=None, log_file=None,
                checkpoint=None, inner=True, load=False, verified=points, solutions=1,
            ),
            interrupts,
        )  # fmt: skip
    x = kept if found is None or found.x is None else found.x[: problem.stated.n_columns]
    if x is None:
        return None
    violation = check(problem, x)
    if not violation.within():
        return None
    first, proved = before[0], found is not None and found.status is Status.OPTIMAL
    return replace(
        found or first,
        status=Status.OPTIMAL if proved else Status.FEASIBLE,
        objective=problem.stated.objective(x),
        bound=found.bound if found is not None else None,
        bound_kind=found.bound_kind if found is not None else BoundKind.NONE,
        x=x,
        violation=violation,
        names=first.names,
        facts=first.facts,
        origin=first.origin,
        certifying=None,
        follow_up=None if first.follow_up is None else replace(first.follow_up, x=x),  # type: ignore[type-var]
        message=f"{'the best' if proved else 'a'} solution that differs from the {len(before)} found before",
    )
