"""A terminal that somebody watches: lines scroll, and under them one line shows that work is going on."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.text import Text

from dovetail.report.log.layout import whole_words
from dovetail.report.log.outlet import Outlet, Rendering, encodable, is_terminal, width_of

STYLES = {"section": "bold", "warning": "yellow", "": ""}
"""How lines look that are no rows; rich leaves it out where NO_COLOR is set."""


def can_be_live(stream: TextIO) -> bool:
    """A terminal that can move its cursor, and that no other live line has taken already."""
    if isinstance(stream, FileProxy) or not is_terminal(stream):
        return False
    return not Console(file=stream).is_dumb_terminal


class LiveOutlet(Outlet):
    """Lines and a live line; what else the program prints meanwhile goes above that."""

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
        """Put this on the live line; it appears with the first one."""
        if not self._line.is_started:
            self._line.start()
        fitting = whole_words(encodable(line, self._encoding), width_of(self._stream))
        text = Text(fitting, "dim", no_wrap=True, overflow="crop")
        self._line.update(text, refresh=True)

    def close(self) -> None:
        """Take the live line away; the terminal is as it was."""
        self._line.stop()
