"""`dovetail.compare`: several results as one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.core.errors import OptionError
from dovetail.core.files import write_file
from dovetail.core.mip import TOLERANCE
from dovetail.core.names import NumberedNames
from dovetail.core.words import several
from dovetail.report.gains import ENDED, found_by
from dovetail.report.page.course import (
    COLOURS,
    NARROW,
    SHAPES,
    WIDE,
    Chart,
    ChartLine,
    Course,
    Figure,
    Frame,
    Mark,
    Stop,
    covering,
    path,
    steps,
    thinned,
)
from dovetail.report.page.decision import Cell, ValueTable
from dovetail.report.page.number_text import number, numbers, percent, seconds, visible
from dovetail.report.page.result_page import STATUS
from dovetail.report.page.templates import render

MOST = 24
"""Largest number of results on one page."""


def compare(results: Sequence[Any] | Mapping[str, Any], path: str | Path) -> Path:
    """Write one HTML page with several results side by side: figures, a chart, decisions, settings.

    `results` is a list of `dovetail.Result`, or a mapping of names to results. Without names they are called
    by their methods. The page is self-contained like that of `Result.report`.

    >>> import dovetail as dt, tempfile
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0], integer=[True, False]))
    >>> block = problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    >>> results = {name: dt.solve(problem, name, log=False) for name in ("auto", "dual-decomposition")}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dt.compare(results, f"{folder}/both.html").name
    'both.html'
    """
    named = isinstance(results, Mapping)
    listed = list(results.values()) if isinstance(results, Mapping) else list(results)
    for result in listed:
        if not hasattr(result, "trace") or not hasattr(result, "objective"):
            raise OptionError(f"compare takes results of dovetail.solve, not {type(result).__name__}.")
    if not 2 <= len(listed) <= MOST:
        raise OptionError(f"compare takes 2 to {MOST} results; these are {len(listed)}.")
    names = [str(name) for name in results] if named else _names(listed)
    return write_file(path, _page(listed, names))


def _names(results: Sequence[Any]) -> list[str]:
    """The names of their methods, numbered if several are equal."""
    methods = [result.method for result in results]
    return [
        method if methods.count(method) == 1 else f"{method} {methods[: k + 1].count(method)}"
        for k, method in enumerate(methods)
    ]


def _page(results: Sequence[Any], names: Sequence[str]) -> str:
    compared = entries(results, names)
    columns = [figures(entry) for entry in compared]
    rows = zip(FIGURES, zip(*columns, strict=True), strict=True)
    table, instead = differences(compared)
    place = best(results)
    subtitle = "" if place is None else f"Best objective: {columns[place][1]}, by {compared[place].name}."
    return render(
        "compare.html",
        compared=compared,
        best=place,
        subtitle=subtitle,
        figures=[{"name": name, "texts": texts} for name, texts in rows],
        course=courses_figure(compared),
        differences=table,
        no_differences=instead,
        settings=settings_rows(compared),
        shapes=[*SHAPES, SHAPES[0]],
    )


MOST_DIFFERENT = 40
"""Largest number of variables listed whose values differ most."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A result with its name on the page and its progress."""

    name: str
    result: Any
    course: Course
    colour: int


def entries(results: Sequence[Any], names: Sequence[str]) -> list[Entry]:
    """The results with their names and colours."""
    pairs = enumerate(zip(names, results, strict=True))
    return [
        Entry(visible(name, 40), result, Course.of(result), min(k, COLOURS)) for k, (name, result) in pairs
    ]


def best(results: Sequence[Any]) -> int | None:
    """The place of the best objective, if all objectives have the same sense; otherwise None."""
    senses = {result.facts.sense for result in results if result.facts is not None}
    found = [(result.objective, k) for k, result in enumerate(results) if result.objective is not None]
    if len(senses) != 1 or len(found) < 2:
        return None
    return max(found, key=lambda pair: pair[0] if senses == {"max"} else -pair[0])[1]


FIGURES = ("status", "objective", "bound", "gap", "seconds", "last gain", "found by", "iterations", "method")
"""The rows of the first table."""


def figures(entry: Entry) -> list[str]:
    """The column of one result in that table."""
    result, points = entry.result, entry.course.points
    status = STATUS[result.status.value].lower()
    reason = result.stop_reason.value
    return [
        f"{status}, ended {ENDED[reason]}",
        number(result.objective),
        number(result.bound) + (" (MIP only)" if result.rows_only else ""),
        percent(None if result.rows_only else result.gap),
        seconds(result.seconds),
        seconds(points[-1].seconds) if points else "–",
        visible(found_by(points[-1].source)) if points else "–",
        f"{result.iterations:,}",
        visible(result.method),
    ]


