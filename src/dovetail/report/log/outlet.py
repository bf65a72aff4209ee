"""The outlets of the log: a stream, a terminal with a live line, Python's `logging`.

Lines are written as functions of the width, because a terminal of 60 columns and a file of 79 show the same
solve at the same time.
"""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TextIO

MARKS = {"\u2713": "+", "\u2717": "!"}
"""Marks of passed and failed checks for encodings without check marks."""

Rendering = Callable[[int], Iterable[str]]
"""Makes lines of at most the given width."""


MOST = 79
"""The largest width: fits old terminals, mails and diffs."""
LEAST = 20
"""The smallest width that lines are made for."""


class Outlet(ABC):
    """A destination of the log."""

    live = False
    """Whether it has a live line."""

    @abstractmethod
    def write(self, rendering: Rendering, style: str = "") -> None:
        """Write lines; `style` is section, warning or empty."""

    def show(self, line: str) -> None:  # noqa: B027
        """Show a text in the live line, if there is one."""

    def close(self) -> None:  # noqa: B027
        """Release the outlet."""


class PlainOutlet(Outlet):
    """Lines on a stream; characters that its encoding lacks become question marks."""

    def __init__(self, stream: TextIO, *, owned: bool = False) -> None:
        self._stream, self._owned = stream, owned

    def write(self, rendering: Rendering, style: str = "") -> None:
        """Write and flush."""
        encoding = getattr(self._stream, "encoding", None)
        for line in rendering(MOST if self._owned else width_of(self._stream)):
            print(encodable(line, encoding), file=self._stream, flush=True)

    def close(self) -> None:
        """Close the file if it was opened for the log."""
        if self._owned:
            self._stream.close()


class LoggerOutlet(Outlet):
    """Records of a logger, one per line; its handlers are the program's own."""

    def __init__(self, logger: logging.Logger, level: int) -> None:
        self._logger, self._level = logger, level

    def write(self, rendering: Rendering, style: str = "") -> None:
        """Log the lines; warnings get the level WARNING only if the program has set logging up, because
        Python would print them otherwise."""
        warning = style == "warning" and self._logger.hasHandlers()
        for line in rendering(MOST):
            self._logger.log(logging.WARNING if warning else self._level, "%s", line)


def encodable(text: str, encoding: str | None) -> str:
    """The text with question marks for characters that the encoding lacks."""
    if text.isascii() or not isinstance(encoding, str):
        return text
    try:
        text.encode(encoding)
    except LookupError:
        return text
    except UnicodeEncodeError:
        for mark, plain in MARKS.items():
            text = text.replace(mark, plain)
        return text.encode(encoding, "replace").decode(encoding, "replace")
    return text


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal; a stream without this information is not a terminal."""
    try:
        return bool(stream.isatty())
    except Exception:  # closed, or a user's own class without this method
        return False


def width_of(stream: TextIO) -> int:
    """The line width of a stream: at most `MOST`, and one less than the terminal has, because some break
    full lines. Read before each line, because windows change."""
    columns = [MOST + 1]
    stated = os.environ.get("COLUMNS", "")
    if stated.isdecimal() and int(stated) > 0:
        columns.append(int(stated))
    if is_terminal(stream):
        with suppress(OSError, ValueError, AttributeError):  # the stream does not state its width
            columns.append(os.get_terminal_size(stream.fileno()).columns or MOST + 1)
    return max(min(columns) - 1, LEAST)
