"""Completing a candidate: from the columns that a method chose to a whole point that may pass the check.

1. Round the integers, set each output to the answer of its predictor, and check the point. A point that
   cannot become the best one is not evaluated in float64. If an equation is violated by less than the
   predictor's rounding, the output is set to the value that the equation requires, within that rounding.
2. If a row fails (or columns outside the blocks carry cost): keep inputs, outputs and
   integers, and choose the remaining columns anew by an LP; check again.
3. If that fails and few integers lie outside the blocks: keep inputs and outputs, choose those integers again
   by a short MIP, and check again.

The order of these steps matters. Fixing inputs and outputs but not the integers at once would ask the MIP for
"binaries with exactly this sum", which may take very long.

Tests whether the open columns can satisfy the rows while all others are fixed, before an LP is solved.

Bounds are propagated once through the rows; if a row cannot be satisfied within these bounds, no LP finds a
point. The test takes a tenth of the time of an infeasible LP, and most candidates of a loop are infeasible.

An output of a float32 predictor is known only up to its rounding. If an equation requires a value between two
float32 numbers, no answer satisfies it, but a value within the rounding does. An inequality is different:
answers on one side of its limit satisfy it, and searches can find them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, all_finite
from dovetail.core.check import Checker, Violation
from dovetail.core.errors import OptionError
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.problem import Problem
from dovetail.core.sparse import sums_of_others
from dovetail.run import work
from dovetail.run.budget import Budget
from dovetail.run.engine import MipEngine, MipSession, Quadratic, least_seconds
from dovetail.run.failures import expendable

CHECK_EFFORT = 5e-4
"""Seconds of completing and checking a candidate without its LP, and again for each predictor. On seven
problems a candidate took 0.8 to 4 ms, of which 0.1 to 1.4 were counted."""
FAR = 2.0**-14
"""Relative: a thousand roundings of float32, more than its networks accumulate."""


def nearly_met(mip: Mip, x: FloatArray) -> bool:
    """Whether violations of rows are negligible relative to the values of their columns."""
    missed = mip.row_violation(x)
    return bool(np.all(missed <= np.maximum(TOLERANCE, FAR * (abs(mip.A) @ np.abs(x)))))


def near_equations(mip: Mip, x: FloatArray, loose: BoolArray, rows: BoolArray) -> bool:
    """Whether all violated `rows` and bounds are equations and fixed columns, violated by a negligible
    amount relative to the values of `loose` columns."""
    sizes = np.where(loose, np.abs(x), 0.0)
    missed, outside = mip.row_violation(x), mip.bound_violation(x)
    faults, beyond = rows & (missed > TOLERANCE), outside > TOLERANCE
    if not (np.any(faults) or np.any(beyond)):
        return False
    near = np.all(missed[faults] <= FAR * (abs(mip.A) @ sizes)[faults])
    only = np.all(_equations(mip)[faults]) and np.all((_fixed(mip) & loose)[beyond])
    return bool(near and only and np.all(outside[beyond] <= FAR * sizes[beyond]))


def onto_rows(mip: Mip, x: FloatArray, room: FloatArray, rows: BoolArray) -> FloatArray | None:
    """`x` with each column moved by at most its `room`, within bounds, so that these rows hold; None if a row
    needs more. Each violated row is corrected separately, and its columns move in proportion to their `room`;
    if a column is in several of these rows, the caller checks whether all of them are satisfied.

    >>> mip = Mip([0.0, 0.0], A=[[1.0, 1.0]], row_lower=2.0, row_upper=2.0)
    >>> onto_rows(mip, np.array([1.5, 0.49]), np.array([0.0, 0.02]), np.array([True])).tolist()
    [1.5, 0.5]
    """
    inside = np.clip(x, mip.lower, mip.upper)
    outside = np.abs(inside - x) > TOLERANCE
    activity = mip.A @ inside
    missing = np.maximum(mip.row_lower - activity, 0.0) - np.maximum(activity - mip.row_upper, 0.0)
    missed = rows & (np.abs(missing) > TOLERANCE)
    reach = abs(mip.A) @ room
    if np.any(np.abs(inside - x)[outside] > room[outside]) or np.any(np.abs(missing)[missed] > reach[missed]):
        return None
    share = np.where(missed, missing / np.where(missed, reach, 1.0), 0.0)
    return np.asarray(inside + room * (mip.A.sign().T @ share))


def _equations(mip: Mip) -> BoolArray:
    return np.asarray(mip.row_upper - mip.row_lower <= TOLERANCE)


def _fixed(mip: Mip) -> BoolArray:
    return np.asarray(mip.upper - mip.lower <= TOLERANCE)


FEW_INTEGERS = 200
LP_SECONDS, MIP_SECONDS = 10.0, 1.0
MIP_SHARE = 0.1
"""Fraction of the time left for one such MIP, and the largest number of seconds."""
IMPROVING_SHARE = 0.02
"""Fraction of the time left: an LP improves a passing point only if it takes no longer."""


LP_VIOLATION = 1e-5
"""Relative: smaller violations are left to an LP, whose tolerance is a tenth of this."""


class Completed(NamedTuple):
    """A completed point."""

    x: FloatArray
    violation: Violation
    moved: bool = False
    """Whether outputs were moved within their predictors' rounding to meet an equation."""


