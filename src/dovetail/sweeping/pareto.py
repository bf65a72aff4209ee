"""`dovetail.pareto`: solutions of which none is better in all of two or three objectives.

    min  c_1'x + a little of the others    s.t.  the model,  c_i'x <= e_i  for i = 2, 3

for limits e_2 between the best value of the second objective and its worst value among the best solutions of
the others, and limits e_3 between the third objective of the best first one and the best third objective
within e_2 (the epsilon-constraint method; Mavrotas, 2009). It also finds solutions between the corners of the
front, which weighted sums miss.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TextIO

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.errors import DovetailError, OptionError
from dovetail.core.options import require_count
from dovetail.core.problem import Problem
from dovetail.core.words import did_you_mean, grid, listed
from dovetail.modelling.snapshot import take_snapshot
from dovetail.report.matplotlib_plot import front_figure
from dovetail.run.budget import Budget
from dovetail.run.environment import Interrupts, cores, processes
from dovetail.run.monitor import Monitor
from dovetail.run.result import Result
from dovetail.run.trace import frame
from dovetail.solving.options import log_stream
from dovetail.sweeping.sweep import solved, solved_cases
from dovetail.sweeping.sweep_result import Case, SweepRow

LITTLE = 1e-3
"""Weight of the other objectives, relative to the ranges: of two solutions with the same first objective the
one that is better in the others is found."""
SAME = 1e-6
"""Relative to the range of an objective, or to its size: room of limits for rounding."""
Limits = list[float | None]
"""A limit for each objective, in minimisation form."""
MERGED = 1e-4
"""Relative to the range of an objective: points nearer than the default gap of the solves are one point."""
OWN = "objective"
"""The model's own objective, unless a variable has this name."""
USAGE = 'give two or three, for example {"cost": "min", "yield": "max"}'


def pareto(
    model: Any,
    objectives: Mapping[str, Any],
    points: int = 9,
    *,
    n_jobs: int = 1,
    log: bool | TextIO = True,
    **options: Any,
) -> ParetoFront:
    """Solutions of which none is better in all objectives than another (docs/several.md).

    `objectives` has two or three names: of a variable with "min" or "max", of any name with a pair such as
    ``("min", {"x": 2.0, "y": 1.0})``, or "objective" for the model's own with its sense or None. `points` is
    the number of limits of the second objective; with three objectives, about that of all pairs of limits.
    `options` are those of `dovetail.solve` for each point. The model stays as it is. Ctrl-C returns the
    points so far.

    >>> import dovetail as dt
    >>> mip = dt.Mip([1.0, 0.0], [[1.0, 1.0]], [1.0], [9.0], upper=1.0, names=["cost", "risk"])
    >>> front = dt.pareto(dt.Problem(mip), {"cost": "min", "risk": "min"}, points=3, log=False)
    >>> front.values.round(3).tolist()
    [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]
    """
    snapshot = take_snapshot(model)
    goals = _Goals.of(snapshot.problem, objectives)
    require_count("points", points, at_least=2)
    monitor = Monitor(Budget(math.inf), log_stream(log))
    search = _Search(snapshot.problem, goals, min(processes(n_jobs), cores()), options, monitor)
    try:
        with Interrupts(at_once=True):
            search.run(int(points))
    except KeyboardInterrupt:
        monitor.say("  interrupted: the points so far are returned")
    results = [
        replace(row.result, origin=snapshot.origin)
        for row in search.rows
        if row.status and row.objective is not None
    ]
    return ParetoFront.of(goals, results)


@dataclass(frozen=True, eq=False)
class _Goals:
    """The objectives, in minimisation form."""

    names: tuple[str, ...]
    senses: tuple[str, ...]
    cost: FloatArray
    """(objectives, columns)"""
    offset: FloatArray

    @classmethod
    def of(cls, problem: Problem, given: Any) -> _Goals:
        """The goals, or an error that names the one that is not understood."""
        if not isinstance(given, Mapping) or len(given) not in (2, 3):
            raise OptionError(f"objectives is {given!r}; {USAGE}.")
        mip = problem.mip
        column = {mip.column_name(j): j for j in range(mip.n_columns)}
        cost, offset, senses = np.zeros((len(given), mip.n_columns)), np.zeros(len(given)), []
        for k, (name, said) in enumerate(given.items()):
            sense, terms = said if isinstance(said, (tuple, list)) and len(said) == 2 else (said, None)
            own = terms is None and name == OWN and name not in column
            sense = mip.sense if own and sense is None else sense
            if sense not in ("min", "max"):
                raise OptionError(f"objectives: the sense of {name!r} is {sense!r}; give 'min' or 'max'.")
            if own:
                cost[k], offset[k] = mip.cost, mip.offset
            for variable, weight in ({} if own else {name: 1.0} if terms is None else dict(terms)).items():
                if variable not in column:
                    known = did_you_mean(variable, column)
                    raise OptionError(
                        f"objectives: there is no variable called {variable!r}{known}; {USAGE}, "
                        "or ('min', {'x': 2.0}) for a sum."
                    )
                cost[k, column[variable]] = float(weight)
            sign = 1.0 if sense == "min" else -1.0
            cost[k], offset[k] = sign * cost[k], sign * offset[k]
            senses.append(str(sense))
        return cls(tuple(given), tuple(senses), cost, offset)

    @property
    def signs(self) -> FloatArray:
        """(objectives,) 1 for min, -1 for max."""
        return np.array([1.0 if sense == "min" else -1.0 for sense in self.senses])

    def values(self, x: FloatArray) -> FloatArray:
        """(objectives,) the values of a point, to be minimised."""
        return np.asarray(self.cost @ x[: self.cost.shape[1]] + self.offset)


