"""Large arrays processed piece by piece, so that intermediate results stay small and in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar

from numpy.typing import NDArray

NUMBERS = 1 << 15
"""Numbers in a piece: a quarter of a megabyte in float64, of which a core's cache holds several."""


MANY = 1 << 24
"""From this many numbers on several threads share the pieces, if allowed; with fewer they would wait."""
LARGE = 8
"""Number of pieces that a thread takes at a time, because Python's lock is held between steps."""
THREADS: ContextVar[int] = ContextVar("threads", default=1)
"""Number of threads that may be used; set by a solve (`run/environment.py`)."""
T = TypeVar("T")


def each_piece(work: Callable[[slice], T], blocks: int, width: int) -> list[T]:
    """The results of `work` for all pieces, in order; by several threads if there are many numbers.

    >>> from dovetail.core.pieces import each_piece
    >>> each_piece(lambda some: some.stop - some.start, 10_000, 9)
    [3640, 3640, 2720]
    """
    threads = THREADS.get() if blocks * width >= MANY else 1
    if threads == 1:
        return [work(some) for some in pieces(blocks, width)]
    large = list(pieces(blocks, width, times=LARGE))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, large))


def pieces(blocks: int, width: int, *, times: int = 1) -> Iterator[slice]:
    """All blocks in order, some at a time; `times` as many.

    >>> from dovetail.core.pieces import pieces
    >>> [(some.start, some.stop) for some in pieces(10_000, 9)]
    [(0, 3640), (3640, 7280), (7280, 10000)]
    """
    size = max(1, times * NUMBERS // max(1, width))
    for first in range(0, blocks, size):
        yield slice(first, min(first + size, blocks))


def piece_of(numbers: NDArray[Any], some: slice) -> NDArray[Any]:
    """The numbers of some blocks, out of numbers that broadcast to (blocks, width)."""
    return numbers[some] if numbers.ndim and len(numbers) > 1 else numbers