class Completion:
    """Completes and repairs candidates of one problem."""

    def __init__(
        self,
        problem: Problem,
        checker: Checker,
        engine: MipEngine,
        budget: Budget,
        *,
        seed: int,
        threads: int,
        steady: bool,
    ) -> None:
        """With `steady`, only points that pass for every rounding of the predictors are accepted."""
        self._problem, self._program = problem, problem.stated
        self._checker, self._engine, self._budget = checker, engine, budget
        self._seed, self._steady = seed, steady
        self.threads = threads
        """The number of threads of repairs, when the first one is loaded."""
        self._bounds_of_repairs: dict[int, RepairBounds] = {}

    @cached_property
    def _host(self) -> Mip:
        """The program of a repair, written out when the first repair is needed."""
        return self._problem.mip.minimised()

    @cached_property
    def _block_columns(self) -> BoolArray:
        """(columns,) inputs and outputs."""
        tied = np.zeros(self._program.n_columns, dtype=bool)
        tied[self._problem.inputs] = tied[self._problem.outputs] = True
        return tied

    @cached_property
    def _fixed(self) -> BoolArray:
        """(columns,) the columns that the first repair keeps."""
        return self._block_columns | self._program.integer

    def complete(
        self, candidate: FloatArray, may_be_best: Callable[[FloatArray], bool], *, own: bool
    ) -> Completed:
        """The completed candidate and its violation. A completed point that `may_be_best` rules out is not
        evaluated in float64. `own`: the candidate may be changed."""
        columns = self._program.n_columns
        if np.shape(candidate) != (columns,):
            raise OptionError(
                f"a candidate has the shape {np.shape(candidate)}; offer a value for each of the "
                f"{columns} variables."
            )
        work.count(effort=CHECK_EFFORT * (1 + len(self._problem.blocks)))
        if not all_finite(candidate):
            return Completed(candidate, self._violation_of(candidate))
        clipped = self._program.clipped(candidate, own=own)
        worth = None if self._steady else may_be_best
        x, violation = self._checker.completed(clipped, one_by_one=self._steady, worth=worth)
        if violation.within() and not (self._has_free_costs and self.has_time_for_an_lp):
            return Completed(x, violation)
        is_moved = False
        if not self._settled(x):
            moved = self._within_rounding(x)
            if moved is None:
                return Completed(x, violation)
            x, violation, is_moved = moved, self._violation_of(moved), True
            if violation.within():
                return Completed(x, violation, is_moved)
        for number, (session, kept, seconds, share) in enumerate(self._repairs):
            if self._repair_bounds(number).exclude(x):
                continue
            part = self._budget.part(min(seconds, share * self._budget.left))
            repaired = self._resolve(session, kept, part, x)
            if repaired is not None:
                best = self._steady or may_be_best(repaired)
                after = self._violation_of(repaired) if best else self._checker.screened(repaired)
                worse = violation.within() and self._value(repaired) > self._value(x)
                if after.within() and not worse:
                    return Completed(repaired, after, is_moved)
            if violation.within():
                return Completed(x, violation, is_moved)
        return self._resolved_within_rounding(x) or Completed(x, violation, is_moved)

    def _violation_of(self, x: FloatArray) -> Violation:
        return self._checker.violation(x, one_by_one=self._steady)

    @cached_property
    def _loose(self) -> BoolArray:
        """(columns,) outputs that no other block reads, because a change of an input would change that
        block's answer."""
        loose = np.zeros(self._program.n_columns, dtype=bool)
        loose[self._problem.outputs] = True
        loose[self._problem.inputs] = False
        return loose

    def _within_rounding(self, x: FloatArray) -> FloatArray | None:
        """The point with outputs moved so that equations hold that no repair can change, if the violation is
        within the predictors' rounding."""
        if not near_equations(self._host, x, self._loose, self._closed_rows):
            return None
        moved = onto_rows(self._host, x, self._output_room(x), self._closed_rows)
        return moved if moved is not None and self._settled(moved) else None

    def _output_room(self, x: FloatArray) -> FloatArray:
        """(columns,) by how much each output at a point may change: the rounding of its predictor."""
        return np.where(self._loose, self._checker.allowance(x)[0], 0.0)

    def _resolved_within_rounding(self, x: FloatArray) -> Completed | None:
        """The same by an LP, for equations that contain other columns too, as in chained networks in lower
        precision that read, through rows, a rounded output of another network."""
        blocks = self._problem.blocks
        if np.all(self._fixed) or all(block.description.is_float64 for block in blocks):
            return None
        if not nearly_met(self._host, x):
            return None
        session, kept, seconds, _ = self._repairs[0]
        part = self._budget.part(min(seconds, self._budget.left))
        resolved = self._resolve(session, kept, part, x, self._output_room(x))
        if resolved is None:
            return None
        after = self._violation_of(resolved)
        return Completed(resolved, after, moved=True) if after.within() else None

    def _value(self, x: FloatArray) -> float:
        """The objective in minimisation form."""
        return self._host.objective(x)

    @cached_property
    def _has_free_costs(self) -> bool:
        """Whether a column outside the blocks and integers has a cost."""
        for part in self._program.columns:
            open_costs = (part.lower < part.upper) & ~part.integer & (part.cost != 0.0)
            if np.any(open_costs) and np.any(open_costs & ~part.of(self._block_columns)):
                return True
        return False

    @property
    def has_time_for_an_lp(self) -> bool:
        """Whether an LP over all columns takes only a small part of the time left."""
        return least_seconds(self._program) <= IMPROVING_SHARE * self._budget.left

    @cached_property
    def _closed_rows(self) -> BoolArray:
        """Rows over inputs and outputs alone: no repair can change them."""
        return np.asarray((abs(self._host.A) @ (~self._block_columns).astype(float)) == 0.0)

    def _settled(self, x: FloatArray) -> bool:
        """False if the columns that repairs keep already violate a bound or a row."""
        host = self._host
        kept = self._block_columns
        if np.any(host.bound_violation(x)[kept] > TOLERANCE):
            return False
        whole = kept & host.integer
        if np.any(np.abs(x - np.round(x))[whole] > TOLERANCE):
            return False
        closed = self._closed_rows
        return not np.any(host.row_violation(x)[closed] > TOLERANCE)

    @cached_property
    def _repairs(self) -> list[tuple[MipSession, np.ndarray, float, float]]:
        """Sessions with the columns that each keeps fixed, the seconds it took, and its share of the time
        left."""
        nothing = np.empty(0, dtype=np.int64)
        host = self._host
        load = self._engine.load
        repairs = []
        if not np.all(self._fixed):
            session = load(host.relaxed(), nothing, seed=self._seed, threads=self.threads)
            repairs.append((session, self._fixed, LP_SECONDS, 1.0))
        loose_integers = int(np.count_nonzero(host.integer & ~self._block_columns))
        if 0 < loose_integers <= FEW_INTEGERS:
            session = load(host, nothing, seed=self._seed, threads=self.threads)
            repairs.append((session, self._block_columns, MIP_SECONDS, MIP_SHARE))
        return repairs

    def _repair_bounds(self, number: int) -> RepairBounds:
        """Bounds that show that a repair would fail."""
        if number not in self._bounds_of_repairs:
            self._bounds_of_repairs[number] = RepairBounds(self._host, self._repairs[number][1])
        return self._bounds_of_repairs[number]

    def _resolve(
        self,
        session: MipSession,
        kept: np.ndarray,
        budget: Budget,
        x: FloatArray,
        room: FloatArray | float = 0.0,
    ) -> FloatArray | None:
        """Solve for the other columns; those that are kept may change by their `room`."""
        host = self._host
        lower, upper = np.where(kept, x - room, host.lower), np.where(kept, x + room, host.upper)
        objective = Quadratic.linear(host.cost, host.offset)
        found = None
        with expendable("repair of a candidate"):  # an error here affects only this candidate
            found = session.solve(objective, budget=budget, bounds=(lower, upper)).x
        if found is None:
            return None
        repaired = found + 0.0  # never -0
        repaired[kept] = np.clip(repaired, lower, upper)[kept]
        return repaired


