"""The number of HiGHS's threads, which the first run in each thread fixes for all of its HiGHS objects.

A run with another number is refused, including runs of the user's own programs. Therefore the number is
checked before each of our runs and released when a solve ends.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import highspy


class _Scheduler(threading.local):
    threads: int | None = None
    """The number after our last run; None if the user may have run HiGHS since."""


_scheduler = _Scheduler()


def use(threads: int) -> None:
    """Set the number of threads of the next run in this thread."""
    if _scheduler.threads != threads:
        highspy.Highs.resetGlobalScheduler(True)
        _scheduler.threads = threads


@contextmanager
def given_back() -> Iterator[None]:
    """Let the next user of HiGHS in this thread choose the number."""
    try:
        yield
    finally:
        if _scheduler.threads is not None:
            highspy.Highs.resetGlobalScheduler(True)
            _scheduler.threads = None
