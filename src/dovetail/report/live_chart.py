"""`progress=True`: the chart of solutions and bounds in the cell of a notebook, while the solve runs.

It is drawn again when something was found, and otherwise every few seconds; drawing takes at most a twentieth
of the time.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from dovetail.report.matplotlib_plot import figure_of
from dovetail.report.page.course import Course

WIDTH = 7.0
"""In inches."""
IDLE, SHARE = 5.0, 0.05
"""Seconds between two drawings without news, and the largest share of the time that drawing takes."""


def live_chart() -> Callable[[Any], None] | None:
    """A function for `progress=` that draws in the cell of a notebook; None if no notebook is running."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    shown = import_module("IPython.display")
    return LiveChart(shown.HTML, shown.display)


class LiveChart:
    """Draws the course of a solve, again and again in one place."""

    def __init__(self, html: Callable[[str], Any], display: Callable[..., Any]) -> None:
        self._html, self._display = html, display
        self._handle: Any = None
        self._seen, self._next = (0, 0), 0.0

    def __call__(self, event: Any) -> None:
        """Draw, if it is time."""
        begin, found = time.monotonic(), (len(event.trace.incumbents), len(event.trace.bounds))
        if begin < self._next or (found == self._seen and begin < self._next + IDLE):
            return
        shown = self._html(self._drawn(event))
        if self._handle is None:
            self._handle = self._display(shown, display_id=True)
        else:
            self._handle.update(shown)
        self._seen, now = found, time.monotonic()
        self._next = now + (now - begin) / SHARE

    def _drawn(self, event: Any) -> str:
        """The chart as SVG, with a line of text."""
        course = Course([*event.trace.incumbents], [*event.trace.bounds], max(event.seconds, 1e-3), "")
        file = io.StringIO()
        figure_of(course, [], WIDTH).savefig(file, format="svg")
        gap = "" if event.gap is None else f", gap {100 * event.gap:.3g} %"
        best = "no solution yet" if event.x is None else f"objective {event.objective:.6g}"
        return f"<div>{event.seconds:.0f} s: {best}{gap}</div>{file.getvalue()}"