def one_point(
    problem: Problem, cost: FloatArray, offset: FloatArray, options: dict[str, Any], known: list[Any],
    weights: list[float], limits: list[float | None], **_: Any,
) -> tuple[Problem, dict[str, Any]]:  # fmt: skip
    """The problem of one case: a weighted objective and limits on the others. Other processes import this."""
    mip = problem.mip
    at = [k for k, limit in enumerate(limits) if limit is not None]
    rows = sp.csr_array(cost[at])
    upper = np.array([limits[k] for k in at], dtype=np.float64) - offset[at]
    w = np.array(weights)
    host = replace(mip, cost=w @ cost, offset=float(w @ offset), sense="min", row_names=None)
    if at:
        host = host.with_rows(rows, np.full(len(at), -np.inf), upper)
    fits = [x for x in known if np.all(rows @ x <= upper + 1e-9)]
    start = min(fits, key=lambda x: float(w @ (cost @ x)), default=None)
    return problem.derived(host, problem.blocks), {**options, "start": start}


class _Search:
    """The cases: each objective alone, each other one with that at its best, then limits on the second one,
    and of three objectives between the best first and the best third one within each of these limits."""

    def __init__(
        self, problem: Problem, goals: _Goals, jobs: int, options: dict[str, Any], monitor: Monitor
    ) -> None:
        self._problem, self._goals, self._jobs = problem, goals, jobs
        self._options, self._monitor = options, monitor
        self._known: list[FloatArray] = []
        self.rows: list[SweepRow] = []

    def run(self, points: int) -> None:
        """Solve all cases."""
        count = len(self._goals.names)
        nothing: Limits = [None] * count
        alone = np.eye(count) + LITTLE * (1.0 - np.eye(count)) * self._sizes()
        single = self._solve([(alone[k], nothing) for k in range(count)])
        if any(values is None for values in single):
            return
        best = np.array(single).min(axis=0)
        room = SAME * np.maximum(1.0, np.abs(best))
        pairs = [(k, j) for k in range(count) for j in range(count) if j != k]
        held = [_with(nothing, k, best[k] + room[k]) for k, _ in pairs]
        asked = [(alone[j], line) for (_, j), line in zip(pairs, held, strict=True)]
        ends = dict(zip(pairs, self._solve(asked), strict=True))
        found = np.array([values for values in (*single, *ends.values()) if values is not None])
        best, worst = found.min(axis=0), found.max(axis=0)
        span = np.maximum(worst - best, 1e-12)
        weights = np.where(np.eye(count) > 0.0, 1.0, LITTLE * span[:, None] / span[None, :])
        steps = points if count == 2 else max(2, math.ceil(math.sqrt(points)))
        ticks = np.linspace(worst[1], best[1], steps)[1:-1] + SAME * span[1]
        lines = [_with(nothing, 1, limit) for limit in ticks]
        if count == 2:
            self._solve([(weights[0], line) for line in lines])
            return
        sides = self._solve([(weights[k], line) for line in lines for k in (0, 2)])
        whole = [
            (nothing, ends[0, 1], ends[2, 0]),
            *zip(lines, sides[0::2], sides[1::2], strict=True),
            (_with(nothing, 1, best[1] + SAME * span[1]), ends[1, 0], ends[1, 2]),
        ]
        inner = []
        for line, first, last in whole:
            if first is not None and last is not None and first[2] - last[2] > SAME * span[2]:
                limits = np.linspace(first[2], last[2], steps)[1:-1]
                inner += [(weights[0], _with(line, 2, limit)) for limit in limits]
        self._solve(inner)

    def _sizes(self) -> FloatArray:
        """How the costs of the objectives compare, before their ranges are known."""
        size = np.abs(self._goals.cost).max(axis=1)
        return np.asarray(np.minimum(1.0, size[:, None] / np.maximum(size[None, :], 1e-12)))

    def _solve(self, asked: list[tuple[FloatArray, Limits]]) -> list[FloatArray | None]:
        """The objectives that were found with these weights and limits; None without a solution."""
        goals, first = self._goals, len(self.rows)
        cases: list[Case] = [
            {"number": first + k, "weights": weights.tolist(), "limits": limits}
            for k, (weights, limits) in enumerate(asked)
        ]
        found: list[FloatArray | None] = [None] * len(cases)
        build = partial(one_point, self._problem, goals.cost, goals.offset, self._options, self._known)
        coming: Generator[SweepRow, None, None] = (
            solved_cases("pareto", build, cases, self._jobs, keep=True)
            if self._jobs > 1
            else (solved("pareto", build, case, keep=True) for case in cases)
        )
        with closing(coming) as rows:
            for row in rows:
                if row.error:
                    raise DovetailError(f"a point of the front failed: {row.error}")
                self.rows.append(row)
                words = f"{row.status}"
                if row.objective is not None:
                    x = row.result.x
                    assert x is not None
                    self._known.append(x)
                    values = found[row.case["number"] - first] = goals.values(x)
                    said = zip(goals.names, goals.signs * values, strict=True)
                    words = ", ".join(f"{n} {v:.6g}" for n, v in said)
                    words += f", {row.status}, {row.seconds or 0.0:.1f} s"
                self._monitor.say(f"  {len(self.rows)}: {words}")
        return found