class RepairBounds:
    """Bounds for one program with fixed columns."""

    def __init__(self, host: Mip, kept: BoolArray) -> None:
        self._host, self._kept = host, kept
        entries = host.A.tocoo()
        mine = ~kept[entries.col] & (entries.data != 0.0)
        self._row, self._column, self._a = entries.row[mine], entries.col[mine], entries.data[mine]

    def exclude(self, x: FloatArray) -> bool:
        """Whether no values of the open columns fit the values of the fixed columns in `x`."""
        host = self._host
        fixed = host.A @ np.where(self._kept, x, 0.0)
        low, high = host.row_lower - fixed, host.row_upper - fixed
        lower, upper = host.lower.copy(), host.upper.copy()
        least, most = self._terms(lower, upper)
        # a x of an entry is at most the row's limit less the minimum of the row's other entries
        allowed = high[self._row] - sums_of_others(least, self._row, len(low), -np.inf)
        needed = low[self._row] - sums_of_others(most, self._row, len(low))
        rises = self._a > 0.0
        np.maximum.at(lower, self._column, np.where(rises, needed, allowed) / self._a)
        np.minimum.at(upper, self._column, np.where(rises, allowed, needed) / self._a)
        smallest, largest = (np.bincount(self._row, of, len(low)) for of in self._terms(lower, upper))
        room = LP_VIOLATION * (1.0 + np.abs(fixed))
        missed = (smallest - high > room) | (low - largest > room)
        crossed = (lower - upper > LP_VIOLATION * (1.0 + np.abs(lower))) & ~self._kept
        return bool(np.any(missed) or np.any(crossed))

    def _terms(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest value of each term."""
        ends = self._a * lower[self._column], self._a * upper[self._column]
        return np.minimum(*ends), np.maximum(*ends)
