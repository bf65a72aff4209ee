"""The lowest plane above an output at one point, and the highest below it: cuts for the host's LP.

    min  a'x + c     s.t.  a'v + c >= value(v)  for every vertex v of the cells that are left

This LP finds slopes; the constant is then raised to the largest violation, so that nothing rests on the LP.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.planes.domain import gamma
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import SMALLEST
from dovetail.methods.planes_lp.cells import Cells
from dovetail.methods.planes_lp.plan import WIDE
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import Program
from dovetail.run.budget import Budget

STEEPEST = 100.0
"""In spreads of the values per width of the box: at a point outside the cells a plane may be as steep as it
likes, and engines like no steeper ones."""
MORE = 8
"""Operations beside a sum itself."""


class Envelope:
    """Planes above sign times one output of a sample, over its cells."""

    def __init__(self, cells: Cells, output: int, sign: float) -> None:
        self._cells = cells
        self._values = cells.above[:, output] if sign > 0 else -cells.below[:, output]
        width = cells.upper - cells.lower
        self._width = np.where(width > WIDE, width, 1.0)
        self._moving = width > WIDE
        self._live: LoadedHighs | None = None

    def _loaded(self) -> LoadedHighs:
        if self._live is None:
            count = len(self._values)
            scaled = (self._cells.vertices - self._cells.lower) / self._width
            steep = STEEPEST * max(float(np.ptp(self._values)), SMALLEST)
            steepest = np.append(np.where(self._moving, steep, 0.0), np.inf)
            self._live = LoadedHighs(
                Program(
                    sp.csr_array(np.column_stack([scaled, np.ones(count)])),
                    self._values,
                    np.full(count, np.inf),
                    -steepest,
                    steepest,
                    np.zeros(steepest.size, dtype=bool),
                )
            )
        return self._live

    def plane(self, x: FloatArray, budget: Budget) -> tuple[FloatArray, float]:
        """Slopes and constant of a plane that nothing is above, low at `x`."""
        live = self._loaded()
        live.set_objective(np.append((x - self._cells.lower) / self._width, 1.0), 0.0)
        _, found, _ = live.run(budget, 0.0)
        slopes = np.zeros(x.size) if found is None else found[:-1] / self._width
        slopes = np.where(np.abs(slopes) >= SMALLEST, slopes, 0.0)
        vertices = self._cells.vertices
        noise = gamma(x.size + MORE) * (np.abs(vertices) @ np.abs(slopes) + np.abs(self._values))
        return slopes, float(np.max(self._values - vertices @ slopes + noise))
