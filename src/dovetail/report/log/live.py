"""The log on a terminal: lines scroll, and a live line below shows that work continues."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.text import Text

from dovetail.report.log.outlet import Outlet, Rendering, encodable, is_terminal, width_of
from dovetail.report.log.table import whole_words

STYLES = {"section": "bold", "warning": "yellow", "": ""}
"""Styles of lines outside the table; rich ignores them if NO_COLOR is set."""


def can_be_live(stream: TextIO) -> bool:
    """Whether the terminal can move its cursor and has no other live line."""
    if isinstance(stream, FileProxy) or not is_terminal(stream):
        return False
    return not Console(file=stream).is_dumb_terminal


class LiveOutlet(Outlet):
    """Lines with a live line below; other output of the program appears above it."""

    live = True

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._shown = stream, Text("")
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._line = Live(
            self._shown, console=self._console, auto_refresh=False, transient=True, vertical_overflow="crop"
        )
        self._encoding = getattr(stream, "encoding", None)

    def write(self, rendering: Rendering, style: str = "") -> None:
        """Write above the live line."""
        for line in rendering(width_of(self._stream)):
            self._console.print(Text(encodable(line, self._encoding), STYLES.get(style, "")))

    def show(self, line: str) -> None:
        """Show the text in the live line, which appears with the first text."""
        if not self._line.is_started:
            self._line.start()
        fitting = whole_words(encodable(line, self._encoding), width_of(self._stream))
        text = Text(fitting, "dim", no_wrap=True, overflow="crop")
        self._line.update(text, refresh=True)

    def close(self) -> None:
        """Remove the live line and restore the terminal."""
        self._line.stop()
