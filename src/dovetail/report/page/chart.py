"""A chart as data: axes, lines, marks, and the places where values can be read. The template draws it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from dovetail.report.page.number_text import MINUS, number

Point = tuple[float, float]
T = TypeVar("T")

COLOURS = 8
"""Colours that are told apart in light, in dark and by most eyes; what comes after them is grey."""
SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.6-3.6h7.2v7.2h-7.2z",
    "M0-5l5 5l-5 5l-5-5z",
    "M0-5l4.8 8.4h-9.6z",
    "M0 5l4.8-8.4h-9.6z",
    "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    "M-4.5-2.5h9v5h-9z",
    "M-2.5-4.5h5v9h-5z",
)
"""A mark for each colour, so that they are told apart without it."""
MOST_STOPS = 120
"""Places on one chart where values can be read: a phone is 300 points wide, and a finger wider than two."""


STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Distances between numbers that people count by."""


@dataclass(frozen=True)
class ChartLine:
    """A path in one colour."""

    d: str
    colour: int
    dashed: bool = False


@dataclass(frozen=True)
class Mark:
    """A point that stands out."""

    x: float
    y: float
    colour: int

    @property
    def shape(self) -> str:
        """Its outline."""
        return SHAPES[self.colour % len(SHAPES)]


@dataclass(frozen=True)
class Stop:
    """Where values can be read: by the pointer, by the arrow keys."""

    x: float
    say: str


@dataclass(frozen=True)
class Chart:
    """All that is drawn, in units of its view box."""

    width: int
    height: int
    x: Axis
    y: Axis
    label: str
    """For those who do not see it."""
    x_title: str
    lines: list[ChartLine]
    marks: list[Mark] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    area: str = ""

    @property
    def x_ticks(self) -> list[tuple[float, str]]:
        """Numbers below the chart."""
        return self.x.ticks(max(3, self.width // 90))

    @property
    def y_ticks(self) -> list[tuple[float, str]]:
        """Numbers beside it."""
        return self.y.ticks(5)


@dataclass(frozen=True)
class Figure:
    """A chart drawn twice, for a screen and for a phone, where text would shrink with it."""

    wide: Chart
    narrow: Chart
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Frame:
    """The size of a chart and of what stands around its lines."""

    width: int
    height: int
    left: int

    def across(self, low: float, high: float, *, log: bool = False, whole: bool = False) -> Axis:
        """The axis below the chart."""
        return Axis(low, high, self.left, self.width - 12, log, whole)

    def upward(self, low: float, high: float, *, log: bool = False) -> Axis:
        """The axis beside it."""
        return Axis(low, high, self.height - 40, 12, log)


WIDE, NARROW = Frame(860, 320, 76), Frame(340, 250, 58)
"""Of a screen and of a phone held upright, both in units that are about a pixel."""
LOW_WIDE, LOW_NARROW = Frame(860, 200, 76), Frame(340, 180, 58)
"""For charts that say less."""


def path(points: Sequence[Point]) -> str:
    """Straight lines from point to point."""
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def steps(values: Sequence[Point], end: float) -> list[Point]:
    """The corners of a staircase: each value holds until the next one, the last until `end`."""
    corners: list[Point] = []
    for k, (x, y) in enumerate(values):
        following = values[k + 1][0] if k + 1 < len(values) else end
        corners += [(x, y), (max(x, following), y)]
    return corners


def thinned(items: Sequence[T], most: int = MOST_STOPS) -> list[T]:
    """At most so many of them, the first and the last included."""
    if len(items) <= most:
        return list(items)
    return [items[round(k * (len(items) - 1) / (most - 1))] for k in range(most)]


@dataclass(frozen=True)
class Axis:
    """Numbers between `low` and `high`, drawn between two places of the chart."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False
    whole: bool = False
    """Whether only whole numbers mean anything."""

    def place(self, value: float) -> float:
        """Where a number lies; those outside lie at the ends."""
        low, high = self._scaled(self.low), self._scaled(self.high)
        inside = min(max(self._scaled(max(value, self.low)), low), high)
        share = (inside - low) / (high - low) if high > low else 0.5
        return round(self.begin + share * (self.end - self.begin), 1)

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Places and texts of round numbers, at most so many."""
        values = self._decades(most) if self.log else self._round(most)
        return [(self.place(value), text) for value, text in values]

    def _round(self, most: int) -> list[tuple[float, str]]:
        span = self.high - self.low
        if not span > 0.0:
            return [(self.low, number(self.low))]
        raw = max(span / most, 1.0) if self.whole else span / most
        unit = 10.0 ** math.floor(math.log10(raw))
        steps = (unit * s for s in STEPS if not (self.whole and unit * s % 1.0))
        step = next(step for step in steps if step >= raw * (1.0 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        decimals = max(0, -math.floor(math.log10(step) + 1e-9) + (1 if step / unit == 2.5 else 0))
        return [(k * step, _tick(k * step, decimals)) for k in range(first, last + 1)]

    def _decades(self, most: int) -> list[tuple[float, str]]:
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        every = max(1, math.ceil((last - first + 1) / most))
        if last - first < 1:
            return [(value, number(value, 2)) for value in (self.low, self.high)]
        return [(10.0**k, _power(k)) for k in range(first, last + 1, every)]


def _tick(value: float, decimals: int) -> str:
    if abs(value) >= 1e7 or decimals > 6:
        return number(value, 6)
    return f"{value + 0.0:,.{decimals}f}".replace("-", MINUS)


def _power(k: int) -> str:
    return number(10.0**k) if -4 < k < 5 else f"1e{k}".replace("-", MINUS)


def covering(values: Iterable[float]) -> tuple[float, float]:
    """The least and the largest of the numbers, with some room around them."""
    shown = list(values)
    low, high = min(shown), max(shown)
    width = (high - low) or max(abs(high), 1.0) * 0.1
    return low - 0.06 * width, high + 0.06 * width