def courses_figure(compared: Sequence[Entry]) -> Figure | None:
    """The progress of all results in one chart: incumbents solid, bounds dashed."""
    points = [gain.value for entry in compared for gain in entry.course.points]
    bounds = [entry.result.bound for entry in compared if entry.result.bound is not None]
    if not points:
        return None
    spread = (max(points) - min(points)) or 0.25 * max(abs(points[0]), 1e-9)
    near = [bound for bound in bounds if min(points) - spread <= bound <= max(points) + spread]
    limits = covering([*points, *near])
    wide, narrow = (_chart(compared, limits, frame) for frame in (WIDE, NARROW))
    off = len(bounds) - len(near)
    return Figure(wide, narrow, [f"{several(off, 'bound lies', 'bounds lie')} off the chart."] if off else [])


def _chart(compared: Sequence[Entry], limits: tuple[float, float], frame: Frame) -> Chart:
    end = max(entry.course.end for entry in compared)
    times = [gain.seconds for entry in compared for gain in entry.course.points]
    early = sum(entry.course.early for entry in compared) * 2 > len(compared)
    first = max(0.8 * min(times), 1e-4 * end) if early else 0.0
    x, y = frame.across(first, end, log=early), frame.upward(*limits)
    lines, marks = [], []
    for entry in compared:
        for gains, dashed in ((entry.course.bounds, True), (entry.course.points, False)):
            shown = [gain for gain in thinned(gains) if limits[0] <= gain.value <= limits[1]]
            places = [(x.place(gain.seconds), y.place(gain.value)) for gain in shown]
            if places:
                lines.append(ChartLine(path(steps(places, x.place(entry.course.end))), entry.colour, dashed))
            if places and not dashed:
                marks += [Mark(*place, entry.colour) for place in places]
    moments = thinned(sorted({*times, end}))
    stops = [Stop(x.place(moment), _values_at(compared, moment)) for moment in moments]
    label = f"Best solutions of {len(compared)} results over {seconds(end)}. {_values_at(compared, end)}"
    title = "seconds, on a logarithmic scale" if early else "seconds"
    return Chart(frame.width, frame.height, x, y, label, title, lines, marks, stops)


def _values_at(compared: Sequence[Entry], moment: float) -> str:
    values = [(entry.name, entry.course.at(moment)[0]) for entry in compared]
    words = [f"{name} {'no solution' if point is None else number(point.value)}" for name, point in values]
    return " · ".join([seconds(moment), *words])


def differences(compared: Sequence[Entry]) -> tuple[ValueTable | None, str]:
    """The variables whose values differ most, and a text about the others."""
    told = [entry for entry in compared if entry.result.x is not None]
    if len(told) < 2:
        return None, "Fewer than two of them have a solution."
    names = {None if e.result.names is None else tuple(e.result.names) for e in told}
    if len(names) > 1 or len({e.result.x.size for e in told}) > 1:
        return None, "They have different variables: their values cannot be compared."
    values = np.array([entry.result.x for entry in told])
    apart = values.max(axis=0) - values.min(axis=0)
    scale = np.maximum(1.0, np.abs(values).max(axis=0))
    differing = np.flatnonzero(apart > TOLERANCE * scale)
    if not differing.size:
        return None, "All of them are the same solution."
    shown = differing[np.argsort(-(apart / scale)[differing], kind="stable")][:MOST_DIFFERENT]
    named = told[0].result.names or NumberedNames("x", (values.shape[1],))
    rows = [(visible(named[j]), [Cell(text) for text in numbers(values[:, j])]) for j in shown.tolist()]
    about = f"{differing.size:,} of {several(values.shape[1], 'variable')} differ"
    left_out = f"The {len(shown)} that differ most." if differing.size > len(shown) else ""
    return ValueTable(
        "Values that differ", about, ["column", *(entry.name for entry in told)], rows, left_out
    ), ""


def settings_rows(compared: Sequence[Entry]) -> list[tuple[str, list[str], bool]]:
    """Options, versions and machines; the last entry says whether they differ."""
    keys: dict[str, list[str]] = {}
    for k, entry in enumerate(compared):
        settings = entry.result.settings
        if settings is None:
            continue
        told = {"call": settings.call, **settings.versions, "machine": settings.machine}
        for key, text in told.items():
            keys.setdefault(key, ["–"] * len(compared))[k] = visible(text, 700)
    return [(visible(key, 40), texts, len(set(texts)) > 1) for key, texts in keys.items()]
