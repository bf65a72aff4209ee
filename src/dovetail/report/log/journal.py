"""The log of one solve, written to several outlets.

An outlet that fails (a closed pipe, a full disk, a stream of the user's own) is given up, and the solve
continues.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import RLock
from typing import TextIO

from dovetail.report.log.heading import legend
from dovetail.report.log.outlet import MOST, LoggerOutlet, Outlet, PlainOutlet, Rendering, is_terminal
from dovetail.report.log.table import (
    RESIDUALS,
    LogColumn,
    State,
    count,
    harmless,
    head,
    line,
    number,
    rows_only,
    wrapped,
)

LOGGER = logging.getLogger("dovetail")
"""The logger that gets the lines; it has no handlers of its own."""
TURNS = "-\\|/"
"""The moving sign of the live line."""


def opened(log: TextIO | logging.Logger | None, file: TextIO | None = None) -> Journal:
    """The journal that writes to a stream or logger and to a file, if given, and to dovetail's logger if it
    is enabled: at level INFO, or at DEBUG if the lines are shown anyway, so that they do not appear twice."""
    outlets: list[Outlet] = []
    if isinstance(log, logging.Logger):
        outlets.append(LoggerOutlet(log, logging.INFO))
    elif log is not None:
        outlets.append(_shown_on(log))
    if file is not None:
        outlets.append(PlainOutlet(file, owned=True))
    level = logging.INFO if log is None else logging.DEBUG
    if log is not LOGGER and LOGGER.isEnabledFor(level):
        outlets.append(LoggerOutlet(LOGGER, level))
    return Journal(outlets)


def _shown_on(stream: TextIO) -> Outlet:
    if is_terminal(stream):
        from dovetail.report.log.live import LiveOutlet, can_be_live  # rich is slow to import

        if can_be_live(stream):
            return LiveOutlet(stream)
    return PlainOutlet(stream)


class Journal:
    """The outlets, and the state of the table."""

    def __init__(self, outlets: list[Outlet]) -> None:
        self._outlets, self._lock = outlets, RLock()
        self._columns: tuple[LogColumn, ...] | None = None
        self._explained, self._turn = False, 0
        self.failure = ""
        """Why an outlet was dropped, if one was."""

    @property
    def silent(self) -> bool:
        """Whether there is no outlet."""
        return not self._outlets

    def say(self, text: str, first: str = "", rest: str = "", style: str = "") -> None:
        """Write a text, wrapped."""
        self.write(lambda width: wrapped(text, width, first, rest), style)

    def write(self, rendering: Rendering, style: str = "") -> None:
        """Write lines that depend on the width of each outlet."""
        with self._lock:
            for outlet in tuple(self._outlets):
                self._attempt(outlet, lambda outlet: outlet.write(rendering, style))

    def row(self, columns: tuple[LogColumn, ...], state: State, *, unwatched: bool = False) -> None:
        """Write a line of the table, with a heading if the columns changed; `unwatched`: only to outlets
        without a live line."""
        with self._lock:
            self.explain(columns)
            if columns is not self._columns:
                self._columns = columns
                self.write(lambda width: [head(columns, width)])
            for outlet in tuple(self._outlets):
                if not (unwatched and outlet.live):
                    self._attempt(outlet, lambda out: out.write(lambda width: [line(columns, state, width)]))

    def explain(self, columns: tuple[LogColumn, ...]) -> None:
        """Write the legend, once."""
        with self._lock:
            if not self._explained:
                self._explained = True
                self.write(lambda width: legend(residuals=columns is RESIDUALS, width=width))

    def show(self, state: State) -> None:
        """Show the state in the live line, if there is one."""
        with self._lock:
            self._turn = (self._turn + 1) % len(TURNS)
            for outlet in tuple(self._outlets):
                if outlet.live:
                    self._attempt(outlet, lambda outlet: outlet.show(_live_line(TURNS[self._turn], state)))

    def close(self) -> None:
        """Close all outlets."""
        with self._lock:
            for outlet in tuple(self._outlets):
                self._attempt(outlet, lambda outlet: outlet.close())
            self._outlets.clear()

    def _attempt(self, outlet: Outlet, work: Callable[[Outlet], None]) -> None:
        try:
            work(outlet)
        except Exception as reason:  # any exception of the user's own stream
            self._outlets.remove(outlet)
            self.failure = f"the log could not be written ({type(reason).__name__}: {reason})"
            LOGGER.warning("%s; the solve goes on without it", self.failure)


def _live_line(turn: str, state: State) -> str:
    """The text of the live line."""
    best = number(state.incumbent) if state.incumbent == state.incumbent else "no solution yet"
    words = [f"{state.elapsed:.1f} s", state.part, f"best {best}"]
    if state.bound is not None:
        words.append(rows_only(state.bound, MOST) if state.rows_only else f"bound {number(state.bound)}")
    words.append(f"{count(state.evaluations)} evaluations")
    return harmless(f"{turn} {'  '.join(word for word in words if word)}")
