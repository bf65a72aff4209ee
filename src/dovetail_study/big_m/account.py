"""What one run of the baseline takes, kept as it goes: seconds of writing and of solving, memory, size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dovetail.run.memory import MemoryWatch
from dovetail.run.stopwatch import Stopwatch
from dovetail.run.written_model import ModelEnd, WrittenModel


class Account:
    """Filled while the model is written and solved; settled when it ends."""

    def __init__(self, stopwatch: Stopwatch, memory: MemoryWatch) -> None:
        self._stopwatch = stopwatch
        self.memory = memory
        self._solving_seconds: float | None = None
        self.size: tuple[int, int] | None = None
        """Variables and constraints, once all are written."""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Count the body as writing."""
        with self._stopwatch.measure("build"):
            yield

    @contextmanager
    def solving(self) -> Iterator[None]:
        """Count the body as solving, but for the checks of points, which run inside it."""
        stopwatch = self._stopwatch
        engine, check = stopwatch.read("engine"), stopwatch.read("check")
        try:
            with stopwatch.measure("engine"):
                yield
        finally:
            stopwatch.deduct("engine", stopwatch.read("check") - check)
            self._solving_seconds = stopwatch.read("engine") - engine

    @property
    def built(self) -> str:
        """What was written, in words."""
        variables, constraints = self.size or (0, 0)
        seconds = self._stopwatch.read("build")
        return f"{variables:,} variables and {constraints:,} constraints written in {seconds:.1f} s"

    def shortage(self, while_what: str) -> str:
        """That memory ran out, in words, and what helps."""
        watch = self.memory
        helps = (
            "the machine has no more to give" if watch.bound_by_machine else "BigM(memory_limit=) gives more"
        )
        return f"out of memory: {watch} while {while_what} ({helps})"

    def settled(self, end: ModelEnd, said: str | None = None) -> WrittenModel:
        """The record of it."""
        self.memory.look()
        variables, constraints = self.size or (None, None)
        return WrittenModel(
            end,
            self._stopwatch.read("build"),
            self._solving_seconds,
            self.memory.peak,
            variables,
            constraints,
            said,
        )
