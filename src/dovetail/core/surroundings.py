"""What is set around a solve and put back after it: threads, gradients, Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dovetail.core.budget import Budget, StopReason


@contextmanager
def threads(count: int) -> Iterator[None]:
    """The number of threads of torch and of the linear algebra; engines are told when they are loaded.

    Without the second, OpenBLAS wakes all cores for every product of two long vectors.
    """
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(limits=count):
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def gradients() -> Iterator[None]:
    """Gradients work inside, even where the caller has switched them off."""
    import torch

    with torch.inference_mode(False), torch.enable_grad():
        yield


@contextmanager
def interrupts(budget: Budget) -> Iterator[None]:
    """The first Ctrl-C ends the search and keeps its best point; the second leaves at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        if budget.stopped is not None:
            raise KeyboardInterrupt
        budget.stop(StopReason.INTERRUPT)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)
