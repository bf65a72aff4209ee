"""Algorithm 1 iteration by iteration: how far the two blocks are apart, and the penalty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from dovetail.core.amounts import several
from dovetail.report.page.chart import (
    LOW_NARROW,
    LOW_WIDE,
    Chart,
    ChartLine,
    Figure,
    Frame,
    Stop,
    path,
    thinned,
)

SMALLEST = 1e-12
"""Residuals below it are 0 for every purpose, and have no logarithm."""
MOST = 400
"""Iterations on a chart; of more, as many at equal distances."""


class Iteration(NamedTuple):
    """What Algorithm 1 says of itself."""

    number: int
    primal: float
    dual: float
    rho: float


def iterations(trace: Sequence[Any]) -> list[Iteration]:
    """Those that had a coupling."""
    rows = [row for row in trace if row.residuals]
    return [Iteration(row.iteration, row.primal, row.dual, row.rho) for row in thinned(rows, MOST)]


def residual_figures(trace: Sequence[Any]) -> list[tuple[str, Figure]]:
    """The residuals, and rho if it moved; nothing for methods without a coupling."""
    rows = iterations(trace)
    if len(rows) < 2:
        return []
    figures = [("residual", _figure(rows, ("primal", "dual"), "Residuals"))]
    inexact = sum(not row.exact for row in trace)
    if inexact:
        figures[0][1].notes.append(
            f"{several(inexact, 'MIP step')} ended at a limit; the points were used all the same."
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
    wide, narrow = (_chart(rows, kinds, label, limits, frame) for frame in (LOW_WIDE, LOW_NARROW))
    return Figure(wide, narrow)


def _chart(
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
        Stop(x.place(row.number), f"iteration {row.number} · " + _said(row, kinds)) for row in thinned(rows)
    ]
    words = f"{label} by iteration, on a logarithmic scale. Last: {_said(rows[-1], kinds)}"
    return Chart(frame.width, frame.height, x, y, words, "iteration", lines, stops=stops)


def _said(row: Iteration, kinds: tuple[str, ...]) -> str:
    return " · ".join(f"{kind} {getattr(row, kind):.2e}" for kind in kinds)
