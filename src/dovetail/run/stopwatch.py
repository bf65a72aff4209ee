"""Where the time goes: named timers that are cheap enough to stay on, and what was counted meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

from dovetail.run import work


class Stopwatch:
    """Adds up seconds under names."""

    def __init__(self) -> None:
        self.totals: dict[str, float] = {}
        self.now: Callable[[], float] = time.perf_counter
        """The clock of what is at work: that of a computation stands still while others have a turn."""
        self._before = work.total()

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Add the time of the `with` body to `name`."""
        start = self.now()
        try:
            yield
        finally:
            self.totals[name] = self.totals.get(name, 0.0) + self.now() - start

    def deduct(self, name: str, seconds: float) -> None:
        """Take off `name` what was measured under another name meanwhile."""
        self.totals[name] -= seconds

    @property
    def work(self) -> work.Work:
        """Nodes and linear programs since this stopwatch was made."""
        return work.total().since(self._before)

    def read(self, name: str) -> float:
        """Seconds under `name` so far."""
        return self.totals.get(name, 0.0)


@dataclass(frozen=True)
class Profile:
    """Seconds of one solve by kind of work. They add up to the whole."""

    engine: float = 0.0
    """MIP, QP and LP solves of the MIP step."""
    network: float = 0.0
    """Forward and backward passes of the network step."""
    subsolver: float = 0.0
    """The network step's own arithmetic: steps, projections, linear algebra."""
    check: float = 0.0
    """Completing and checking candidates, the LPs of the completion included."""
    rest: float = 0.0
    """Everything else: set-up, multipliers, trace, log."""

    @classmethod
    def of(cls, stopwatch: Stopwatch, total: float) -> Profile:
        """The five timers from a stopwatch that measured "engine", "network", "nn" and "check"."""
        engine, network = stopwatch.read("engine"), stopwatch.read("network")
        subsolver = max(0.0, stopwatch.read("nn") - network)
        check = stopwatch.read("check")
        return cls(engine, network, subsolver, check, max(0.0, total - engine - network - subsolver - check))

    def shares(self) -> dict[str, float]:
        """Each timer's part of the whole, between 0 and 1."""
        values = {field.name: float(getattr(self, field.name)) for field in fields(self)}
        total = sum(values.values()) or 1.0
        return {name: value / total for name, value in values.items()}
