"""How much was done, counted instead of timed: nodes of search trees, and linear programs.

Counts do not depend on the machine or its load, so tests and benchmarks compare them. The counts are of this
process: solves that run at the same time in several threads count together.
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

    def since(self, before: Work) -> Work:
        """What was done after `before`."""
        return Work(self.nodes - before.nodes, self.lps - before.lps)


_total = Work()


def total() -> Work:
    """Everything that this process has counted so far."""
    return _total


def count(nodes: int = 0, lps: int = 0) -> None:
    """Add to the counts."""
    global _total
    _total = Work(_total.nodes + nodes, _total.lps + lps)
