"""What methods see of the incumbent; the incumbent itself is the engine's (`run/incumbent.py`)."""

from __future__ import annotations

from typing import Protocol

from dovetail.core.arrays import FloatArray
from dovetail.core.check import Violation


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
    def bound_source(self) -> str:
        """Who proved it."""
        ...

    @property
    def proved(self) -> bool:
        """The best point meets the bound: nothing better exists."""
        ...

    @property
    def near_enough(self) -> bool:
        """The best point is as near to the bound as the caller asked for."""
        ...

    @property
    def on_target(self) -> bool:
        """The best point is as good as the caller asked for."""
        ...

    @property
    def bound_prices(self) -> FloatArray | None:
        """(rows,) multipliers of the problem's rows that it was proved at, where it was proved at any."""
        ...

    def raise_bound(self, bound: float, source: str = "", prices: FloatArray | None = None) -> None:
        """`source` proved that no point is below `bound`, in minimisation form, perhaps at (rows,) prices."""
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
