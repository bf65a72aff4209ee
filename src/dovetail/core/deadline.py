"""The end of the solve that runs, for computations that are handed no budget.

A batch of bounds is a hundred short steps of torch or numpy, and together they may take seconds on a busy
machine. Each step asks `require_time`; when the solve should have ended, `OutOfTime` leaves the whole batch.
Outside the search of a solve, and in other threads, nothing is asked: a check or a certificate is never left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

GRACE = 0.5
"""Seconds after the end in which a computation may go on: most batches end by themselves until then, and what
they prove is kept."""


class OutOfTime(BaseException):
    """Raised deep inside work that must end now. No `Exception`: nobody may take it for trouble of theirs."""


_late: ContextVar[Callable[[], float]] = ContextVar("late", default=lambda: -math.inf)


def require_time(seconds: float = 0.0) -> None:
    """Raise `OutOfTime` when the solve in this thread should have ended a while before `seconds` are over.

    >>> from dovetail.core.deadline import OutOfTime, deadline, require_time
    >>> require_time(seconds=100.0)  # there is no solve
    >>> with deadline(lambda: 3.0):
    ...     try:
    ...         require_time()
    ...     except OutOfTime:
    ...         print("three seconds late")
    three seconds late
    """
    if _late.get()() + seconds > GRACE:
        raise OutOfTime


@contextmanager
def deadline(late: Callable[[], float]) -> Iterator[None]:
    """What is computed inside has to end; `late` says by how many seconds it should have ended before."""
    before = _late.set(late)
    try:
        yield
    finally:
        _late.reset(before)
