"""Counts of work in place of seconds: nodes of search trees, linear programs, and effort.

Counts do not depend on the machine or its load, so tests and benchmarks compare them. Effort is a time
estimated from counts: each count is multiplied by the seconds that one unit takes. The counts belong to the
process: solves that run at the same time in several threads count together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Work:
    """The counts of one solve."""

    nodes: int = 0
    """Nodes of all search trees: dovetail's and those inside the MIP engines."""
    lps: int = 0
    """Linear programs that HiGHS solved outside a MIP."""
    effort: int = 0
    """About how many microseconds the counted work takes; integers, so that sums are exact. The seconds per
    unit were fitted to 468 turns of parts on 74 problems: four turns of five took 0.8 to 3 times as long."""

    def since(self, before: Work) -> Work:
        """The counts since `before`."""
        return Work(self.nodes - before.nodes, self.lps - before.lps, self.effort - before.effort)


_total = Work()


def total() -> Work:
    """Everything that this process has counted so far."""
    return _total


def count(nodes: int = 0, lps: int = 0, effort: float = 0.0) -> None:
    """Add to the counts; effort in seconds."""
    global _total
    _total = Work(_total.nodes + nodes, _total.lps + lps, _total.effort + round(1e6 * effort))


def effort_of_lp(iterations: int, entries: int) -> float:
    """Seconds of a linear program with this number of matrix entries, with the Python code around it."""
    return 6e-4 + 7e-7 * entries + iterations * (2.6e-5 + 1.1e-10 * entries)


def effort_of_mip(iterations: int, entries: int = 0) -> float:
    """Seconds of a MIP with this number of simplex iterations in all its nodes; entries where they are
    known."""
    return 3.4e-3 + iterations * (1.6e-4 + 4.8e-9 * entries)


CLOCK: ContextVar[Callable[[], float]] = ContextVar("clock", default=time.perf_counter)
"""Returns the seconds of the current computation: its clock stops while others have a turn."""


class Stopwatch:
    """Adds up seconds under names."""

    def __init__(self) -> None:
        self.totals: dict[str, float] = {}
        self._before = total()

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Add the time of the `with` body to `name`."""
        now = CLOCK.get()
        start = now()
        try:
            yield
        finally:
            self.totals[name] = self.totals.get(name, 0.0) + now() - start

    def deduct(self, name: str, seconds: float) -> None:
        """Subtract from `name` the time that was measured under another name meanwhile."""
        self.totals[name] -= seconds

    @property
    def work(self) -> Work:
        """Nodes and linear programs since this stopwatch was made."""
        return total().since(self._before)

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
    def of(cls, stopwatch: Stopwatch, seconds: float) -> Profile:
        """The five timers from a stopwatch that measured "engine", "network", "nn" and "check"."""
        engine, network = stopwatch.read("engine"), stopwatch.read("network")
        subsolver = max(0.0, stopwatch.read("nn") - network)
        check = stopwatch.read("check")
        return cls(
            engine, network, subsolver, check, max(0.0, seconds - engine - network - subsolver - check)
        )

    def shares(self) -> dict[str, float]:
        """Each timer's part of the whole, between 0 and 1."""
        values = {field.name: float(getattr(self, field.name)) for field in fields(self)}
        whole = sum(values.values()) or 1.0
        return {name: value / whole for name, value in values.items()}
