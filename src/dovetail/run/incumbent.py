"""The incumbent: the best verified point and the best bound. All candidates of all methods pass through this
module.

A candidate counts only after it was completed (`completion.py`) and checked. A bound that a verified point
contradicts is a fault of the part that proved it: the bound is dropped, and strict mode raises an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.check import Checker, Violation
from dovetail.core.problem import Problem
from dovetail.report.gains import HAIR, ROWS_ONLY, Gain
from dovetail.run.bound import NO_BOUND, Bound, Estimate, GapLimit, Scope, reconciled
from dovetail.run.budget import Budget, StopReason
from dovetail.run.completion import Completion
from dovetail.run.engine import MipEngine
from dovetail.run.failures import expendable
from dovetail.run.trace import add_gain
from dovetail.run.work import Stopwatch

FEW_SAMPLES, ALONE_SHARE, ALONE_SECONDS = 64, 0.02, 0.1
"""Limits on evaluating samples with classes in lower precision one by one, for each better point: a number of
samples, a share of the time, and a few seconds."""


UNMOVED = 1e-5
"""Relative to the objective: the acceptable loss for a point without moved outputs."""
CUTOFF_ROOM = 5e-7
"""Relative to the objective: an engine that satisfies rows within tolerances must still find the given
point."""
ROUNDING = 1e-13
"""Relative to the sizes that an objective adds up: the rounding of sums of thousands of products."""
MOST_ROUNDING = 1e-3
"""Relative to the objective: float32 networks of up to six layers left gaps of 5e-6 to 2e-4 open. A larger
gap of a float16 network is called a gap."""


class VerifiedPoints(Protocol):
    """A collection of verified points."""

    def add(self, objective: float, x: FloatArray) -> None:
        """Keep a point with its objective, in minimisation form."""
        ...

    def best(self, most: int, columns: int) -> FloatArray | None:
        """The best points over the first columns, at most so many."""
        ...


class Incumbent:
    """The best verified point so far. Every point must pass through this class."""

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
        """The violation of the best point, as it was checked."""
        self.incumbents: list[Gain] = []
        self.bounds: list[Gain] = []
        """Improvements of incumbent and bound with their sources, for the trace (`Monitor.follow`)."""
        self.moved = False
        """Whether outputs of the best point were moved within their predictors' rounding."""
        self.proof = NO_BOUND
        """The best bound that any part proved."""
        self.estimate: Estimate | None = None
        """An estimate of the best bound from a sample, used if no bound is proved."""
        self.gained_by_missing: Callable[[FloatArray], float | None] = lambda x: None
        """The gain of a point from violating constraints, or None (`linearised/sensitivity.py`)."""
        self.worth_of_rounding: Callable[[FloatArray], float | None] = lambda x: None
        """The effect of the predictors' rounding on the objective at a point, or None."""
        self.row_prices: Callable[[], FloatArray | None] = lambda: None
        """(rows,) the last prices of rows that proved a bound, for a minimised objective."""
        self.verified: VerifiedPoints | None = None
        """Takes every verified point, if several solutions are asked for."""
        self._known: dict[str, tuple[FloatArray, float | None]] = {}
        """The last point and answer for each question."""
        self._explained: tuple[FloatArray | None, Bound] = None, NO_BOUND
        """The point and the bound whose gap rounding explains."""
        self.gap, self._target = gap, target
        self.nearest: Violation | None = None
        """The smallest violation of a refused candidate."""
        self.nearest_x: FloatArray | None = None
        """The refused candidate with the smallest violation, after completion."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when incumbent or bound improve."""
        self._problem, self._program = problem, problem.stated
        self._checker = Checker(problem)
        self.completion = Completion(
            problem, self._checker, engine, budget, seed=seed, threads=threads, steady=steady
        )  # fmt: skip
        self._budget, self._stopwatch = budget, stopwatch
        self._alone_seconds = 0.0
        self._steady = steady
        """Whether only points count that pass for every rounding of the predictors."""

    @property
    def as_given(self) -> FloatArray | None:
        """The best verified point over the columns of the original problem."""
        return self.x

    @property
    def bound(self) -> float:
        """The best bound, in minimisation form; minus infinity before anything is proved."""
        return self.proof.value

    @property
    def proved(self) -> bool:
        """Whether the gap is as small as requested."""
        bound = self._program.sign * self.bound
        return self.x is not None and (self.gap.met(self.objective, bound) or self.within_rounding)

    @property
    def cutoff(self) -> float:
        """The best objective, in minimisation form, plus a small margin; infinity without a point."""
        if self.x is None:
            return np.inf
        return float(self._program.sign * self.objective + CUTOFF_ROOM * abs(self.objective) + HAIR)

    @property
    def allowed_gap(self) -> float:
        """The allowed distance of the bound from the best objective."""
        return self.gap.allowed(self.objective)

    @property
    def on_target(self) -> bool:
        """Whether the best point reaches the target."""
        if self.x is None or self._target is None:
            return False
        beyond = self._program.sign * (self.objective - self._target)
        return beyond <= HAIR * max(1.0, abs(self._target))

    @property
    def rows_only(self) -> bool:
        """Whether the bound ignores the predictors."""
        return bool(self._problem.blocks) and self.proof.source in ROWS_ONLY and not self.proved

    @property
    def proven_bound(self) -> float | None:
        """The bound in the user's sense; None before anything is proved."""
        return float(self._program.sign * self.bound) if np.isfinite(self.bound) else None

    def raise_bound(self, bound: Bound) -> None:
        """Keep a bound that is better than the best one."""
        if bound.better_than(self.proof):
            self.proof = bound
            if bound.prices is not None:
                self.keep_prices(lambda: bound.prices)
            self._reconcile()
            if self.proven_bound is not None:
                add_gain(self.bounds, Gain(self._budget.seconds, self.proven_bound, bound.source))
            self.on_change()

    def keep_prices(self, prices: Callable[[], FloatArray | None]) -> None:
        """Keep the prices of rows that proved a bound; they are computed on request."""
        self.row_prices = prices

    def estimate_bound(self, estimate: Estimate) -> None:
        """Replace the estimate."""
        self.estimate = estimate

    def _reconcile(self) -> None:
        """Bring bound and best point into agreement; a bound that the point contradicts is dropped."""
        if self.x is None:
            return
        x, value = self.x, self._program.sign * self.objective
        if self.bound <= value:
            return
        # "nothing is below the cutoff" covers all points that are better than this one by more than rounding
        noise = self.cutoff - value + HAIR * abs(value) + ROUNDING * self._program.objective_size(x)
        bound, self.proof = self.proof, NO_BOUND
        with expendable(f"bound of {bound.source}"):
            self.proof = reconciled(bound, value, noise, self._gained_here)

    def _gained_here(self) -> float | None:
        """The gain of the best point from violating constraints."""
        return self._cached_here("gained", self.gained_by_missing)

    def _cached_here(self, name: str, ask: Callable[[FloatArray], float | None]) -> float | None:
        """A cached answer about the best point."""
        assert self.x is not None
        x, answer = self._known.get(name, (None, None))
        if x is not self.x:
            answer = ask(self.x)
            self._known[name] = self.x, answer
        return answer

    def settle(self) -> None:
        """Called when a proof is complete: find out whether the remaining gap is the predictors' rounding.

        A bound holds for every rounding of a float32 network, so the effect of rounding was subtracted. A
        bound that would meet the best point without this is as good as any provable bound. The effect of
        rounding is known near the best point only, so that it is never used to explain a large gap.
        """
        bound = self.proof
        if self.x is None or self.proved or not np.isfinite(bound.value):
            return
        if not self.completion.has_time_for_an_lp:
            return
        worth = self._cached_here("rounding", self.worth_of_rounding)
        apart = self._program.sign * self.objective - bound.value
        rounding = 0.0 if worth is None else min(worth, MOST_ROUNDING * abs(self.objective))
        if apart - rounding <= self.allowed_gap:
            self._explained = self.x, bound

    @property
    def within_rounding(self) -> bool:
        """Whether `settle` found that rounding explains the gap between the best point and the bound."""
        x, bound = self._explained
        return x is not None and x is self.x and bound is self.proof

    def offer(self, candidate: FloatArray, source: str, *, own: bool = False) -> float:
        """Complete and check a candidate and keep it if it is the best; `own`: the candidate may be changed.
        Returns its objective in the user's sense, or NaN if it was refused."""
        x = self.admit(candidate, source, own=own)
        return float("nan") if x is None else self._program.objective(x)

    def admit(self, candidate: FloatArray, source: str, *, own: bool = False) -> FloatArray | None:
        """The same, but returns the completed point, or None if it was refused."""
        begin = perf_counter()
        with self._stopwatch.measure("check"):
            x, violation, moved = self.completion.complete(candidate, self._may_be_best, own=own)
            if not (violation.steady() if self._steady else violation.within()):
                if self._is_nearer(violation):  # the message reports the effect of rounding
                    self.nearest, self.nearest_x = self._checker.violation(x, one_by_one=self._steady), x
                return None
            objective = self._program.objective(x)
            better = self._improves(objective, moved)
            turns = better and not self._steady and self._classes_may_turn  # steady: asked alone already
            alone = self._violation_one_by_one(x) if turns else violation
            if not alone.within():
                if self._is_nearer(alone):
                    self.nearest, self.nearest_x = alone, x
                return None
            if self.verified is not None:
                self.verified.add(self._program.sign * objective, x)
            if better:
                self.x, self.objective, self.source, self.violation = x, objective, source, violation
                self.moved = moved
                add_gain(self.incumbents, Gain(self._budget.seconds, objective, source))
                self._reconcile()
        if better:
            self._budget.reserve(perf_counter() - begin)  # the last check will take equally long
            self.on_change()
        return x

    def _is_nearer(self, violation: Violation) -> bool:
        """Whether a refused candidate has the smallest violation so far."""
        return self.nearest is None or violation.worst.amount < self.nearest.worst.amount

    @property
    def _classes_may_turn(self) -> bool:
        """Whether a class may change if its sample is evaluated alone, if this is quick to find out. The
        last check of a solve tests all samples one by one, so a point that would fail there must not
        replace a good point."""
        blocks = [b for b in self._problem.blocks if b.classifies and not b.description.is_float64]
        few = 0 < sum(block.samples for block in blocks) <= FEW_SAMPLES
        return few and self._alone_seconds <= ALONE_SHARE * self._budget.seconds + ALONE_SECONDS

    def _violation_one_by_one(self, x: FloatArray) -> Violation:
        """The violation with samples evaluated one by one too."""
        begin = perf_counter()
        try:
            return self._checker.violation(x, one_by_one=True)
        finally:
            self._alone_seconds += perf_counter() - begin

    @property
    def steady(self) -> bool:
        """Whether the best point passes for every rounding of its predictors; True without a point."""
        return self.x is None or self._checker.violation(self.x, one_by_one=True).steady()

    def rounding(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(columns,) the possible change of each output on another machine, and the margin that its class
        needs."""
        return self._checker.allowance(x)

    def accept_steadier(self, x: FloatArray, loss: float) -> bool:
        """Replace the best point by one that passes for every rounding, if the loss is small."""
        objective = self._program.objective(x)
        violation = self._checker.violation(x, one_by_one=True)
        worse = self._program.sign * (objective - self.objective)
        bound = self._program.sign * self.bound
        if not violation.steady() or worse > loss * abs(self.objective - self._program.offset):
            return False
        if self.proved and not self.gap.met(objective, bound):
            return False
        self.x, self.objective, self.violation = x, objective, violation
        self.on_change()
        return True

    def _improves(self, objective: float, moved: bool = False) -> bool:
        """Whether a point is better; a point without moved outputs may be slightly worse."""
        sign = self._program.sign
        need = 1e-9 + UNMOVED * (float(moved) - float(self.moved))
        return self.x is None or sign * objective < sign * self.objective - need * abs(
            objective - self._program.offset
        )

    def _may_be_best(self, x: FloatArray) -> bool:
        """Whether a point may become the best. Only such points are evaluated in float64 and at rows
        nearby."""
        return self._improves(self._program.objective(x))


Change = Callable[[FloatArray], FloatArray]


def _original_attribute(name: str) -> Any:
    """An attribute of the original incumbent that does not depend on columns."""
    return property(lambda lifted: getattr(lifted._original, name))


class LiftedIncumbent:
    """The incumbent of the original, over the columns of a reformulated problem."""

    def __init__(
        self,
        original: AnyIncumbent,
        lift: Change,
        restrict: Change,
        carried: Change,
        original_prices: Change | None = None,
    ) -> None:
        """`lift` and `restrict` map points to the original and back; `carried` maps values of columns."""
        self._original, self._lift, self._restrict, self._carried = original, lift, restrict, carried
        self._original_prices = original_prices
        self._lifted: tuple[FloatArray, FloatArray] | None = None
        """The last lifted point of the original, and the result."""

    @property
    def x(self) -> FloatArray | None:
        """The best verified point, lifted once."""
        x = self._original.x
        if x is None:
            return None
        if self._lifted is None or self._lifted[0] is not x:
            self._lifted = x, self._lift(x)
        return self._lifted[1]

    @property
    def nearest_x(self) -> FloatArray | None:
        """The refused candidate with the smallest violation, lifted."""
        x = self._original.nearest_x
        return None if x is None else self._lift(x)

    as_given: FloatArray | None = _original_attribute("as_given")
    objective: float = _original_attribute("objective")
    source: str = _original_attribute("source")
    violation: Violation | None = _original_attribute("violation")
    nearest: Violation | None = _original_attribute("nearest")
    bound: float = _original_attribute("bound")
    proved: bool = _original_attribute("proved")
    moved: bool = _original_attribute("moved")
    cutoff: float = _original_attribute("cutoff")
    gap: GapLimit = _original_attribute("gap")
    allowed_gap: float = _original_attribute("allowed_gap")
    on_target: bool = _original_attribute("on_target")
    proof: Bound = _original_attribute("proof")
    estimate: Estimate | None = _original_attribute("estimate")

    def settle(self) -> None:
        """Called when a proof is complete: find out whether the remaining gap is the predictors' rounding."""
        self._original.settle()

    def raise_bound(self, bound: Bound) -> None:
        """A bound of the reformulated problem is a bound of the original. The reformulated problem may have
        other rows, and another gain from violating them within tolerances."""
        if bound.prices is not None and bound.better_than(self._original.proof):
            self.keep_prices(lambda: bound.prices)
        self._original.raise_bound(replace(bound, scope=Scope.WRITTEN, prices=None))

    def keep_prices(self, prices: Callable[[], FloatArray | None]) -> None:
        """Pass on prices of rows, as far as the original has the same rows."""
        carried = self._original_prices
        if carried is not None:
            self._original.keep_prices(lambda: None if (own := prices()) is None else carried(own))

    def estimate_bound(self, estimate: Estimate) -> None:
        """An estimate for the reformulated problem is one for the original."""
        self._original.estimate_bound(estimate)

    def offer(self, candidate: FloatArray, source: str, *, own: bool = False) -> float:
        """The candidate's objective, or NaN if it was refused."""
        return self._original.offer(self._restrict(candidate), source)

    def admit(self, candidate: FloatArray, source: str) -> FloatArray | None:
        """Complete and check a candidate like the original."""
        x = self._original.admit(self._restrict(candidate), source)
        return None if x is None else self._lift(x)

    def rounding(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rounding of the original's columns; appended columns are exact."""
        change, lead = self._original.rounding(self._restrict(x))
        return self._carried(change), self._carried(lead)


AnyIncumbent = Incumbent | LiftedIncumbent
"""The incumbent as methods see it, over the columns of their problem."""


def over(incumbent: AnyIncumbent, budget: Budget) -> StopReason | None:
    """Why the solve is over for all methods; None while it continues."""
    if incumbent.proved:
        return StopReason.PROVED
    return StopReason.TARGET if incumbent.on_target else budget.over
