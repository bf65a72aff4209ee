"""The incumbent as methods see it that work on a reformulated problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dovetail.core.arrays import FloatArray
from dovetail.core.check import Violation
from dovetail.run.bound import Bound, GapLimit, Scope
from dovetail.run.incumbent import Incumbent

Change = Callable[[FloatArray], FloatArray]


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
    def objective(self) -> float:
        """Its objective in the user's sense; NaN while there is none."""
        return self._original.objective

    @property
    def source(self) -> str:
        """Who found it."""
        return self._original.source

    @property
    def violation(self) -> Violation | None:
        """Of the best point, as it was checked."""
        return self._original.violation

    @property
    def nearest(self) -> Violation | None:
        """Of the refused candidates, the violation of the one that came nearest."""
        return self._original.nearest

    @property
    def nearest_x(self) -> FloatArray | None:
        """That candidate, lifted."""
        x = self._original.nearest_x
        return None if x is None else self._lift(x)

    @property
    def bound(self) -> float:
        """What no point can be below, in minimisation form."""
        return self._original.bound

    @property
    def proved(self) -> bool:
        """The best point is as near to the bound as the caller asked for."""
        return self._original.proved

    @property
    def moved(self) -> bool:
        """Whether outputs of the best point were moved within their predictors' rounding."""
        return self._original.moved

    @property
    def cutoff(self) -> float:
        """What the best point costs, in minimisation form, and a hair more; infinity while there is none."""
        return self._original.cutoff

    @property
    def gap(self) -> GapLimit:
        """How near to the bound the caller wants the best point."""
        return self._original.gap

    @property
    def allowed_gap(self) -> float:
        """How far from the best objective the bound may be."""
        return self._original.allowed_gap

    def settle(self) -> None:
        """A proof has come to its end: find out whether it is the predictors' rounding that it left open."""
        self._original.settle()

    @property
    def on_target(self) -> bool:
        """The best point is as good as the caller asked for."""
        return self._original.on_target

    @property
    def proof(self) -> Bound:
        """The best bound, with what stands behind it."""
        return self._original.proof

    def raise_bound(self, bound: Bound) -> None:
        """A bound of the reformulated problem is one of the original; its rows may be others, and so may be
        what missing them by a tolerance is worth."""
        self._original.raise_bound(replace(bound, scope=Scope.WRITTEN, prices=None))

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
