"""The progress of a solve: every improvement of incumbent and bound, when it came and from which part."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, NamedTuple, TypeVar

from dovetail.core.words import several
from dovetail.report.gains import ROWS_ONLY, Gain, found_by, proved_by, relative_gap
from dovetail.report.page.number_text import MINUS, number, percent, seconds, visible

Point = tuple[float, float]
T = TypeVar("T")

COLOURS = 8
"""Number of distinct colours, in light and dark; further sources are grey."""
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
"""A mark for each colour, so that colour is not needed to tell them apart."""
MOST_STOPS = 120
"""Places of one chart where values can be read; more would be too close on a phone."""


STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Usual distances between the ticks of an axis."""


@dataclass(frozen=True)
class ChartLine:
    """A path in one colour."""

    d: str
    colour: int
    dashed: bool = False


@dataclass(frozen=True)
class Mark:
    """A highlighted point."""

    x: float
    y: float
    colour: int

    @property
    def shape(self) -> str:
        """Its outline."""
        return SHAPES[self.colour % len(SHAPES)]


@dataclass(frozen=True)
class Stop:
    """A place where values can be read, by pointer or arrow keys."""

    x: float
    say: str


@dataclass(frozen=True)
class Chart:
    """A chart, in units of its view box."""

    width: int
    height: int
    x: Axis
    y: Axis
    label: str
    """The text for screen readers."""
    x_title: str
    lines: list[ChartLine]
    marks: list[Mark] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    area: str = ""
    edge: tuple[float, float, str] | None = None
    """Place and number of a bound beyond the scale, which is drawn at the edge."""

    @property
    def x_ticks(self) -> list[tuple[float, str]]:
        """Ticks of the horizontal axis."""
        return self.x.ticks(max(3, self.width // 90))

    @property
    def y_ticks(self) -> list[tuple[float, str]]:
        """Ticks of the vertical axis."""
        return self.y.ticks(5)


@dataclass(frozen=True)
class Figure:
    """A chart in two sizes, for a screen and for a phone."""

    wide: Chart
    narrow: Chart
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Frame:
    """The size of a chart and of its margins."""

    width: int
    height: int
    left: int

    def across(self, low: float, high: float, *, log: bool = False, whole: bool = False) -> Axis:
        """The horizontal axis."""
        return Axis(low, high, self.left, self.width - 12, log, whole)

    def upward(self, low: float, high: float, *, log: bool = False) -> Axis:
        """The vertical axis."""
        return Axis(low, high, self.height - 40, 12, log)


WIDE, NARROW = Frame(860, 320, 76), Frame(340, 250, 58)
"""For a screen and for an upright phone, in units of about a pixel."""
LOW_WIDE, LOW_NARROW = Frame(860, 200, 76), Frame(340, 180, 58)
"""For charts with less content."""


def path(points: Sequence[Point]) -> str:
    """Straight lines from point to point."""
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def steps(values: Sequence[Point], end: float) -> list[Point]:
    """The corners of a step function: each value holds until the next one, the last until `end`."""
    corners: list[Point] = []
    for k, (x, y) in enumerate(values):
        following = values[k + 1][0] if k + 1 < len(values) else end
        corners += [(x, y), (max(x, following), y)]
    return corners


def thinned(items: Sequence[T], most: int = MOST_STOPS) -> list[T]:
    """At most this number of items, including the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[round(k * (len(items) - 1) / (most - 1))] for k in range(most)]


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic axis between `low` and `high`."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False
    whole: bool = False
    """Whether only whole numbers are shown."""

    def place(self, value: float) -> float:
        """The position of a number; numbers outside are at the ends."""
        low, high = self._scaled(self.low), self._scaled(self.high)
        inside = min(max(self._scaled(max(value, self.low)), low), high)
        share = (inside - low) / (high - low) if high > low else 0.5
        return round(self.begin + share * (self.end - self.begin), 1)

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Positions and texts of round numbers, at most this many."""
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
    """The smallest and the largest number, with some room around them."""
    shown = list(values)
    low, high = min(shown), max(shown)
    width = (high - low) or max(abs(high), 1.0) * 0.1
    return low - 0.06 * width, high + 0.06 * width


EARLY = 0.06
"""Fraction of the time: if half of all improvements come before it, the time axis is logarithmic."""
LISTED = (8, 16)
"""Number of the first and of the last improvements in the list."""


@dataclass(frozen=True)
class Course:
    """Improvements of incumbent and bound of one result, in the order of time."""

    points: list[Gain]
    bounds: list[Gain]
    end: float
    """Seconds of the whole solve."""
    sense: str

    @classmethod
    def of(cls, result: Any) -> Course:
        """The course, from the recorded improvements."""
        points = [] if result.objective is None else _finite(result.trace.incumbents)
        bounds = [] if result.bound is None else _finite(result.trace.bounds)
        sense = "" if result.facts is None else result.facts.sense
        last = max((gain.seconds for gain in (*points, *bounds)), default=0.0)
        return cls(points, bounds, max(result.seconds, last, 1e-3), sense)

    @property
    def sources(self) -> list[str]:
        """Sources of solutions, then of bounds, in the order of their first appearance."""
        return list(dict.fromkeys([gain.source for gain in (*self.points, *self.bounds)]))

    @property
    def colours(self) -> dict[str, int]:
        """A colour for each source; bounds that ignore the predictors are grey."""
        seen = [source for source in self.sources if source not in ROWS_ONLY]
        return {source: min(k, COLOURS) for k, source in enumerate(seen)} | dict.fromkeys(ROWS_ONLY, COLOURS)

    @property
    def early(self) -> bool:
        """Whether most improvements came in the first moments."""
        times = [gain.seconds for gain in self.points]
        times += [gain.seconds for gain in self.bounds if gain.source not in ROWS_ONLY]
        return len(times) > 1 and min(times) > 0.0 and median(times) < EARLY * self.end

    def at(self, moment: float) -> tuple[Gain | None, Gain | None]:
        """Incumbent and bound at a time."""
        point, bound = (_last_gain(gains, moment) for gains in (self.points, self.bounds))
        return point, bound

    def text_at(self, moment: float) -> str:
        """The sources in words."""
        point, bound = self.at(moment)
        words = [seconds(moment)]
        if point is not None:
            words.append(f"incumbent {number(point.value)} by {visible(found_by(point.source))}")
        if bound is not None:
            words.append(f"bound {number(bound.value)} ({visible(proved_by(bound.source))})")
        if point is not None and bound is not None and bound.source not in ROWS_ONLY:
            words.append(f"gap {percent(relative_gap(point.value, bound.value))}")
        return " · ".join(words)


class PartRow(NamedTuple):
    """The solutions and bounds of one source."""

    colour: int
    words: str
    amount: int
    first: str
    last: str
    best: str


def by_part(gains: Sequence[Gain], course: Course, words: Any) -> list[PartRow]:
    """The number, times and best value of each source."""
    rows = []
    for source in dict.fromkeys(gain.source for gain in gains):
        mine = [gain for gain in gains if gain.source == source]
        first, last = seconds(mine[0].seconds), seconds(mine[-1].seconds)
        best = number(mine[-1].value)
        rows.append(PartRow(course.colours[source], visible(words(source)), len(mine), first, last, best))
    return rows


class GainRow(NamedTuple):
    """One improvement of the incumbent in the list."""

    seconds: str
    colour: int
    words: str
    value: str
    change: float | None


def listed_points(course: Course) -> tuple[list[GainRow], int]:
    """The first and the last improvements, and the number left out in between."""
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


def _last_gain(gains: Sequence[Gain], moment: float) -> Gain | None:
    return next((gain for gain in reversed(gains) if gain.seconds <= moment), None)


REACH = 4.0
"""Bounds that differ from all solutions by more than this multiple of their spread are left off the chart."""
LEFT_OUT, FLAT = 0.25, 0.2
"""Largest share of first solutions that the chart leaves out so that the others appear at least five times
as large."""


def course_figure(course: Course) -> Figure | None:
    """The chart for screens and phones; None if there is nothing to show."""
    points, bounds = thinned(course.points), thinned(course.bounds)
    if not points and len(bounds) < 2:
        return None
    limits = _limits([gain.value for gain in points], [gain.value for gain in bounds])
    notes = _notes(points, bounds, limits)
    points, bounds = (
        [gain for gain in gains if limits[0] <= gain.value <= limits[1] or gain in bounds[-1:]]
        for gains in (points, bounds)
    )
    wide, narrow = (_chart(course, points, bounds, limits, frame) for frame in (WIDE, NARROW))
    return Figure(wide, narrow, notes)


def _chart(
    course: Course, points: list[Gain], bounds: list[Gain], limits: tuple[float, float], frame: Frame
) -> Chart:
    times = [gain.seconds for gain in (*points, *bounds)]
    first = max(0.8 * min(times), 1e-4 * course.end) if course.early else 0.0
    x, y = frame.across(first, course.end, log=course.early), frame.upward(*limits)
    place = [[(x.place(g.seconds), y.place(g.value)) for g in gains] for gains in (points, bounds)]
    end, colours = x.place(course.end), course.colours
    lines = _lines(place[1], bounds, end, colours, dashed=True)
    lines += _lines(place[0], points, end, colours, dashed=False)
    marks = [Mark(*at, colours[gain.source]) for at, gain in zip(place[0], points, strict=True)]
    moments = sorted({*times, course.end})
    stops = [Stop(x.place(moment), course.text_at(moment)) for moment in thinned(moments)]
    label = f"Best solution and proven bound over {seconds(course.end)}. {course.text_at(course.end)}"
    title = "seconds, on a logarithmic scale" if course.early else "seconds"
    area = _area(place[0], place[1], end)
    chart = Chart(frame.width, frame.height, x, y, label, title, lines, marks, stops, area)
    beyond = [gain for gain in bounds[-1:] if not limits[0] <= gain.value <= limits[1]]
    return replace(chart, edge=_at_edge(beyond[0], limits, x, y)) if beyond else chart


def _at_edge(gain: Gain, limits: tuple[float, float], x: Axis, y: Axis) -> tuple[float, float, str]:
    """Place and text of a bound beyond the scale."""
    above = gain.value > limits[1]
    text = f"{'↑' if above else '↓'} bound {number(gain.value)}"
    return x.end - 4, y.end + 14 if above else y.begin - 6, text


def _lines(
    places: Sequence[Point], gains: Sequence[Gain], end: float, colours: dict[str, int], *, dashed: bool
) -> list[ChartLine]:
    """One path for each stretch of the same source."""
    lines: list[ChartLine] = []
    begin = 0
    for k in range(1, len(gains) + 1):
        if k < len(gains) and gains[k].source == gains[begin].source:
            continue
        until = places[k][0] if k < len(gains) else end
        corners = steps(places[begin:k], until)
        if begin:
            corners.insert(0, (places[begin][0], places[begin - 1][1]))
        lines.append(ChartLine(path(corners), colours[gains[begin].source], dashed))
        begin = k
    return lines


def _area(points: list[Point], bounds: list[Point], end: float) -> str:
    """The area between incumbent and bound."""
    if not points or not bounds:
        return ""
    start = max(points[0][0], bounds[0][0])
    above, below = ([(max(x, start), y) for x, y in steps(each, end)] for each in (points, bounds))
    return path([*above, *reversed(below)]) + "z"


def _limits(points: list[float], bounds: list[float]) -> tuple[float, float]:
    """The range at the end: the last solutions, and the last bound if it is near them."""
    if not points:
        return covering(bounds)
    low, high = min(points), max(points)
    room = REACH * ((high - low) or 0.25 * max(abs(high), 1e-9))
    last = [bound for bound in bounds[-1:] if low - room <= bound <= high + room]
    shown = [*_near_the_end(points, last), *last]
    low, high = min(shown), max(shown)
    near = [bound for bound in bounds if 2 * low - high <= bound <= 2 * high - low]
    return covering([*shown, *near])


def _near_the_end(points: list[float], last: list[float]) -> list[float]:
    """The solutions without the first ones that are much worse."""
    shown = points
    while len(shown) > 2 and len(points) - len(shown) < LEFT_OUT * len(points):
        whole, rest = _spread([*shown, *last]), _spread([*shown[1:], *last])
        if rest > FLAT * whole or rest == 0.0:
            break
        shown = shown[1:]
    return shown


def _spread(values: list[float]) -> float:
    return max(values) - min(values)


def _notes(points: list[Gain], bounds: list[Gain], limits: tuple[float, float]) -> list[str]:
    """The values that are off the chart."""
    notes = []
    for gains, what in ((points, "points"), (bounds, "bounds")):
        off = [gain for gain in gains if not limits[0] <= gain.value <= limits[1]]
        if off and off[-1] is gains[-1]:
            notes.append(f"The bound, {number(off[-1].value)}, is beyond the scale: drawn at the edge.")
        elif off:
            until, first = seconds(off[-1].seconds), number(off[0].value)
            notes.append(f"The {what} up to {until}, from {first} on, lie off the chart.")
    return notes


SMALLEST = 1e-12
"""Smaller residuals count as 0 and have no logarithm."""
MOST = 400
"""Iterations on a chart; of more, as many at equal distances."""


class Iteration(NamedTuple):
    """The residuals of Algorithm 1."""

    number: int
    primal: float
    dual: float
    rho: float


def iterations(trace: Sequence[Any]) -> list[Iteration]:
    """The iterations with a coupling."""
    rows = [row for row in trace if row.residuals]
    return [Iteration(row.iteration, row.primal, row.dual, row.rho) for row in thinned(rows, MOST)]


def residual_figures(trace: Sequence[Any]) -> list[tuple[str, Figure]]:
    """The residuals, and rho if it changed; empty for methods without a coupling."""
    rows = iterations(trace)
    if len(rows) < 2:
        return []
    figures = [("residual", _figure(rows, ("primal", "dual"), "Residuals"))]
    inexact = sum(not row.exact for row in trace)
    if inexact:
        figures[0][1].notes.append(
            f"{several(inexact, 'MIP step')} ended at a limit; the points found were used."
        )
    if len({row.rho for row in rows}) > 1:
        figures.append(("rho", _figure(rows, ("rho",), "Penalty rho")))
    return figures


def _figure(rows: list[Iteration], kinds: tuple[str, ...], label: str) -> Figure:
    values = [max(getattr(row, kind), SMALLEST) for row in rows for kind in kinds]
    values = [value for value in values if math.isfinite(value)]
    low = 10.0 ** math.floor(math.log10(min(values, default=1.0)))
    high = 10.0 ** math.ceil(math.log10(max(values, default=10.0)))
    limits = low, max(high, 10.0 * low)
    wide, narrow = (_residual_chart(rows, kinds, label, limits, frame) for frame in (LOW_WIDE, LOW_NARROW))
    return Figure(wide, narrow)


def _residual_chart(
    rows: list[Iteration], kinds: tuple[str, ...], label: str, limits: tuple[float, float], frame: Frame
) -> Chart:
    x = frame.across(rows[0].number, rows[-1].number, whole=True)
    y = frame.upward(*limits, log=True)
    lines = []
    for colour, kind in enumerate(kinds):
        shown = [(row.number, getattr(row, kind)) for row in rows if math.isfinite(getattr(row, kind))]
        points = [(x.place(k), y.place(max(value, SMALLEST))) for k, value in shown]
        if points:
            lines.append(ChartLine(path(points), colour, dashed=colour > 0))
    stops = [
        Stop(x.place(row.number), f"iteration {row.number} · " + _values_in_words(row, kinds))
        for row in thinned(rows)
    ]
    words = f"{label} by iteration, on a logarithmic scale. Last: {_values_in_words(rows[-1], kinds)}"
    return Chart(frame.width, frame.height, x, y, words, "iteration", lines, stops=stops)


def _values_in_words(row: Iteration, kinds: tuple[str, ...]) -> str:
    return " · ".join(f"{kind} {getattr(row, kind):.2e}" for kind in kinds)
