"""Consecutive columns of a program as they were stated: a host's, or a family of a template in every block.

A family of a million blocks is a few numbers and the user's own arrays. Whoever looks at columns part by part
needs no vector over all of them, and does not look at limits that are not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.mip import Mip
from dovetail.core.pieces import each_piece, piece_of
from dovetail.core.template import Template


@dataclass(frozen=True, eq=False)
class ColumnPart:
    """`shape` is (blocks, columns per block); the arrays broadcast to it."""

    first: int
    shape: tuple[int, int]
    lower: FloatArray
    upper: FloatArray
    cost: FloatArray
    integer: BoolArray

    def of(self, x: np.ndarray) -> np.ndarray:
        """Their (blocks, columns) values at a point: a view, where the point is one piece."""
        return x[self.first : self.first + self.shape[0] * self.shape[1]].reshape(self.shape)

    @property
    def costs(self) -> bool:
        """Whether any of them does."""
        return bool(np.any(self.cost))

    @property
    def whole(self) -> bool:
        """Whether any of them is an integer."""
        return bool(np.any(self.integer))

    def value(self, x: FloatArray) -> float:
        """What they cost."""
        mine = self.of(x)
        return float(self.cost * mine.sum()) if self.cost.ndim == 0 else float((self.cost * mine).sum())

    def outside(self, x: FloatArray) -> FloatArray:
        """(blocks, columns) how far they are outside their bounds; negative inside."""
        mine = self.of(x)
        return np.asarray(np.maximum(self.lower - mine, mine - self.upper))

    def farthest(self, x: FloatArray) -> tuple[float, int]:
        """The most that a column is outside its bounds, and which it is."""
        found = (-np.inf, self.first)
        for limit, sign in ((self.lower, -1.0), (self.upper, 1.0)):
            if np.all(limit == sign * np.inf):
                continue
            some, most = max(
                each_piece(partial(self._beyond, self.of(x), limit, sign), *self.shape),
                key=lambda one: one[1],
            )
            if most > found[0]:
                beyond = sign * (self.of(x)[some] - piece_of(limit, some))
                found = most, self.first + some.start * self.shape[1] + int(np.argmax(beyond))
        return found

    def _beyond(self, mine: FloatArray, limit: FloatArray, sign: float, some: slice) -> tuple[slice, float]:
        """The most that a column of a piece is beyond one limit."""
        part = mine[some]
        if limit.size == 1:
            return some, sign * (float(part.max() if sign > 0.0 else part.min()) - float(limit.ravel()[0]))
        apart = part - piece_of(limit, some)
        return some, float(apart.max() if sign > 0.0 else -apart.min())

    def fraction(self, x: FloatArray) -> Callable[[slice], FloatArray]:
        """How far integers are from whole numbers, piece by piece."""
        mine = self.of(x)

        def apart(some: slice) -> FloatArray:
            part = mine[some]
            return np.where(piece_of(self.integer, some), np.abs(part - np.round(part)), 0.0)

        return apart

    def clip(self, x: FloatArray) -> None:
        """Within bounds, in place, and integers whole; never -0, which rounding makes and people read."""
        each_piece(partial(self._clip, self.of(x)), *self.shape)

    def _clip(self, mine: FloatArray, some: slice) -> None:
        part = mine[some]
        if np.any(self.lower != -np.inf) or np.any(self.upper != np.inf):
            np.clip(part, piece_of(self.lower, some), piece_of(self.upper, some), out=part)
        if self.whole:
            np.copyto(part, np.round(part), where=piece_of(self.integer, some))
        part += 0.0


def column_parts(host: Mip | None, templates: tuple[Template, ...]) -> Iterator[ColumnPart]:
    """All columns, in their order."""
    if host is not None:
        lower, upper, cost = (array[:, None] for array in (host.lower, host.upper, host.cost))
        yield ColumnPart(0, (host.n_columns, 1), lower, upper, cost, host.integer[:, None])
    for template in templates:
        for family in template.families.values():
            yield ColumnPart(
                template.first_column + family.first,
                (template.count, family.width),
                family.lower,
                family.upper,
                family.cost,
                np.array(family.integer),
            )
