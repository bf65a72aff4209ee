"""The decision in a few lines: what a person wants to see first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dovetail.cli.one_line import one_line

if TYPE_CHECKING:
    from dovetail.run.result import Result

MOST = 20
"""Columns that are shown: a screen has room for them besides the log."""
LONGEST = 48
"""Characters of a name: with its number it fits on the narrowest of terminals."""
SMALLEST = 1e-9
"""Smaller values count as 0, which is not shown."""


def values(result: Result) -> Iterator[str]:
    """The columns that are not 0, the first of them."""
    if result.x is None:
        return
    shown = [(_name(result, j), value) for j, value in enumerate(result.x.tolist()) if abs(value) > SMALLEST]
    width = max((len(name) for name, _ in shown[:MOST]), default=0)
    yield f"values      {len(shown):,} of {result.x.size:,} columns are not 0"
    for name, value in shown[:MOST]:
        yield f"  {name:<{width}}  {value:.8g}"
    if len(shown) > MOST:
        yield f"  ... and {len(shown) - MOST:,} more"


def _name(result: Result, j: int) -> str:
    name = one_line(f"x[{j}]" if result.names is None else result.names[j])
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."
