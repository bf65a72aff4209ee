"""State of the process that a solve sets and restores: threads, gradients, signals.

Other threads notice only `termination`. Signal handlers belong to the main thread; gradient modes and the
number of OpenMP threads belong to the thread that sets them.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from types import FrameType
from typing import Any

from dovetail.core.errors import OptionError
from dovetail.run.budget import Budget, StopReason


def cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processes(n_jobs: object) -> int:
    """`n_jobs=`: a number of processes, or -1 for one per core."""
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or (n_jobs < 1 and n_jobs != -1):
        raise OptionError(f"n_jobs is {n_jobs!r}; give a number of processes, or -1 for one per core.")
    return cores() if n_jobs == -1 else int(n_jobs)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """The number of threads of torch, numpy and `each_piece`; engines are told when loaded.

    `torch.set_num_threads` would change the number for the whole process: other threads would keep it, and of
    two solves at the same time the one that ends last would restore the wrong number. OpenMP, which torch
    computes with, keeps a number for each thread. Numpy's OpenBLAS has one number for the whole process, so
    that only a solve on the main thread sets it. It matters on a busy machine, where its threads wait for
    each other: with twelve busy processes on two cores a product of 100 x 128 by 128 x 128 took 29 ms with
    two threads and 2 ms with one.
    """
    import torch
    from threadpoolctl import threadpool_limits

    from dovetail.core.pieces import THREADS  # this module imports numpy, which is slow

    torch.get_num_threads()  # the first call in a thread sets OpenMP's number, so it must come before ours
    before = THREADS.set(count)
    try:
        on_main = threading.current_thread() is threading.main_thread()
        with threadpool_limits(limits={"openmp": count, **({"blas": count} if on_main else {})}):
            yield
    finally:
        THREADS.reset(before)


@contextmanager
def gradients() -> Iterator[None]:
    """Gradients work inside, even if the caller has switched them off."""
    import torch

    with torch.inference_mode(False), torch.enable_grad():
        yield


TERMINATED = 128 + signal.SIGTERM
"""The exit status of a process that ends because of SIGTERM, as shells count it: 143."""
SAME_REQUEST = 0.5
"""A second SIGTERM within this number of seconds counts as the same request. `timeout` sends one to the
process and another at once to its group; they usually arrive as one signal (12 of 12 times), but this is
not guaranteed."""

termination = threading.Event()
"""Set by a SIGTERM during a solve or a sweep: the next solve ends the process."""


class Interrupts:
    """Ctrl-C and SIGTERM from the first moment of a solve to its last.

    The first signal ends the search, and the solve returns its best point. A second Ctrl-C raises
    KeyboardInterrupt; a second SIGTERM ends the process at once, as it does without a handler. After a
    SIGTERM the next solve of the process raises SystemExit(143): a loop of solves ends. A solve inside the
    callback of another one is part of that one. Outside the main thread Python delivers no signals, so no
    handler is set there.

    `at_once` is for work without a budget, for example a sweep: SIGTERM then raises KeyboardInterrupt, as
    Ctrl-C does by default.
    """

    def __init__(self, *, at_once: bool = False) -> None:
        self.heard = 0
        """Number of signals received, of both kinds."""
        self.terminated = False
        """Whether one of them was SIGTERM."""
        self._at_once = at_once
        self._began = time.perf_counter()
        self._terminated_at = math.inf
        self._budget: Budget | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        numbers = (signal.SIGTERM,) if self._at_once else (signal.SIGINT, signal.SIGTERM)
        on_main = threading.current_thread() is threading.main_thread()
        handlers = {number: signal.getsignal(number) for number in numbers if on_main}
        outer = next(filter(None, map(_interrupts_of, handlers.values())), None)
        if outer is not None:
            self.heard, self.terminated = outer.heard, outer.terminated
            self._terminated_at = outer._terminated_at
        elif termination.is_set():
            raise SystemExit(TERMINATED)
        for number, before in handlers.items():
            if _may_be_replaced(number, before):
                self._before[number] = before
                signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *trouble: object) -> None:
        for number, before in self._before.items():
            if signal.getsignal(number) == self._on_signal:  # unless a callback has set another handler
                signal.signal(number, before)

    @property
    def seconds(self) -> float:
        """Seconds since the solve was called."""
        return time.perf_counter() - self._began

    def stop(self, budget: Budget) -> None:
        """From now on an interrupt stops `budget`; an earlier one stops it at once."""
        self._budget = budget
        if self.heard:
            budget.stop(StopReason.INTERRUPT)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM and not self._is_new_request():
            return
        self.heard += 1
        outer = self._before[number]
        if _interrupts_of(outer) is not None:  # a solve in the callback of another
            outer(number, frame)
        if self._at_once:
            raise KeyboardInterrupt
        if self._budget is None:  # libraries are being imported: an import must not be interrupted
            return
        if number == signal.SIGINT and self.heard > 1:
            raise KeyboardInterrupt
        self._budget.stop(StopReason.INTERRUPT)

    def _is_new_request(self) -> bool:
        """Whether this SIGTERM is the first of the solve; a second one ends the process."""
        now = time.monotonic()
        if not self.terminated:
            self.terminated, self._terminated_at = True, now
            termination.set()
            return True
        if now - self._terminated_at > SAME_REQUEST:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        return False


def _interrupts_of(handler: Any) -> Interrupts | None:
    """The solve that a signal handler belongs to, if any."""
    owner = getattr(handler, "__self__", None)
    return owner if isinstance(owner, Interrupts) else None


def _may_be_replaced(number: int, before: Any) -> bool:
    """Whether a solve may set its own handler: ignored signals, handlers set from C, and a user's handler of
    SIGTERM are left alone."""
    if _interrupts_of(before) is not None:
        return True
    return before is signal.SIG_DFL or (number == signal.SIGINT and callable(before))
