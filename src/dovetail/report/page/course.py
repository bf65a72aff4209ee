"""How the answer was found: every better point and bound, when it came, and which part brought it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from dovetail.report.gains import Gain, relative_gap
from dovetail.report.page.chart import COLOURS
from dovetail.report.page.number_text import number, percent, seconds, visible
from dovetail.report.sources import ROWS_ONLY, found_by, proved_by

EARLY = 0.06
"""Of the time: where half of all gains come before, seconds are drawn by their logarithm."""
LISTED = (8, 16)
"""Gains in the list: so many of the first and of the last."""


@dataclass(frozen=True)
class Course:
    """Points and bounds of one result, in the order of time."""

    points: list[Gain]
    bounds: list[Gain]
    end: float
    """Seconds of the whole solve."""
    sense: str

    @classmethod
    def of(cls, result: Any) -> Course:
        """From the gains on record; a result from an old file has only its iterations."""
        trace = result.trace
        points, bounds = _finite(trace.incumbents), _finite(trace.bounds)
        if not points and not bounds:
            points, bounds = _from_rows(trace.rows)
        if result.objective is None:
            points = []
        if result.bound is None:
            bounds = []
        sense = "" if result.facts is None else result.facts.sense
        last = max((gain.seconds for gain in (*points, *bounds)), default=0.0)
        return cls(points, bounds, max(result.seconds, last, 1e-3), sense)

    @property
    def sources(self) -> list[str]:
        """Of points, then of bounds, as they first came."""
        return list(dict.fromkeys([gain.source for gain in (*self.points, *self.bounds)]))

    @property
    def colours(self) -> dict[str, int]:
        """A colour for each source; bounds that have seen no network are grey."""
        seen = [source for source in self.sources if source not in ROWS_ONLY]
        return {source: min(k, COLOURS) for k, source in enumerate(seen)} | dict.fromkeys(ROWS_ONLY, COLOURS)

    @property
    def early(self) -> bool:
        """Whether most of it happened in the first moments."""
        times = [gain.seconds for gain in self.points]
        times += [gain.seconds for gain in self.bounds if gain.source not in ROWS_ONLY]
        return len(times) > 1 and min(times) > 0.0 and median(times) < EARLY * self.end

    def at(self, moment: float) -> tuple[Gain | None, Gain | None]:
        """Point and bound as they were then."""
        point, bound = (_last(gains, moment) for gains in (self.points, self.bounds))
        return point, bound

    def text_at(self, moment: float) -> str:
        """The same in words."""
        point, bound = self.at(moment)
        words = [seconds(moment)]
        if point is not None:
            words.append(f"point {number(point.value)} by {visible(found_by(point.source))}")
        if bound is not None:
            words.append(f"bound {number(bound.value)} ({visible(proved_by(bound.source))})")
        if point is not None and bound is not None and bound.source not in ROWS_ONLY:
            words.append(f"gap {percent(relative_gap(point.value, bound.value))}")
        return " · ".join(words)


class PartRow(NamedTuple):
    """What one part brought."""

    colour: int
    words: str
    amount: int
    first: str
    last: str
    best: str


def by_part(gains: Sequence[Gain], course: Course, words: Any) -> list[PartRow]:
    """Who brought how many, when, and the best of it."""
    rows = []
    for source in dict.fromkeys(gain.source for gain in gains):
        mine = [gain for gain in gains if gain.source == source]
        first, last = seconds(mine[0].seconds), seconds(mine[-1].seconds)
        best = number(mine[-1].value)
        rows.append(PartRow(course.colours[source], visible(words(source)), len(mine), first, last, best))
    return rows


class GainRow(NamedTuple):
    """One better point, in the list of them."""

    seconds: str
    colour: int
    words: str
    value: str
    change: float | None


def listed_points(course: Course) -> tuple[list[GainRow], int]:
    """The first and the last better points, and how many between them are left out."""
    befores = [None, *course.points]
    rows = [_gain_row(course, *pair) for pair in zip(befores, course.points, strict=False)]
    first, last = LISTED
    left_out = max(0, len(rows) - first - last)
    return (rows[:first] + rows[first + left_out :], left_out) if left_out else (rows, 0)


def _gain_row(course: Course, before: Gain | None, gain: Gain) -> GainRow:
    by = course.colours[gain.source], visible(found_by(gain.source))
    change = None if before is None else gain.value - before.value
    return GainRow(seconds(gain.seconds), *by, number(gain.value), change)


def _finite(gains: Sequence[Gain]) -> list[Gain]:
    return [gain for gain in gains if math.isfinite(gain.value)]


def _from_rows(rows: Sequence[Any]) -> tuple[list[Gain], list[Gain]]:
    points: list[Gain] = []
    bounds: list[Gain] = []
    for row in rows:
        if math.isfinite(row.incumbent) and (not points or row.source):
            points.append(Gain(row.elapsed, row.incumbent, row.source or "start"))
        if row.bound is not None and math.isfinite(row.bound) and (not bounds or row.proof):
            bounds.append(Gain(row.elapsed, row.bound, row.proof or "host"))
    return points, bounds


def _last(gains: Sequence[Gain], moment: float) -> Gain | None:
    return next((gain for gain in reversed(gains) if gain.seconds <= moment), None)
