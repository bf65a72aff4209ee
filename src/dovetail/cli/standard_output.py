"""Lines for whoever reads along; a reader who has left does not change what a command does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import typer


def tell(lines: Iterable[str]) -> None:
    """Print lines; where standard output is closed or full, this and all that follows is dropped.

    ``dovetail solve ... | head`` ends with the code of the solve, and its files are whole.
    """
    try:
        for line in lines:
            typer.echo(line)
    except OSError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - Python flushes it at its end
