"""Constraints of modelling tools other than linear ones, written with auxiliary columns, rows and
indicators.

Maxima, absolute values, logic, special ordered sets and piecewise-linear functions of all tools are converted
to the same rows. A row that a binary switches on is an `Indicator`: its big M is computed when all rows are
known, and a row without a finite M becomes a block (`reformulations/indicators.py`). Auxiliary columns come
after the model's own, and no tool sees them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import ModelError, UnsupportedError
from dovetail.core.mip import Mip

Columns = Sequence[int]
_Place = TypeVar("_Place")
"""An entry of a row: a column, or still a variable of the tool."""


@dataclass(eq=False)
class SpecialConstraints:
    """Special constraints, collected one after the other, over the columns of `mip`."""

    mip: Mip
    indicators: list[Indicator] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)
    _integer: list[bool] = field(default_factory=list)
    _lower: list[float] = field(default_factory=list)
    _upper: list[float] = field(default_factory=list)
    _cost: list[float] = field(default_factory=list)
    _rows: list[tuple[Columns, Sequence[float], float, float, str]] = field(default_factory=list)

    def maximum(self, name: str, result: int, columns: Columns, constant: float, sign: float = 1.0) -> None:
        """result = max(columns, constant), or their minimum for a sign of -1. An infinite constant is left
        out."""
        chosen = []
        for column in columns:
            self._row(name, [result, column], [sign, -sign], 0.0, np.inf)
            chosen.append(self._binary(name))
            self._add_indicator(name, chosen[-1], 1, [result, column], [sign, -sign], 0.0)
        if np.isfinite(constant):
            self._row(name, [result], [sign], sign * constant, np.inf)
            chosen.append(self._binary(name))
            self._add_indicator(name, chosen[-1], 1, [result], [sign], sign * constant)
        self._row(name, chosen, np.ones(len(chosen)).tolist(), 1.0, 1.0)
        most = max(self._largest_value(column, sign) for column in columns) if columns else -np.inf
        self._limit(name, result, sign, max(most, sign * constant if np.isfinite(constant) else -np.inf))

    def absolute(self, name: str, result: int, column: int) -> None:
        """result = |column|."""
        positive = self._binary(name)
        for active, sign in ((1, 1.0), (0, -1.0)):
            self._row(name, [result, column], [1.0, -sign], 0.0, np.inf)
            self._add_indicator(name, positive, active, [result, column], [1.0, -sign], 0.0)
        self._limit(
            name, result, 1.0, max(self._largest_value(column, 1.0), self._largest_value(column, -1.0))
        )

    def sum_of_sizes(self, name: str, result: int, columns: Columns) -> None:
        """result = sum of |column|."""
        sizes = self._sizes(name, columns)
        self._row(name, [result, *sizes], [-1.0] + [1.0] * len(sizes), 0.0, 0.0)

    def largest_size(self, name: str, result: int, columns: Columns) -> None:
        """result = max of |column|."""
        self.maximum(name, result, self._sizes(name, columns), -np.inf)

    def _sizes(self, name: str, columns: Columns) -> list[int]:
        sizes = []
        for column in columns:
            sizes.append(
                self._column(name, max(self._largest_value(column, 1.0), self._largest_value(column, -1.0)))
            )
            self.absolute(name, sizes[-1], column)
        return sizes

    def logic(self, name: str, result: int, parts: Columns, sign: float) -> None:
        """For a sign of 1, `result` is 1 exactly if all parts are; for -1, if any of them is."""
        for columns, entries, most in logic_rows(result, parts, sign):
            self._row(name, columns, entries, -np.inf, most)

    def parity(self, name: str, parts: Columns, odd: bool) -> None:
        """An odd number of the parts is 1 (or an even number): their sum is 2 k + 1 or 2 k."""
        pairs = self._column(name, len(parts) / 2.0, integer=True)
        self._row(name, [*parts, pairs], [1.0] * len(parts) + [-2.0], float(odd), float(odd))

    def ordered(self, name: str, kind: int, columns: Columns) -> None:
        """A special ordered set of type 1 or 2, with its columns in order."""
        if kind == 1:
            self.at_most(name, columns, 1)
        elif kind == 2:
            self.neighbours(name, columns)
        else:
            told = f"{name} is a special ordered set of type {kind}"
            raise UnsupportedError(f"{told}; types 1 and 2 are taken.")

    def at_most(self, name: str, columns: Columns, count: int) -> None:
        """At most `count` of the columns are not 0."""
        used = [self._used(name, column) for column in columns]
        self._row(name, used, [1.0] * len(used), -np.inf, float(count))

    def neighbours(self, name: str, columns: Columns) -> None:
        """At most two of the columns are not 0, and these are neighbours."""
        pairs = [self._binary(name) for _ in columns[1:]]
        if not pairs:
            return
        self._row(name, pairs, [1.0] * len(pairs), -np.inf, 1.0)
        for k, column in enumerate(columns):
            self._row(
                name, *_bound_rows(self._used(name, column), pairs[max(k - 1, 0) : k + 1]), -np.inf, 0.0
            )

    def piecewise(self, name: str, x: int, y: int, points: FloatArray, values: FloatArray) -> None:
        """y is the piecewise-linear function of x through the points; the first and last pieces extend
        beyond them."""
        points, values = self._reaching(name, x, points, values)
        weights = [self._column(name, 1.0) for _ in points]
        pieces = [self._binary(name) for _ in points[1:]]
        ones = [1.0] * len(weights)
        self._row(name, weights, ones, 1.0, 1.0)
        self._row(name, pieces, ones[1:], 1.0, 1.0)
        for column, numbers in ((x, points), (y, values)):
            self._row(name, [column, *weights], [-1.0, *numbers.tolist()], 0.0, 0.0)
        for k, weight in enumerate(weights):
            self._row(name, *_bound_rows(weight, pieces[max(k - 1, 0) : k + 1]), -np.inf, 0.0)

    def piecewise_cost(self, name: str, x: int, points: FloatArray, values: FloatArray) -> None:
        """The objective has the piecewise-linear function of x that goes through the points."""
        self.piecewise(name, x, self._column(name, np.inf, lower=-np.inf, cost=1.0), points, values)

    def _reaching(
        self, name: str, x: int, points: FloatArray, values: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The points, extended to the range of x."""
        mip = self.mip
        low, high = mip.lower[x], mip.upper[x]
        if not np.all(np.diff(points) > 0.0):
            raise UnsupportedError(
                f"{name} has a jump, or breakpoints that do not increase; give increasing breakpoints."
            )
        if len(points) < 2:
            raise UnsupportedError(
                f"{name} has fewer than two breakpoints; give a linear constraint instead."
            )
        if not (np.isfinite(low) and np.isfinite(high)):
            raise UnsupportedError(
                f"{name} is piecewise linear in {mip.column_name(x)}, which lies between {low:g} and "
                f"{high:g}; give that variable finite bounds."
            )
        first = (values[1] - values[0]) / (points[1] - points[0])
        last = (values[-1] - values[-2]) / (points[-1] - points[-2])
        if low < points[0]:
            values = np.concatenate([[values[0] - first * (points[0] - low)], values])
            points = np.concatenate([[low], points])
        if high > points[-1]:
            values = np.concatenate([values, [values[-1] + last * (high - points[-1])]])
            points = np.concatenate([points, [high]])
        return points, values

    def _largest_value(self, column: int, sign: float) -> float:
        k = column - self.mip.n_columns
        lower, upper = (self.mip.lower, self.mip.upper) if k < 0 else (self._lower, self._upper)
        at = column if k < 0 else k
        return float(upper[at] if sign > 0 else -lower[at])

    def _limit(self, name: str, column: int, sign: float, most: float) -> None:
        """A bound that follows from the others, stated as a row so that the result gets a finite big M."""
        if np.isfinite(most) and self._largest_value(column, sign) > most:
            self._row(name, [column], [sign], -np.inf, most)

    def _used(self, name: str, column: int) -> int:
        """A binary that is 1 if the column is not 0; the column itself if it is a binary."""
        mip = self.mip
        if mip.integer[column] and mip.lower[column] >= 0.0 and mip.upper[column] <= 1.0:
            return column
        binary = self._binary(name)
        self.indicators.append(Indicator(binary, 0, [column], [1.0], 0.0, 0.0, name))
        return binary

    def _add_indicator(
        self, name: str, binary: int, active: int, columns: Columns, entries: list[float], most: float
    ) -> None:
        self.indicators.append(Indicator(binary, active, columns, entries, -np.inf, most, name))

    def _binary(self, name: str) -> int:
        return self._column(name, 1.0, integer=True)

    def _column(
        self, name: str, upper: float, *, lower: float = 0.0, integer: bool = False, cost: float = 0.0
    ) -> int:
        self._lower.append(lower)
        self._names.append(f"{name} ({len(self._names)})")
        self._upper.append(upper)
        self._integer.append(integer)
        self._cost.append(cost)
        return self.mip.n_columns + len(self._names) - 1

    def _row(self, name: str, columns: Columns, entries: Sequence[float], lower: float, upper: float) -> None:
        self._rows.append((columns, entries, lower, upper, name))

    def program(self) -> Mip:
        """The program with everything appended except indicators."""
        if not self._rows:
            return self.mip
        own = self.mip
        lower, upper, integer = np.array(self._lower), np.array(self._upper), np.array(self._integer, bool)
        mip = own.with_columns(lower, upper, integer, self._names)
        columns, entries, low, high, names = zip(*self._rows, strict=True)
        indptr = np.cumsum([0, *map(len, columns)])
        rows = sp.csr_array(
            (np.concatenate(entries).astype(np.float64), np.concatenate(columns).astype(np.int64), indptr),
            shape=(len(low), mip.n_columns),
        )
        cost = np.concatenate([own.cost, self._cost])
        return replace(mip.with_rows(rows, low, high, names), cost=cost)


