"""Where lines of the log go: a stream, a terminal with a live line, Python's `logging`.

What is written is a function of the width, since a terminal of 60 columns and a file of 79 show the same
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
"""Of checks that passed and failed, where the encoding has no better ones."""

Rendering = Callable[[int], Iterable[str]]
"""Lines of at most so many columns."""


MOST = 79
"""Columns of the widest line: what an old terminal, a mail and a diff show without breaking it."""
LEAST = 20
"""Columns that lines are made for in the narrowest terminal: with fewer there is no room for a number."""


class Outlet(ABC):
    """One place that the log is written to."""

    live = False
    """Whether it has a line that shows that work is going on."""

    @abstractmethod
    def write(self, rendering: Rendering, style: str = "") -> None:
        """Write lines; `style` is what they are, for outlets that show it: section, warning or nothing."""

    def show(self, line: str) -> None:  # noqa: B027
        """Put this on the live line, where there is one."""

    def close(self) -> None:  # noqa: B027
        """Nothing more comes."""


class PlainOutlet(Outlet):
    """Lines on a stream. What its encoding cannot say becomes a question mark."""

    def __init__(self, stream: TextIO, *, owned: bool = False) -> None:
        self._stream, self._owned = stream, owned

    def write(self, rendering: Rendering, style: str = "") -> None:
        """Write and flush."""
        encoding = getattr(self._stream, "encoding", None)
        for line in rendering(MOST if self._owned else width_of(self._stream)):
            print(encodable(line, encoding), file=self._stream, flush=True)

    def close(self) -> None:
        """A file that was opened for the log is closed with it."""
        if self._owned:
            self._stream.close()


class LoggerOutlet(Outlet):
    """Records of a logger, one per line; its handlers are the program's own."""

    def __init__(self, logger: logging.Logger, level: int) -> None:
        self._logger, self._level = logger, level

    def write(self, rendering: Rendering, style: str = "") -> None:
        """Log; a warning as one, if the program has set logging up: else Python would print it."""
        warning = style == "warning" and self._logger.hasHandlers()
        for line in rendering(MOST):
            self._logger.log(logging.WARNING if warning else self._level, "%s", line)


def encodable(text: str, encoding: str | None) -> str:
    """The text, with a question mark for what this encoding cannot say."""
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
    """Whether somebody may be watching it; a stream that fails to say so is none."""
    try:
        return bool(stream.isatty())
    except Exception:  # closed, or somebody's own class without it
        return False


def width_of(stream: TextIO) -> int:
    """Columns of a line there: at most `MOST`, and one fewer than the terminal has, which may break a full
    one. It is asked before each line, since windows change."""
    columns = [MOST + 1]
    stated = os.environ.get("COLUMNS", "")
    if stated.isdecimal() and int(stated) > 0:
        columns.append(int(stated))
    if is_terminal(stream):
        with suppress(OSError, ValueError, AttributeError):  # it does not say how wide it is
            columns.append(os.get_terminal_size(stream.fileno()).columns or MOST + 1)
    return max(min(columns) - 1, LEAST)
