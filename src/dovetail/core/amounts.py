"""How many of something, in words."""

from __future__ import annotations


def several(amount: int, one: str, more: str = "") -> str:
    """ "1 round", "2,000 rounds"."""
    return f"{amount:,} {one if amount == 1 else more or one + 's'}"
