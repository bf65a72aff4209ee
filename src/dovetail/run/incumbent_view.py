"""What methods see of the incumbent; the incumbent itself is the engine's (`run/incumbent.py`)."""

from __future__ import annotations

from typing import Protocol

from dovetail.core.arrays import FloatArray
from dovetail.core.check import Violation
from dovetail.run.bound import Bound
from dovetail.run.gap import GapLimit


class IncumbentView(Protocol):
    """What methods see of the incumbent, over the columns of the problem that they were given."""

    @property
    def x(self) -> FloatArray | None:
        """The best verified point so far."""
        ...

    @property
    def objective(self) -> float:
        """Its objective in the user's sense; NaN while there is none."""
        ...

    @property
    def source(self) -> str:
        """Who found it."""
        ...

    @property
    def violation(self) -> Violation | None:
        """Of the best point, as it was checked."""
        ...

    @property
    def nearest(self) -> Violation | None:
        """Of the refused candidates, the violation of the one that came nearest."""
        ...

    @property
    def nearest_x(self) -> FloatArray | None:
        """That candidate, completed."""
        ...

    @property
    def bound(self) -> float:
        """What no point can be below, in minimisation form, if anybody proved it."""
        ...

    @property
    def proof(self) -> Bound:
        """The same with what stands behind it."""
        ...

    @property
    def proved(self) -> bool:
        """The best point is as near to the bound as the caller asked for."""
        ...

    @property
    def on_target(self) -> bool:
        """The best point is as good as the caller asked for."""
        ...

    @property
    def moved(self) -> bool:
        """Whether outputs of the best point were moved within their predictors' rounding."""
        ...

    @property
    def cutoff(self) -> float:
        """What the best point costs, in minimisation form, and a hair more, so that a search for points up to
        here does not cut it off; infinity while there is none."""
        ...

    @property
    def gap(self) -> GapLimit:
        """How near to the bound the caller wants the best point."""
        ...

    @property
    def allowed_gap(self) -> float:
        """How far from the best objective the bound may be."""
        ...

    def raise_bound(self, bound: Bound) -> None:
        """Take a bound that is better than the one so far."""
        ...

    def settle(self) -> None:
        """A proof has come to its end: find out whether it is the predictors' rounding that it left open."""
        ...

    def offer(self, candidate: FloatArray, source: str, *, own: bool = False) -> float:
        """Complete and check a candidate, keep it if it is the best; its objective, or NaN if refused. `own`:
        nobody else has it, and it may change."""
        ...

    def admit(self, candidate: FloatArray, source: str) -> FloatArray | None:
        """The same, returning the completed point, or None if it was refused."""
        ...

    def rounding(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(columns,) what each output may change by elsewhere, and the lead that its class needs."""
        ...