@dataclass(frozen=True, eq=False)
class ParetoFront(Sequence[Result]):
    """The solutions of a front, ordered by the first objective; reads like a list of results.

    >>> import dovetail as dt
    >>> mip = dt.Mip([1.0, 0.0], [[1.0, 1.0]], [1.0], [9.0], upper=1.0, names=["cost", "risk"])
    >>> front = dt.pareto(dt.Problem(mip), {"cost": "min", "risk": "min"}, points=2, log=False)
    >>> len(front), front[0].x.round(3).tolist(), front.proved.tolist()
    (2, [0.0, 1.0], [True, True])
    """

    names: tuple[str, ...]
    senses: tuple[str, ...]
    values: FloatArray
    """(points, objectives) in your signs."""
    results: tuple[Result, ...]
    """The result of each; `objective` is that of its own solve: the first, and a little of the others."""

    @classmethod
    def of(cls, goals: _Goals, results: list[Result]) -> ParetoFront:
        """The results that no other one dominates, each once."""
        points = np.array([goals.values(r.x) for r in results if r.x is not None])
        points = points.reshape(-1, len(goals.names))
        span = np.ptp(points, axis=0) if len(points) else np.zeros(len(goals.names))
        order = np.lexsort(points.T[::-1])
        kept: list[int] = []
        for i in order:
            better = [k for k in kept if np.all(points[k] <= points[i] + MERGED * np.maximum(span, 1e-9))]
            if not better:
                kept.append(int(i))
        kept = [i for i in kept if not any(_dominates(points[k], points[i]) for k in kept if k != i)]
        values = goals.signs * points[kept]
        return cls(goals.names, goals.senses, values + 0.0, tuple(results[i] for i in kept))

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __getitem__(self, k: Any) -> Any:
        return self.results[k]

    @cached_property
    def proved(self) -> BoolArray:
        """(points,) whether each solve ended with a proof."""
        return np.array([result.status.value == "optimal" for result in self.results], dtype=bool)

    def to_frame(self) -> Any:
        """The objectives and whether each point is proved, as a pandas DataFrame."""
        columns = {name: self.values[:, k] for k, name in enumerate(self.names)}
        return frame("ParetoFront.to_frame", {**columns, "proved": self.proved})

    def plot(self, *, width: float = 6.0) -> Any:
        """The front as a matplotlib figure: proved points are filled; a third objective is the colour."""
        labels = [f"{name} ({sense})" for name, sense in zip(self.names, self.senses, strict=True)]
        return front_figure(labels, self.values, self.proved, width)

    def _lines(self) -> list[list[str]]:
        return [
            [*(f"{value:.6g}" for value in line), "proved" if proved else "found"]
            for line, proved in zip(self.values.tolist(), self.proved, strict=True)
        ]

    def __repr__(self) -> str:
        lines = [[*self.names, ""], *self._lines()]
        wide = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
        text = [
            "  ".join(f"{cell:>{w}}" for cell, w in zip(line, wide, strict=True)).rstrip() for line in lines
        ]
        return "\n".join(text)

    def _repr_html_(self) -> str:
        return grid(f"Front of {listed(list(self.names))}", [*self.names, ""], self._lines())


def _with(limits: Limits, k: int, limit: float) -> Limits:
    """Limits with one more."""
    return [*limits[:k], float(limit), *limits[k + 1 :]]


def _dominates(a: FloatArray, b: FloatArray) -> bool:
    return bool(np.all(a <= b) and np.any(a < b))
