"""The incumbent: the best verified point and the best bound. Every candidate of every method passes here.

A candidate is completed (`completion.py`) and checked, or it does not count. A bound that a verified point
contradicts is a fault of the part that proved it: it is dropped, and strict mode raises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

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
"""Samples with classes in less than float64 are evaluated one by one for each better point: so many, while
that takes no more than a part of the time and a little."""


UNMOVED = 1e-5
"""Of the objective: the loss that a point without moved outputs is worth."""
CUTOFF_ROOM = 5e-7
"""Of the objective: an engine that meets rows within its tolerances must still find the point it is given."""
ROUNDING = 1e-13
"""Of the sizes that an objective adds up: what sums of some thousand products round."""
MOST_ROUNDING = 1e-3
"""Of the objective: float32 networks of up to six layers left gaps of 5e-6 to 2e-4 open. A float16 network
may leave more, and then a gap is a gap."""


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
        self.moved = False
        """Whether outputs of the best point were moved within their predictors' rounding."""
        self.proof = NO_BOUND
        """The best bound that any part proved."""
        self.estimate: Estimate | None = None
        """Of the best bound, by a sample; it counts where nothing is proved."""
        self.gained_by_missing: Callable[[FloatArray], float | None] = lambda x: None
        """What a point gains by missing constraints, or None (`linearised/sensitivity.py`)."""
        self.worth_of_rounding: Callable[[FloatArray], float | None] = lambda x: None
        """What the predictors' rounding may do to the objective at a point, or None."""
        self._known: dict[str, tuple[FloatArray, float | None]] = {}
        """By question, the point that was last asked about, and the answer."""
        self._explained: tuple[FloatArray | None, Bound] = None, NO_BOUND
        """The point and the bound whose gap rounding explains."""
        self.gap, self._target = gap, target
        self.nearest: Violation | None = None
        """Of the refused candidates, the violation of the one that came nearest."""
        self.nearest_x: FloatArray | None = None
        """That candidate, completed."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when the best point or the bound is another."""
        self._problem, self._program = problem, problem.stated
        self._checker = Checker(problem)
        self.completion = Completion(
            problem, self._checker, engine, budget, seed=seed, threads=threads, steady=steady
        )  # fmt: skip
        self._budget, self._stopwatch = budget, stopwatch
        self._alone_seconds = 0.0
        self._steady = steady
        """Whether only points count that hold however the predictors round."""

    @property
    def as_given(self) -> FloatArray | None:
        """The best verified point over the columns of the problem as it was given."""
        return self.x

    @property
    def bound(self) -> float:
        """What no point can be below, in minimisation form; minus infinity while nothing is proved."""
        return self.proof.value

    @property
    def proved(self) -> bool:
        """The best point is as near to the bound as the caller asked for."""
        bound = self._program.sign * self.bound
        return self.x is not None and (self.gap.met(self.objective, bound) or self.within_rounding)

    @property
    def cutoff(self) -> float:
        """What the best point costs, in minimisation form, and a hair more; infinity while there is none."""
        if self.x is None:
            return np.inf
        return float(self._program.sign * self.objective + CUTOFF_ROOM * abs(self.objective) + HAIR)

    @property
    def allowed_gap(self) -> float:
        """How far from the best objective the bound may be."""
        return self.gap.allowed(self.objective)

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
        return bool(self._problem.blocks) and self.proof.source in ROWS_ONLY and not self.proved

    @property
    def proven_bound(self) -> float | None:
        """The bound in the user's sense; None while nothing is proved."""
        return float(self._program.sign * self.bound) if np.isfinite(self.bound) else None

    def raise_bound(self, bound: Bound) -> None:
        """Take a bound that is better than the one so far."""
        if bound.better_than(self.proof):
            self.proof = bound
            self._reconcile()
            if self.proven_bound is not None:
                add_gain(self.bounds, Gain(self._budget.seconds, self.proven_bound, bound.source))
            self.on_change()

    def estimate_bound(self, estimate: Estimate) -> None:
        """Take an estimate in the place of the one before."""
        self.estimate = estimate

    def _reconcile(self) -> None:
        """Bring bound and best point into agreement; a bound that the point contradicts is dropped."""
        if self.x is None:
            return
        x, value = self.x, self._program.sign * self.objective
        if self.bound <= value:
            return
        # "nothing is below the cutoff" is said of all that is better than the point by more than a hair
        noise = self.cutoff - value + HAIR * abs(value) + ROUNDING * self._program.objective_size(x)
        bound, self.proof = self.proof, NO_BOUND
        with expendable(f"bound of {bound.source}"):
            self.proof = reconciled(bound, value, noise, self._gained_here)

    def _gained_here(self) -> float | None:
        """What the best point gains by missing constraints."""
        return self._known_here("gained", self.gained_by_missing)

    def _known_here(self, name: str, ask: Callable[[FloatArray], float | None]) -> float | None:
        """What was asked of the best point, once."""
        assert self.x is not None
        x, answer = self._known.get(name, (None, None))
        if x is not self.x:
            answer = ask(self.x)
            self._known[name] = self.x, answer
        return answer

    def settle(self) -> None:
        """A proof has come to its end: find out whether it is the predictors' rounding that it left open.

        A bound holds however a float32 network rounds, so that what rounding is worth has been taken off it.
        A bound that would meet the best point without that is as good as any that can be proved. What
        rounding is worth is known near the best point only, so that a large gap is never put down to it.
        """
        bound = self.proof
        if self.x is None or self.proved or not np.isfinite(bound.value):
            return
        if not self.completion.has_time_for_an_lp:
            return
        worth = self._known_here("rounding", self.worth_of_rounding)
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
            x, violation, moved = self.completion.complete(candidate, self._may_be_best, own=own)
            if not (violation.steady() if self._steady else violation.within()):
                self._refuse(x, violation)
                return None
            objective = self._program.objective(x)
            better = self._improves(objective, moved)
            turns = better and not self._steady and self._classes_may_turn  # steady: asked alone already
            alone = self._alone(x) if turns else violation
            if not alone.within():
                self._refuse(x, alone)
                return None
            if better:
                self.x, self.objective, self.source, self.violation = x, objective, source, violation
                self.moved = moved
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
        if self.proved and not self.gap.met(objective, bound):
            return False
        self.x, self.objective, self.violation = x, objective, violation
        self.on_change()
        return True

    def _improves(self, objective: float, moved: bool = False) -> bool:
        """Whether a point is better; one whose outputs were not moved is worth a small loss."""
        sign = self._program.sign
        need = 1e-9 + UNMOVED * (float(moved) - float(self.moved))
        return self.x is None or sign * objective < sign * self.objective - need * abs(
            objective - self._program.offset
        )

    def _may_be_best(self, x: FloatArray) -> bool:
        """Only such points are asked in float64 and a hair away: of others rows and bounds will do."""
        return self._improves(self._program.objective(x))


