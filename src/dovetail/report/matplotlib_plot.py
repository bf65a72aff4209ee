"""The progress of a solve as a matplotlib figure, for notebooks and papers: `result.plot()`."""

from __future__ import annotations

import math
from typing import Any

from dovetail.core.errors import MissingDependencyError
from dovetail.report.gains import ROWS_ONLY, Gain, found_by, proved_by
from dovetail.report.page.course import Course, iterations
from dovetail.report.page.number_text import visible

PARTS = 10
"""Largest number of parts with names in the legend: matplotlib has as many colours."""


def course_figure(result: Any, width: float) -> Any:
    """Incumbent and bound over time; below them the residuals, if there are any."""
    return figure_of(Course.of(result), iterations(result.trace), width)


def figure_of(course: Course, rows: list[Any], width: float) -> Any:
    """The same for a course, and for iterations with residuals."""
    Figure = _figure_class()
    panels = 2 if len(rows) > 1 else 1
    figure = Figure(figsize=(width, width * (0.5 if panels == 1 else 0.8)), layout="constrained")
    axes = figure.subplots(panels, 1, squeeze=False, height_ratios=[2, 1][:panels])[:, 0]
    _draw_course(axes[0], course)
    if panels == 2:
        _draw_residuals(axes[1], rows)
    return figure


def _figure_class() -> Any:
    """The figure class without pyplot, so that the figure needs no window and is in no list of open
    figures."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError("plot() needs matplotlib: pip install matplotlib.") from None
    return Figure


def _draw_course(axis: Any, course: Course) -> None:
    axis.set_xlabel("seconds")
    axis.set_ylabel("objective")
    if course.bounds:
        _draw_steps(axis, course.bounds, course.end, linestyle="--", color="0.45", label="proven bound")
    if course.points:
        _draw_steps(axis, course.points, course.end, color="0.2", label="incumbent")
    for k, source in enumerate(dict.fromkeys(gain.source for gain in course.points)):
        mine = [gain for gain in course.points if gain.source == source]
        name = visible(found_by(source)) if k < PARTS else None
        axis.plot(*_places(mine), "osD^vPX*<>"[k % 10], color=f"C{k % PARTS}", label=name)
    if course.early:
        axis.set_xscale("log")
    if not course.points and not course.bounds:
        axis.text(0.5, 0.5, "no solution and no bound", ha="center", va="center", transform=axis.transAxes)
        return
    proofs = [visible(proved_by(gain.source)) for gain in course.bounds[-1:] if gain.source in ROWS_ONLY]
    legend = axis.legend(title="; ".join(f"bound: {proof}" for proof in proofs) or None, fontsize="small")
    for text in legend.get_texts():  # a dollar in a name is no formula
        text.set_parse_math(False)


def _draw_steps(axis: Any, gains: list[Gain], end: float, **look: Any) -> None:
    times, values = _places(gains)
    axis.step([*times, max(end, times[-1])], [*values, values[-1]], where="post", **look)


def _places(gains: list[Gain]) -> tuple[list[float], list[float]]:
    return [gain.seconds for gain in gains], [gain.value for gain in gains]


def _draw_residuals(axis: Any, rows: list[Any]) -> None:
    numbers = [row.number for row in rows]
    for kind, line in (("primal", "-"), ("dual", "--"), ("rho", ":")):
        values = [getattr(row, kind) for row in rows]
        axis.plot(numbers, [value if value > 0.0 else math.nan for value in values], line, label=kind)
    axis.set_yscale("log")
    axis.set_xlabel("iteration")
    axis.set_ylabel("residual, rho")
    axis.legend(fontsize="small")


def front_figure(labels: list[str], values: Any, proved: Any, width: float) -> Any:
    """Points of a front over two objectives; a third is their colour, proved points are filled."""
    figure = _figure_class()(figsize=(width, 0.75 * width), layout="constrained")
    axis = figure.subplots()
    axis.set_xlabel(labels[0], parse_math=False)
    axis.set_ylabel(labels[1], parse_math=False)
    if len(labels) == 2:
        for some, face in ((proved, "C0"), (~proved, "white")):
            axis.plot(*values[some].T, "o", color="C0", markerfacecolor=face)
    else:
        axis.scatter(values[~proved, 0], values[~proved, 1], s=90, facecolors="none", edgecolors="0.5")
        drawn = axis.scatter(values[:, 0], values[:, 1], c=values[:, 2])
        figure.colorbar(drawn, ax=axis).set_label(labels[2], parse_math=False)
    return figure
