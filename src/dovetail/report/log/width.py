"""How many columns a line of the log may have."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TextIO

MOST = 79
"""Columns of the widest line: what an old terminal, a mail and a diff show without breaking it."""
LEAST = 20
"""Columns that lines are made for in the narrowest terminal: with fewer there is no room for a number."""


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
