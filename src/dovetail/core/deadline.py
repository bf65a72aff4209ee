"""The end of the running solve, for computations that have no budget.

A batch of bounds is a hundred short steps of torch or numpy, which may take seconds on a busy machine. Each
step calls `require_time`; when the solve should have ended, `OutOfTime` ends the whole batch. Outside the
search of a solve, and in other threads, the call does nothing: a check or a certificate is always finished.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

GRACE = 0.5
"""Seconds after the end in which a computation may continue: most batches finish in this time, and their
results are kept."""


class OutOfTime(BaseException):
    """Raised inside work that must end now. Not an `Exception`, so that handlers of errors let it pass."""


_late: ContextVar[Callable[[], float]] = ContextVar("late", default=lambda: -math.inf)


def require_time(seconds: float = 0.0) -> None:
    """Raise `OutOfTime` if the solve in this thread should have ended, or will end within `seconds`.

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
    """Computations inside must end; `late` returns by how many seconds the solve is late."""
    before = _late.set(late)
    try:
        yield
    finally:
        _late.reset(before)
