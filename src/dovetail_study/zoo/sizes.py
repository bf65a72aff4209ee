"""Sizes of a problem: 1 is small, 2 is middle, 3 is large."""

from __future__ import annotations

from typing import TypeVar

from dovetail.core.errors import OptionError

Value = TypeVar("Value")

SIZES = (1, 2, 3)


def by_size(size: int, small: Value, middle: Value, large: Value) -> Value:
    """The one of three values that belongs to `size`."""
    if size not in SIZES:
        raise OptionError(f"size is {size!r}; give 1 (small), 2 (middle) or 3 (large).")
    return (small, middle, large)[size - 1]
