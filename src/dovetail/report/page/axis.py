"""Axes of a chart: where numbers lie on it, and which of them are written."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dovetail.report.page.number_text import MINUS, number

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Distances between numbers that people count by."""


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


def covering(values: Iterable[float], room: float = 0.06) -> tuple[float, float]:
    """The least and the largest of the numbers, with some room around them."""
    shown = list(values)
    low, high = min(shown), max(shown)
    width = (high - low) or max(abs(high), 1.0) * 0.1
    return low - room * width, high + room * width
