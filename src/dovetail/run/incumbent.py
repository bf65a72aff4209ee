"""The incumbent: every candidate of every method is completed and checked here, or it does not count.

1. Round the integers, set each output to what its own predictor says, check; what cannot become the best
   point is not checked in float64 besides. Where an equation is missed by less than a predictor rounds, its
   output is put where the equation wants it, within that rounding.
2. If a row fails (or columns outside the blocks carry cost): keep inputs, outputs and
   integers, and choose the remaining columns anew by an LP; check again.
3. If that fails and few integers lie outside the blocks: keep inputs and outputs, and
   choose those integers anew too, by a short MIP; check again.

The order matters. Fixing inputs and outputs but not the integers at once would ask the
MIP for "binaries with exactly this sum", which can take for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from time import perf_counter

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, all_finite
from dovetail.core.check import Checker, Violation
from dovetail.core.errors import OptionError
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.onto_rows import near_equations, nearly_met, onto_rows
from dovetail.core.problem import Problem
from dovetail.report.gains import HAIR, Gain
from dovetail.report.sources import ROWS_ONLY
from dovetail.run.budget import Budget
from dovetail.run.engine import MipEngine, MipSession, Quadratic
from dovetail.run.failures import expendable
from dovetail.run.gap import GapLimit, explained, meets
from dovetail.run.lp_duration import least_seconds
from dovetail.run.repair_bounds import RepairBounds
from dovetail.run.stopwatch import Stopwatch
from dovetail.run.trace import add_gain

FEW_SAMPLES, ALONE_SHARE, ALONE_SECONDS = 64, 0.02, 0.1
"""Samples with classes in less than float64 are evaluated one by one for each better point: so many, while
that takes no more than a part of the time and a little."""
FEW_INTEGERS = 200
LP_SECONDS, MIP_SECONDS = 10.0, 1.0
MIP_SHARE = 0.1
"""Of the time left, and no more than that, for one such MIP."""
IMPROVING_SHARE = 0.02
"""Of the time left: a point that passes is made cheaper by an LP only where that takes no longer."""


class Incumbent:
    """The best verified point so far, and the only way to become it."""

    def __init__(
        self,
        problem: Problem,
        engine: MipEngine,
        budget: Budget,
        stopwatch: Stopwatch,
        *,
        seed: int = 0,
        threads: int = 1,
        steady: bool = False,
        gap: GapLimit = GapLimit(),  # noqa: B008  (frozen)
        target: float | None = None,
    ) -> None:
        self.x: FloatArray | None = None
        self.objective = float("nan")
        self.source = ""
        self.violation: Violation | None = None
        """Of the best point, as it was checked."""
        self.incumbents: list[Gain] = []
        self.bounds: list[Gain] = []
        """When the point and the bound got better, and by whom: the trace has them (`Monitor.follow`)."""
        self.bound = -np.inf
        """What no point can be below, in minimisation form, if anybody proved it."""
        self.bound_source = ""
        """Who proved it; "" while nobody did."""
        self.bound_prices: FloatArray | None = None  # (rows,), where it was proved at prices
        self._gap, self._target = gap, target
        self.nearest: Violation | None = None
        """Of the refused candidates, the violation of the one that came nearest."""
        self.nearest_x: FloatArray | None = None
        """That candidate, completed."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the best point or the bound is another."""
        self._problem, self._program = problem, problem.stated
        self._checker = Checker(problem)
        self._engine, self._seed = engine, seed
        self.threads = threads
        """That repairs are loaded with, when the first one is needed."""
        self._budget, self._stopwatch = budget, stopwatch
        self._alone_seconds = 0.0
        self._bounds_of_repairs: dict[int, RepairBounds] = {}
        self._steady = steady
        """Whether only points count that hold however the predictors round."""

    @cached_property
    def _host(self) -> Mip:
        """What a repair solves, written out: points that pass need none."""
        return self._problem.mip.minimised()

    @cached_property
    def _tied(self) -> BoolArray:
        """(columns,) inputs and outputs."""
        tied = np.zeros(self._program.n_columns, dtype=bool)
        tied[self._problem.inputs] = tied[self._problem.outputs] = True
        return tied

    @cached_property
    def _fixed(self) -> BoolArray:
        """(columns,) what the first repair keeps."""
        return self._tied | self._program.integer

    @property
    def proved(self) -> bool:
        """The best point meets the bound: nothing better exists."""
        bound = self._program.sign * self.bound
        return self.x is not None and meets(self._program, self.objective, bound)

    @property
    def near_enough(self) -> bool:
        """The best point is as near to the bound as the caller asked for."""
        sign = self._program.sign
        return self.x is not None and self._gap.met(self.objective, sign * self.bound)

    @property
    def on_target(self) -> bool:
        """The best point is as good as the caller asked for."""
        if self.x is None or self._target is None:
            return False
        beyond = self._program.sign * (self.objective - self._target)
        return beyond <= HAIR * max(1.0, abs(self._target))

    @property
    def rows_only(self) -> bool:
        """Whether the bound is one of rows, bounds and integers alone, and the networks may change it."""
        return bool(self._problem.blocks) and self.bound_source in ROWS_ONLY and not self.proved

    @property
    def proven_bound(self) -> float | None:
        """The bound in the user's sense; None while nothing is proved."""
        return float(self._program.sign * self.bound) if np.isfinite(self.bound) else None

    def raise_bound(self, bound: float, source: str = "", prices: FloatArray | None = None) -> None:
        """`source` proved that no point is below `bound`, in minimisation form, perhaps at (rows,) prices."""
        if bound > self.bound:
            self.bound, self.bound_source, self.bound_prices = bound, source, prices
            self._reconcile()
            if self.proven_bound is not None:
                add_gain(self.bounds, Gain(self._budget.seconds, self.proven_bound, source))
            self.on_change()

    def _reconcile(self) -> None:
        """A point that misses rows within the tolerance may be beyond a bound of the rows as written: no more
        is proved of accepted points than its own value, then."""
        if self.x is None or self.violation is None:
            return
        value = self._program.sign * self.objective
        if self.bound > value and explained(value, self.bound, self.violation.worst.amount):
            self.bound = value

    def offer(self, candidate: FloatArray, source: str, *, own: bool = False) -> float:
        """Complete and check a candidate, keep it if it is the best; `own`: nobody else has it, and it may
        change.

        Returns its objective in the user's sense, or NaN if it was refused.
        """
        x = self.admit(candidate, source, own=own)
        return float("nan") if x is None else self._program.objective(x)

    def admit(self, candidate: FloatArray, source: str, *, own: bool = False) -> FloatArray | None:
        """The same, returning the completed point, or None if it was refused."""
        begin = perf_counter()
        with self._stopwatch.measure("check"):
            x, violation = self._complete(candidate, own)
            if not (violation.steady() if self._steady else violation.within()):
                self._refuse(x, violation)
                return None
            objective = self._program.objective(x)
            better = self._improves(objective)
            turns = better and not self._steady and self._classes_may_turn  # steady: asked alone already
            alone = self._alone(x) if turns else violation
            if not alone.within():
                self._refuse(x, alone)
                return None
            if better:
                self.x, self.objective, self.source, self.violation = x, objective, source, violation
                add_gain(self.incumbents, Gain(self._budget.seconds, objective, source))
                self._reconcile()
        if better:
            self._budget.reserve(perf_counter() - begin)  # its last check will take as long
            self.on_change()
        return x

    def _refuse(self, x: FloatArray, violation: Violation) -> None:
        """Remember the refused candidate that came nearest."""
        if self.nearest is None or violation.worst.amount < self.nearest.worst.amount:
            self.nearest, self.nearest_x = violation, x

    @property
    def _classes_may_turn(self) -> bool:
        """Whether some class may be another where its sample is evaluated alone, and asking takes no time.

        The last check asks so of every answer: a point that it would refuse must not push out a good one.
        """
        blocks = [b for b in self._problem.blocks if b.classifies and not b.description.is_float64]
        few = 0 < sum(block.samples for block in blocks) <= FEW_SAMPLES
        return few and self._alone_seconds <= ALONE_SHARE * self._budget.seconds + ALONE_SECONDS

    def _alone(self, x: FloatArray) -> Violation:
        """The violation where samples are evaluated one by one as well."""
        begin = perf_counter()
        try:
            return self._checker.violation(x, one_by_one=True)
        finally:
            self._alone_seconds += perf_counter() - begin

    def _violation_of(self, x: FloatArray) -> Violation:
        return self._checker.violation(x, one_by_one=self._steady)

    @property
    def steady(self) -> bool:
        """Whether the best point holds however its predictors round; True while there is none."""
        return self.x is None or self._checker.violation(self.x, one_by_one=True).steady()

    def rounding(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(columns,) what each output may change by elsewhere, and the lead that its class needs."""
        return self._checker.allowance(x)

    def accept_steadier(self, x: FloatArray, loss: float) -> bool:
        """Take a point that holds however its predictors round for one that may not, at so small a loss."""
        objective = self._program.objective(x)
        violation = self._checker.violation(x, one_by_one=True)
        worse = self._program.sign * (objective - self.objective)
        bound = self._program.sign * self.bound
        if not violation.steady() or worse > loss * abs(self.objective - self._program.offset):
            return False
        if self.proved and not meets(self._program, objective, bound):
            return False
        self.x, self.objective, self.violation = x, objective, violation
        self.on_change()
        return True

    def _improves(self, objective: float) -> bool:
        sign = self._program.sign
        slack = 1e-9 * abs(objective - self._program.offset)
        return self.x is None or sign * objective < sign * self.objective - slack

    def _may_be_best(self, x: FloatArray) -> bool:
        """Only such points are asked in float64 and a hair away: of others rows and bounds will do."""
        return self._improves(self._program.objective(x))

    def _complete(self, candidate: FloatArray, own: bool) -> tuple[FloatArray, Violation]:
        columns = self._program.n_columns
        if np.shape(candidate) != (columns,):
            raise OptionError(
                f"a candidate has the shape {np.shape(candidate)}; offer a value for each of the "
                f"{columns} columns."
            )
        if not all_finite(candidate):
            return candidate, self._violation_of(candidate)
        clipped = self._program.clipped(candidate, own=own)
        worth = None if self._steady else self._may_be_best
        x, violation = self._checker.completed(clipped, one_by_one=self._steady, worth=worth)
        if violation.within() and not (self._improvable and self._has_time_to_improve):
            return x, violation
        if not self._settled(x):
            moved = self._within_rounding(x)
            if moved is None:
                return x, violation
            x, violation = moved, self._violation_of(moved)
            if violation.within():
                return x, violation
        for number, (session, kept, seconds, share) in enumerate(self._repairs):
            if self._repair_bounds(number).exclude(x):
                continue
            part = self._budget.part(min(seconds, share * self._budget.left))
            repaired = self._resolve(session, kept, part, x)
            if repaired is not None:
                best = self._steady or self._may_be_best(repaired)
                after = self._violation_of(repaired) if best else self._checker.screened(repaired)
                worse = violation.within() and self._value(repaired) > self._value(x)
                if after.within() and not worse:
                    return repaired, after
            if violation.within():
                return x, violation
        loosened = self._resolved_within_rounding(x)
        return (x, violation) if loosened is None else loosened

    @cached_property
    def _loose(self) -> BoolArray:
        """(columns,) outputs; what another block reads would change its answer, and is none of them."""
        loose = np.zeros(self._program.n_columns, dtype=bool)
        loose[self._problem.outputs] = True
        loose[self._problem.inputs] = False
        return loose

    def _within_rounding(self, x: FloatArray) -> FloatArray | None:
        """The point with outputs moved onto equations that no repair can change and that only the
        predictors' rounding keeps it from: a value within that is the predictor's own."""
        if not near_equations(self._host, x, self._loose, self._closed_rows):
            return None
        moved = onto_rows(self._host, x, self._room(x), self._closed_rows)
        return moved if moved is not None and self._settled(moved) else None

    def _room(self, x: FloatArray) -> FloatArray:
        """(columns,) what the outputs at a point may change by: their predictors' rounding."""
        return np.where(self._loose, self._checker.allowance(x)[0], 0.0)

    def _resolved_within_rounding(self, x: FloatArray) -> tuple[FloatArray, Violation] | None:
        """The same by an LP, for equations that other columns are in as well: chains of networks in less
        than float64, each of which reads, through rows, what another one has rounded."""
        blocks = self._problem.blocks
        if np.all(self._fixed) or all(block.description.is_float64 for block in blocks):
            return None
        if not nearly_met(self._host, x):
            return None
        session, kept, seconds, _ = self._repairs[0]
        part = self._budget.part(min(seconds, self._budget.left))
        resolved = self._resolve(session, kept, part, x, self._room(x))
        after = None if resolved is None else self._violation_of(resolved)
        return (resolved, after) if resolved is not None and after is not None and after.within() else None

    def _value(self, x: FloatArray) -> float:
        """The objective in minimisation form."""
        return self._host.objective(x)

    @cached_property
    def _improvable(self) -> bool:
        """Some column that the blocks and integers leave open carries cost."""
        for part in self._program.columns:
            open_costs = (part.lower < part.upper) & ~part.integer & (part.cost != 0.0)
            if np.any(open_costs) and np.any(open_costs & ~part.of(self._tied)):
                return True
        return False

    @property
    def _has_time_to_improve(self) -> bool:
        return least_seconds(self._program) <= IMPROVING_SHARE * self._budget.left

    @cached_property
    def _closed_rows(self) -> BoolArray:
        """Rows that touch only inputs and outputs: no repair can change them."""
        return np.asarray((abs(self._host.A) @ (~self._tied).astype(float)) == 0.0)

    def _settled(self, x: FloatArray) -> bool:
        """False when what the repairs keep already breaks a bound or a row."""
        host = self._host
        kept = self._tied
        if np.any(host.bound_violation(x)[kept] > TOLERANCE):
            return False
        whole = kept & host.integer
        if np.any(np.abs(x - np.round(x))[whole] > TOLERANCE):
            return False
        closed = self._closed_rows
        return not np.any(host.row_violation(x)[closed] > TOLERANCE)

    @cached_property
    def _repairs(self) -> list[tuple[MipSession, np.ndarray, float, float]]:
        """Sessions, the columns each keeps, its seconds, and the most of the time left that it may use."""
        nothing = np.empty(0, dtype=np.int64)
        host = self._host
        load = self._engine.load
        repairs = []
        if not np.all(self._fixed):
            session = load(host.relaxed(), nothing, seed=self._seed, threads=self.threads)
            repairs.append((session, self._fixed, LP_SECONDS, 1.0))
        loose_integers = int(np.count_nonzero(host.integer & ~self._tied))
        if 0 < loose_integers <= FEW_INTEGERS:
            session = load(host, nothing, seed=self._seed, threads=self.threads)
            repairs.append((session, self._tied, MIP_SECONDS, MIP_SHARE))
        return repairs

    def _repair_bounds(self, number: int) -> RepairBounds:
        """What tells of a repair that it would find nothing."""
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
        """The other columns anew; those that are kept may change by their `room`."""
        host = self._host
        lower, upper = np.where(kept, x - room, host.lower), np.where(kept, x + room, host.upper)
        objective = Quadratic.linear(host.cost, host.offset)
        found = None
        with expendable("repair of a candidate"):  # costs the candidate
            found = session.solve(objective, budget=budget, bounds=(lower, upper)).x
        if found is None:
            return None
        repaired = found + 0.0  # never -0
        repaired[kept] = np.clip(repaired, lower, upper)[kept]
        return repaired
