"""The incumbent as methods see it that work on a reformulated problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dovetail.core.arrays import FloatArray
from dovetail.core.check import Violation
from dovetail.run.bound import Bound, Estimate, GapLimit, Scope
from dovetail.run.incumbent import Incumbent

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
