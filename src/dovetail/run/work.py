"""How much was done, counted instead of timed: nodes of search trees, linear programs, evaluations.

Counts do not depend on the machine or its load, so tests and benchmarks compare them. The counts are of this
process: solves that run at the same time in several threads count together.
"""

from __future__ import annotations

from dataclasses import dataclass

LP, NODE, EVALUATION = 3e-3, 3e-4, 2e-6
"""Seconds that each takes, as a rule of thumb: within ten times of what was seen on the zoo."""


@dataclass(frozen=True)
class Work:
    """What one solve has counted."""

    nodes: int = 0
    """Of all search trees: ours and those inside the MIP engines."""
    lps: int = 0
    """Linear programs that HiGHS solved outside a MIP."""
    evaluations: int = 0
    """Samples that predictors were asked about."""

    def since(self, before: Work) -> Work:
        """What was done after `before`."""
        evaluations = self.evaluations - before.evaluations
        return Work(self.nodes - before.nodes, self.lps - before.lps, evaluations)

    @property
    def effort(self) -> float:
        """About how many seconds that is on any machine: a clock that does not depend on its load."""
        return LP * self.lps + NODE * self.nodes + EVALUATION * self.evaluations


_total = Work()


def total() -> Work:
    """Everything that this process has counted so far."""
    return _total


def count(nodes: int = 0, lps: int = 0, evaluations: int = 0) -> None:
    """Add to the counts."""
    global _total
    _total = Work(_total.nodes + nodes, _total.lps + lps, _total.evaluations + evaluations)