def logic_rows(
    result: _Place, parts: Sequence[_Place], sign: float
) -> Iterator[tuple[list[_Place], list[float], float]]:
    """Rows, each with its upper limit: `result` is 1 exactly if all parts are; for a sign of -1, if any is.

    All: result <= each part, and result >= sum of parts - (number of parts - 1).
    Any: result >= each part, and result <= sum of parts.
    """
    for part in parts:
        yield [result, part], [sign, -sign], 0.0
    yield [result, *parts], [-sign] + [sign] * len(parts), len(parts) - 1.0 if sign > 0 else 0.0


def _bound_rows(column: int, some: list[int]) -> tuple[list[int], list[float]]:
    return [column, *some], [1.0] + [-1.0] * len(some)


@dataclass(frozen=True)
class Indicator:
    """If column `binary` is `active`, then lower <= coefficients'x[columns] <= upper; infinities allowed."""

    binary: int
    active: int
    columns: Sequence[int]
    coefficients: Sequence[float]
    lower: float
    upper: float
    name: str

    def __post_init__(self) -> None:
        if self.active not in (0, 1):
            raise ModelError(f"indicator constraint {self.name}: the active value must be 0 or 1.")
        nonsense = math.isnan(self.lower) or math.isnan(self.upper)
        if nonsense or self.lower == math.inf or self.upper == -math.inf:
            raise ModelError(
                f"indicator constraint {self.name}: its linear constraint has the limits "
                f"[{self.lower}, {self.upper}]; give numbers, with -inf or inf for no limit."
            )
