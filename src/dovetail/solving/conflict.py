"""A smallest set of constraints, bounds and predictors of an infeasible problem that contradict each other.

A part belongs to the set if the others are feasible without it. Every answer is a proof: a set is called
infeasible by the same proofs as the whole problem, and feasible if a verified point exists. Parts are left
out by halves (QuickXplain: Junker, AAAI 2004), so that a set of k of n parts takes about 2 k log(n / k)
answers. A point that was found answers later questions, too: a set is feasible if the point violates nothing
of it. The bounds of a predictor's inputs belong to the predictor: nothing is proved of a network whose inputs
have no limits.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.check import check
from dovetail.core.conflict import Conflict, ConflictPart
from dovetail.core.errors import DovetailError
from dovetail.core.mip import TOLERANCE
from dovetail.core.problem import Problem
from dovetail.run.budget import Budget
from dovetail.solving.host import analyse_host

MOST_ENTRIES = 2_000_000
"""Largest number of matrix entries of a problem that is examined."""
SHARE, SECONDS = 0.5, 10.0
"""Share of the time left, and largest number of seconds."""
LONGEST, LEAST_SECONDS = 4.0, 0.5
"""An answer may take four times as long as the first proof, and at least half a second: problems without an
objective are solved as fast, and what is not answered then is kept in the set."""

Answer = tuple[bool, FloatArray | None]
"""Whether a problem is proved infeasible, and a verified point."""
Solve = Callable[[Problem, float], Answer]
"""Answers for a problem, in so many seconds."""


def smallest_conflict(problem: Problem, solve: Solve, budget: Budget, proved_in: float) -> Conflict | None:
    """The parts that contradict each other; None for a very large problem, or if no time is left. The first
    proof took `proved_in` seconds."""
    part = budget.part(min(SECONDS, SHARE * budget.left))
    if problem.stated.nonzeros > MOST_ENTRIES or part.left <= 0.0:
        return None
    return _Filter(problem, solve, part, max(LEAST_SECONDS, LONGEST * proved_in)).conflict()


class _Filter:
    """The parts of one problem, and what is known about sets of them."""

    def __init__(self, problem: Problem, solve: Solve, budget: Budget, longest: float) -> None:
        self._problem, self._mip, self._solve = problem, problem.mip, solve
        self._budget, self._longest = budget, longest
        mip = self._mip
        fixed = mip.lower == mip.upper
        self._rows = np.flatnonzero(np.isfinite(mip.row_lower) | np.isfinite(mip.row_upper))
        self._fixed = np.flatnonzero(fixed)
        self._lower = np.flatnonzero(np.isfinite(mip.lower) & ~fixed)
        self._upper = np.flatnonzero(np.isfinite(mip.upper) & ~fixed)
        self._samples = [(block, k) for block in problem.blocks for k in range(block.samples)]
        sizes = [len(kind) for kind in (self._rows, self._lower, self._upper, self._fixed, self._samples)]
        self._ends = np.cumsum(sizes).tolist()
        """Where each kind of part ends: parts are numbered kind by kind, those to leave out first last."""
        self._seen: list[BoolArray] = []
        """Of each point that was found, (parts,) whether the point violates a part, or may."""
        self._doubtful = False
        """Whether an answer is missing."""

    def conflict(self) -> Conflict | None:
        """The set: first which rows and predictors beside all bounds, then which bounds beside these."""
        every, bound = np.arange(self._ends[-1]), np.zeros(self._ends[-1], dtype=bool)
        bound[self._ends[0] : self._ends[3]] = True
        found = self._needed(every[bound], every[~bound], changed=True)
        own = self._bounds_of_inputs(found)
        free = np.flatnonzero(bound & ~np.isin(every, own))
        found = np.concatenate([found, self._needed(np.concatenate([found, own]), free, changed=True)])
        minimal = True
        if self._doubtful:
            found, minimal = self._one_by_one(found, own)
        return Conflict(tuple(self._part(k) for k in sorted(found.tolist())), minimal)

    def _needed(self, given: IntArray, parts: IntArray, *, changed: bool) -> IntArray:
        """The needed ones of these `parts` beside those `given`; both together are infeasible. `changed`:
        whether parts were given since the last answer."""
        if changed and self._infeasible(given):
            return parts[:0]
        if parts.size <= 1:
            return parts
        first, second = parts[: parts.size // 2], parts[parts.size // 2 :]
        kept = self._needed(np.concatenate([given, first]), second, changed=True)
        return np.concatenate(
            [self._needed(np.concatenate([given, kept]), first, changed=kept.size > 0), kept]
        )

    def _bounds_of_inputs(self, found: IntArray) -> IntArray:
        """The bounds of the inputs of the predictors in a set."""
        samples = (self._samples[k - self._ends[3]] for k in found[found >= self._ends[3]].tolist())
        read = np.zeros(self._mip.n_columns, dtype=bool)
        for block, sample in samples:
            read[block.inputs[sample]] = True
        kinds = [self._lower, self._upper, self._fixed]
        return np.asarray(self._ends[0] + np.flatnonzero(read[np.concatenate(kinds)]))

    def _one_by_one(self, found: IntArray, own: IntArray) -> tuple[IntArray, bool]:
        """The set after each part was left out once, and whether every answer is known. The parts of `own`
        stay."""
        minimal = True
        for k in found.tolist():
            self._doubtful = False
            others = found[found != k]
            if self._infeasible(np.concatenate([others, own])):
                found = others
            minimal &= not self._doubtful
        return found, minimal

    def _infeasible(self, parts: IntArray) -> bool:
        """Whether these parts are proved infeasible."""
        kept = np.zeros(self._ends[-1], dtype=bool)
        kept[parts] = True
        if any(not np.any(kept & violated) for violated in self._seen):
            return False
        infeasible, x = self._answer(self._reduced(kept))
        if x is not None:
            self._seen.append(self._violated(x, kept))
        self._doubtful |= not infeasible and x is None
        return infeasible

    def _answer(self, problem: Problem) -> Answer:
        seconds = min(self._longest, self._budget.left)
        if self._budget.over:
            return False, None
        if problem.blocks:
            with suppress(DovetailError), np.errstate(invalid="ignore"):  # inputs may have no finite range
                return self._solve(problem, seconds)
            return False, None
        host = analyse_host(problem, self._budget.part(seconds), at_any_size=True)
        right = host.x is not None and check(problem, host.x).within()
        return host.infeasible, host.x if right else None

    def _kinds(self, kept: np.ndarray) -> list[np.ndarray]:
        """Rows, lower bounds, upper bounds, fixed values, samples."""
        return np.split(kept, self._ends[:-1])

    def _reduced(self, kept: BoolArray) -> Problem:
        """The problem of these parts, without an objective."""
        mip = self._mip
        rows, lower, upper, fixed, samples = self._kinds(kept)
        low, high = np.full(mip.n_columns, -np.inf), np.full(mip.n_columns, np.inf)
        for at in (self._lower[lower], self._fixed[fixed]):
            low[at] = mip.lower[at]
        for at in (self._upper[upper], self._fixed[fixed]):
            high[at] = mip.upper[at]
        own = self._rows[rows]
        given = replace(
            mip, cost=np.zeros(mip.n_columns), offset=0.0, A=mip.A[own], row_lower=mip.row_lower[own],
            row_upper=mip.row_upper[own], row_names=None, lower=low, upper=high,
        )  # fmt: skip
        blocks, begin = [], 0
        for block in self._problem.blocks:
            mine = samples[begin : begin + block.samples]
            begin += block.samples
            if np.any(mine):
                blocks.append(replace(block, inputs=block.inputs[mine], outputs=block.outputs[mine]))
        return self._problem.derived(given, tuple(blocks))

    def _violated(self, x: FloatArray, kept: BoolArray) -> BoolArray:
        """(parts,) whether a point violates a part; of samples those that were not kept may be violated."""
        mip = self._mip
        rows = mip.row_violation(x)[self._rows] > TOLERANCE
        lower = mip.lower[self._lower] - x[self._lower] > TOLERANCE
        upper = x[self._upper] - mip.upper[self._upper] > TOLERANCE
        fixed = mip.bound_violation(x)[self._fixed] > TOLERANCE
        return np.concatenate([rows, lower, upper, fixed, ~self._kinds(kept)[-1]])

    def _part(self, k: int) -> ConflictPart:
        kind = int(np.searchsorted(self._ends, k, side="right"))
        at = k - (self._ends[kind - 1] if kind else 0)
        mip = self._problem.stated
        if kind == 0:
            return ConflictPart("constraint", mip.row_name(int(self._rows[at])))
        if kind == 4:
            block, sample = self._samples[at]
            return ConflictPart("predictor", block.name, sample=sample if block.samples > 1 else None)
        kinds = ("lower bound", self._lower), ("upper bound", self._upper), ("fixed value", self._fixed)
        name, columns = kinds[kind - 1]
        j = int(columns[at])
        limits = self._mip.upper if name == "upper bound" else self._mip.lower
        return ConflictPart(name, mip.column_name(j), float(limits[j]))
