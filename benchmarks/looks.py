"""The longest stretches of a solve in which nobody looks at the clock, and what was computed in them."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from types import FrameType

from dovetail.run.budget import Budget

SAMPLING = 0.05
"""Seconds between two looks at the stack."""
LEAST = 0.25
"""Seconds of a stretch that is kept."""
FRAMES = 6
"""Of a stack, the innermost ones of ours."""


@dataclass(frozen=True)
class Stretch:
    """From one look at the clock to the next."""

    begin: float
    """Seconds after the beginning of the solve."""
    wall: float
    cpu: float
    stack: str
    """What was seen most often."""


class Looks:
    """Watches every budget of this process, from the main thread, until it is closed."""

    def __init__(self) -> None:
        self.stretches: list[Stretch] = []
        self._main = threading.main_thread().ident or 0
        self._seen: Counter[str] = Counter()
        self._track: list[tuple[float, float]] = []
        self._began = self._wall = time.perf_counter()
        self._cpu, self._ends = time.process_time(), threading.Event()
        self._seconds = Budget.seconds
        plain = Budget.seconds.fget
        assert plain is not None

        def seconds(budget: Budget) -> float:
            if threading.get_ident() == self._main:
                self._look()
            return float(plain(budget))

        Budget.seconds = property(seconds)  # type: ignore[assignment, method-assign]
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()

    def close(self) -> None:
        """The solve has returned."""
        self._look()
        self._ends.set()
        self._sampler.join()
        Budget.seconds = self._seconds  # type: ignore[method-assign]

    def cpu_after(self, seconds: float) -> float:
        """Of this process, from so many seconds after the beginning on."""
        before = [cpu for wall, cpu in self._track if wall - self._began <= seconds]
        return time.process_time() - before[-1] if before else 0.0

    def _look(self) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        if wall - self._wall > LEAST:
            stack = self._seen.most_common(1)[0][0] if self._seen else ""
            self.stretches.append(
                Stretch(self._wall - self._began, wall - self._wall, cpu - self._cpu, stack)
            )
        self._seen.clear()
        self._wall, self._cpu = wall, cpu

    def _sample(self) -> None:
        while not self._ends.wait(SAMPLING):
            self._track.append((time.perf_counter(), time.process_time()))
            frame = sys._current_frames().get(self._main)
            if frame is not None:
                self._seen[_told(frame)] += 1


def _told(frame: FrameType | None) -> str:
    names: list[str] = []
    while frame is not None and len(names) < FRAMES:
        code = frame.f_code
        if "dovetail" in code.co_filename or not names:
            names.append(f"{code.co_filename.rpartition('/')[2]}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return " < ".join(names)
