"""What is set around a solve and put back after it: threads, gradients, Ctrl-C.

Nothing here is seen by another thread. Signal handlers belong to the main thread; gradient modes and
the number of OpenMP's threads belong to the thread that sets them.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from dovetail.run.budget import Budget, StopReason


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def threads(count: int) -> Iterator[None]:
    """The number of threads of torch and of `each_piece`, for this thread only; engines are told when loaded.

    `torch.set_num_threads` would do it for the whole process: what other threads begin meanwhile would keep
    our number for ever, and of two solves at once the one that ends last would put back the other's. OpenMP,
    which torch computes with, keeps a number for each thread. The threads of numpy's OpenBLAS are left
    alone: it has one number for all, and a solve makes few products that are long enough to wake them.
    """
    import torch
    from threadpoolctl import threadpool_limits

    from dovetail.core.pieces import THREADS  # it has numpy, which nobody waits for to be told of options

    torch.get_num_threads()  # the first call in a thread sets OpenMP's number: before ours, not over it
    before = THREADS.set(count)
    try:
        with threadpool_limits(limits=count, user_api="openmp"):
            yield
    finally:
        THREADS.reset(before)


@contextmanager
def gradients() -> Iterator[None]:
    """Gradients work inside, even where the caller has switched them off."""
    import torch

    with torch.inference_mode(False), torch.enable_grad():
        yield


class Interrupts:
    """Ctrl-C and a request to terminate, heard from the first moment of a solve to its last.

    The first one ends the search, and its best point is returned; the second leaves at once. Outside the
    main thread Python delivers no signals, and nothing is set.
    """

    def __init__(self) -> None:
        self.heard = 0
        self._budget: Budget | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.getsignal(number)
                if _ours_to_hear(number, before):
                    self._before[number] = before
                    signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *trouble: object) -> None:
        for number, before in self._before.items():
            if signal.getsignal(number) == self._on_signal:  # else a callback of the user's has set another
                signal.signal(number, before)

    def stop(self, budget: Budget) -> None:
        """From now on an interrupt stops `budget`; at once if there was one before."""
        self._budget = budget
        if self.heard:
            budget.stop(StopReason.INTERRUPT)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.heard += 1
        outer = self._before[number]
        if isinstance(getattr(outer, "__self__", None), Interrupts):  # a solve in the callback of another
            outer(number, frame)
        if self._budget is None:  # libraries are being imported: half of one is of no use to anybody
            return
        if self.heard > 1:
            raise KeyboardInterrupt
        self._budget.stop(StopReason.INTERRUPT)


def _ours_to_hear(number: int, before: Any) -> bool:
    """Who ignores a signal, or set a handler from C, is left alone; so is any handler of SIGTERM."""
    if isinstance(getattr(before, "__self__", None), Interrupts):
        return True
    return before is signal.SIG_DFL or (number == signal.SIGINT and callable(before))
