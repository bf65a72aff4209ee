"""How much was done, counted instead of timed: nodes of search trees, linear programs, and effort.

Counts do not depend on the machine or its load, so tests and benchmarks compare them. Effort is a clock made
of counts: who counts something says about how many seconds it takes. The counts are of this process: solves
that run at the same time in several threads count together.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """What one solve has counted."""

    nodes: int = 0
    """Of all search trees: ours and those inside the MIP engines."""
    lps: int = 0
    """Linear programs that HiGHS solved outside a MIP."""
    effort: int = 0
    """About how many microseconds all of it takes; whole ones, so that sums are exact. What a step takes was
    fitted to 468 turns of parts on 74 problems: four turns of five took 0.8 to 3 times as long."""

    def since(self, before: Work) -> Work:
        """What was done after `before`."""
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
    """Seconds of a linear program with so many entries in its matrix, and what Python does around it."""
    return 6e-4 + 7e-7 * entries + iterations * (2.6e-5 + 1.1e-10 * entries)


def effort_of_mip(iterations: int, entries: int = 0) -> float:
    """Seconds of a MIP with so many simplex iterations in all its nodes; entries where they are known."""
    return 3.4e-3 + iterations * (1.6e-4 + 4.8e-9 * entries)