Change = Callable[[FloatArray], FloatArray]


def _of_original(name: str) -> Any:
    """What the original has under this name, whatever the columns: see `Incumbent`."""
    return property(lambda lifted: getattr(lifted._original, name))


class LiftedIncumbent:
    """The incumbent of the original, over the columns of a reformulated problem."""

    def __init__(self, original: AnyIncumbent, lift: Change, restrict: Change, carried: Change) -> None:
        """`lift` and `restrict` take points there and back; `carried` takes there what each column has."""
        self._original, self._lift, self._restrict, self._carried = original, lift, restrict, carried
        self._lifted: tuple[FloatArray, FloatArray] | None = None
        """The original's point that was lifted last, and what it became."""

    @property
    def x(self) -> FloatArray | None:
        """The best verified point so far, lifted once."""
        x = self._original.x
        if x is None:
            return None
        if self._lifted is None or self._lifted[0] is not x:
            self._lifted = x, self._lift(x)
        return self._lifted[1]

    @property
    def nearest_x(self) -> FloatArray | None:
        """The refused candidate that came nearest, lifted."""
        x = self._original.nearest_x
        return None if x is None else self._lift(x)

    as_given: FloatArray | None = _of_original("as_given")
    objective: float = _of_original("objective")
    source: str = _of_original("source")
    violation: Violation | None = _of_original("violation")
    nearest: Violation | None = _of_original("nearest")
    bound: float = _of_original("bound")
    proved: bool = _of_original("proved")
    moved: bool = _of_original("moved")
    cutoff: float = _of_original("cutoff")
    gap: GapLimit = _of_original("gap")
    allowed_gap: float = _of_original("allowed_gap")
    on_target: bool = _of_original("on_target")
    proof: Bound = _of_original("proof")
    estimate: Estimate | None = _of_original("estimate")

    def settle(self) -> None:
        """A proof has come to its end: find out whether it is the predictors' rounding that it left open."""
        self._original.settle()

    def raise_bound(self, bound: Bound) -> None:
        """A bound of the reformulated problem is one of the original; its rows may be others, and so may be
        what missing them by a tolerance is worth."""
        self._original.raise_bound(replace(bound, scope=Scope.WRITTEN, prices=None))

    def estimate_bound(self, estimate: Estimate) -> None:
        """One of the reformulated problem is one of the original."""
        self._original.estimate_bound(estimate)

    def offer(self, candidate: FloatArray, source: str, *, own: bool = False) -> float:
        """The candidate's objective, or NaN if it was refused."""
        return self._original.offer(self._restrict(candidate), source)

    def admit(self, candidate: FloatArray, source: str) -> FloatArray | None:
        """Complete and check a candidate as the original does."""
        x = self._original.admit(self._restrict(candidate), source)
        return None if x is None else self._lift(x)

    def rounding(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Of the original's columns; those that were appended are exact."""
        change, lead = self._original.rounding(self._restrict(x))
        return self._carried(change), self._carried(lead)


AnyIncumbent = Incumbent | LiftedIncumbent
"""What methods see of the incumbent, over the columns of the problem that they were given."""


def over(incumbent: AnyIncumbent, budget: Budget) -> StopReason | None:
    """Why nothing more is to be done, by any method; None while there is."""
    if incumbent.proved:
        return StopReason.PROVED
    return StopReason.TARGET if incumbent.on_target else budget.over
