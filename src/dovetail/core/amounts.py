"""How many of something, in words."""

from __future__ import annotations

from collections.abc import Sequence


def several(amount: int, one: str, more: str = "") -> str:
    """ "1 round", "2,000 rounds"."""
    return f"{amount:,} {one if amount == 1 else more or one + 's'}"


def listed(items: Sequence[str], most: int = 3) -> str:
    """The first few of them, and how many more there are.

    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"
