"""Descents from the points of boxes: where planes are far apart yet, slopes lead to a point of the problem.

The lowest box is where the optimum may be, and its LP has a point there long before planes are close enough
for that to pass the check.
"""

from __future__ import annotations

import time

import torch

from dovetail.core.arrays import FloatArray
from dovetail.linearised.descent import DescentOptions
from dovetail.linearised.mixed_integer_descent import MixedIntegerDescent
from dovetail.linearised.scaled_problem import scaled_problem
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext

SHARE, FIRST_SHARE = 0.05, 0.25
"""Part of the time that descents may take; the latter while no point is known, as nothing is closed then.
Where a leaf's point would be lost, the first needs no share, nor do others while no point is known."""
LEAST = 0.05
"""Seconds that a descent takes, before one has shown it: problems that close in a second need none."""


class Polishing:
    """Descends from the points of a solve's boxes, now and then."""

    def __init__(self, context: SolveContext) -> None:
        self._context = context
        self._began, self._spent, self._last = time.perf_counter(), 0.0, LEAST
        self._descent: MixedIntegerDescent | None = None
        self._saved = False
        """Whether there was a descent from a leaf whose point was refused."""

    def due(self, *, lost: bool = False) -> bool:
        """Whether another descent keeps to its share of the time; `lost`: else a leaf has no point."""
        if lost and (not self._saved or self._context.incumbent.x is None):
            return True
        share = FIRST_SHARE if self._context.incumbent.x is None else SHARE
        return self._spent + self._last <= share * (time.perf_counter() - self._began)

    def run(self, point: FloatArray, budget: Budget, *, lost: bool = False) -> None:
        """From a point over the problem's columns, that of a box's LP."""
        begun = time.perf_counter()
        self._saved |= lost
        with torch.enable_grad():  # boxes are bounded without
            self._descend(point, budget)
        self._last = time.perf_counter() - begun
        self._spent += self._last

    def _descend(self, point: FloatArray, budget: Budget) -> None:
        scaled = self._context.once(scaled_problem)
        if self._descent is None:
            self._descent = MixedIntegerDescent(self._context, scaled, DescentOptions())
        self._descent.from_box(point, budget, "boxes", thorough=True)
