"""Large arrays piece by piece: what is made of a piece stays near the core, and nothing as large is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

NUMBERS = 1 << 15
"""In a piece: a quarter of a megabyte in float64, of which a core's cache holds several."""


def pieces(blocks: int, width: int) -> Iterator[slice]:
    """All blocks in their order, some at a time.

    >>> from dovetail.core.pieces import pieces
    >>> [(some.start, some.stop) for some in pieces(10_000, 9)]
    [(0, 3640), (3640, 7280), (7280, 10000)]
    """
    size = max(1, NUMBERS // max(1, width))
    for first in range(0, blocks, size):
        yield slice(first, min(first + size, blocks))


def piece_of(numbers: NDArray[Any], some: slice) -> NDArray[Any]:
    """Of numbers that broadcast to (blocks, width): those of some blocks, or those that all have."""
    return numbers[some] if numbers.ndim and len(numbers) > 1 else numbers
