"""How many threads HiGHS has: settled by the first run in each thread, for all of its HiGHS objects.

A run that asks for another number is refused, the user's own programs' runs among them. So the number is
looked at before every run of ours, and given back when a solve ends.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import highspy


class _Scheduler(threading.local):
    threads: int | None = None
    """As our last run left it; None where the user may have run HiGHS since."""


_scheduler = _Scheduler()


def use(threads: int) -> None:
    """Let the next run in this thread have so many."""
    if _scheduler.threads != threads:
        highspy.Highs.resetGlobalScheduler(True)
        _scheduler.threads = threads


@contextmanager
def given_back() -> Iterator[None]:
    """Let whoever runs HiGHS afterwards in this thread choose anew."""
    try:
        yield
    finally:
        if _scheduler.threads is not None:
            highspy.Highs.resetGlobalScheduler(True)
            _scheduler.threads = None
