"""What multipliers of LPs that were solved before say of boxes that have shrunk since: no LP is solved again.

    x_j >= y'row sides + sum_k min over the box of (e_j - A'y)_k x_k          for any multipliers y

The right-hand side grows when boxes shrink, and when the cutoff, one of the rows, is lowered. So one LP for
an input goes on paying: every box that shrinks later shrinks this one too, at the price of a product with the
matrix. (SCIP calls such a row a Lagrangian variable bound.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dovetail.bounds.dual_value import dual_value
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import Mip


@dataclass(frozen=True, eq=False)
class Implied:
    """A linear function of the columns that multipliers bound from below."""

    cost: FloatArray
    offset: float
    program: Mip
    """Whose rows the multipliers belong to."""
    multipliers: FloatArray


class ImpliedBounds:
    """The last multipliers of each question; rows they were found with hold for all that follows."""

    def __init__(self, cutoff_row: int) -> None:
        self._cutoff_row = cutoff_row
        self._known: dict[tuple[int, float], Implied] = {}
        self._lowered: dict[int, tuple[Mip, Mip]] = {}  # the first is held so that its id is its own
        self._limit = np.inf

    def copy(self) -> ImpliedBounds:
        """The same, to be added to without changing this one."""
        other = ImpliedBounds(self._cutoff_row)
        other._known = dict(self._known)
        return other

    def keep(self, column: int, sign: float, implied: Implied) -> None:
        """Multipliers for sign times a column (any number for what is no column)."""
        self._known[column, sign] = implied

    def lower_cutoff(self, limit: float) -> None:
        """The side of the cutoff row, from now on."""
        if limit != self._limit:
            self._limit, self._lowered = limit, {}

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return iter(tuple(self._known))

    def value(self, column: int, sign: float, lower: FloatArray, upper: FloatArray) -> float:
        """What is proved of one of them within these boxes and the cutoff; minus infinity: nothing."""
        one = self._known[column, sign]
        program = self._program(one.program)
        return dual_value(program, one.cost, one.offset, one.multipliers, lower, upper)

    def _program(self, program: Mip) -> Mip:
        """With the cutoff that holds now."""
        if id(program) not in self._lowered:
            sides = program.row_upper.copy()
            sides[self._cutoff_row] = min(sides[self._cutoff_row], self._limit)
            self._lowered[id(program)] = program, replace(program, row_upper=sides)
        return self._lowered[id(program)][1]
