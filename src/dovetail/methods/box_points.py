"""Points of boxes, for the incumbent: that of a box's LP, and where a descent from there ends."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from dovetail.core.arrays import FloatArray
from dovetail.linearised.descent import DescentOptions
from dovetail.linearised.mixed_integer_descent import MixedIntegerDescent
from dovetail.linearised.scaled_problem import scaled_problem
from dovetail.run.context import SolveContext

RARER = 4
"""After a point that brings nothing, the tree has so many times as many boxes before the next: a MIP that
completes its integers may take as long as ten boxes (dispatch: half of the time went to refused points)."""


class BoxPoints:
    """Offers the points of one tree's boxes to the incumbent."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._descent: MixedIntegerDescent | None = None
        self._due, self._kept = 1, True

    def offer(
        self, context: SolveContext, points: Sequence[FloatArray], boxes: int, *, better: bool = False
    ) -> None:
        """The first of some points over the problem's columns, when so many boxes were seen; or when it seems
        to be `better` than all before, and the last such point was."""
        if boxes < self._due and not (better and self._kept):
            return
        before, point = context.incumbent.x, points[0]
        context.incumbent.offer(point.copy(), self.source)
        if context.incumbent.x is before:
            self.descend(context, point)
        self._kept = context.incumbent.x is not before
        if not self._kept:
            self._due = RARER * boxes

    def lost(self, context: SolveContext, point: FloatArray, *, decides: bool) -> None:
        """That of a box which nothing can divide; the bound may hang on it."""
        context.incumbent.offer(point.copy(), self.source)
        if decides:
            self.descend(context, point)

    def descend(self, context: SolveContext, point: FloatArray) -> None:
        """With integers held; where no point is known, with all that a descent can do."""
        with torch.enable_grad():  # boxes are bounded without
            scaled = context.once(scaled_problem)
            if self._descent is None:
                self._descent = MixedIntegerDescent(context, scaled, DescentOptions())
            thorough = context.incumbent.x is None
            self._descent.from_box(point, context.budget, self.source, thorough=thorough)
