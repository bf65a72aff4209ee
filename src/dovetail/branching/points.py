"""Points on the way: the LP's point of a low box, as it is, and where a descent from it ends."""

from __future__ import annotations

import numpy as np
import torch

from dovetail.core.arrays import FloatArray
from dovetail.linearised.descent import DescentOptions
from dovetail.linearised.mixed_integer_descent import MixedIntegerDescent
from dovetail.linearised.scaled_problem import scaled_problem
from dovetail.run.context import SolveContext

RADIUS = 0.1
"""Of the first trust region: half that of a random start, since the box is a good one."""
RARER = 4
"""After a descent that brings nothing, the tree has so many times as many boxes before the next."""
SOURCE = "branching"


class Points:
    """Offers the points of one tree's boxes to the incumbent."""

    def __init__(self) -> None:
        self._descent: MixedIntegerDescent | None = None
        self._due = 1

    def offer(self, context: SolveContext, point: FloatArray, boxes: int) -> None:
        """A point over the problem's columns, when so many boxes were seen."""
        before = context.incumbent.x
        context.incumbent.offer(point.copy(), SOURCE)
        if context.incumbent.x is before and boxes >= self._due:
            self.descend(context, point)
            self._due = RARER * boxes

    def descend(self, context: SolveContext, point: FloatArray) -> None:
        """With integers held; where no point is known, with all that a descent can do."""
        with torch.enable_grad():  # boxes are bounded without
            scaled = context.once(scaled_problem)
            if self._descent is None:
                self._descent = MixedIntegerDescent(context, scaled, DescentOptions())
            z = np.clip(point, scaled.host.lower, scaled.host.upper)
            self._descent.hold(z, RADIUS, context.budget, SOURCE)
            if context.incumbent.x is None:
                z = self._descent.relax(z, RADIUS, context.budget, SOURCE)
                self._descent.descend(z, RADIUS, context.budget, SOURCE)
