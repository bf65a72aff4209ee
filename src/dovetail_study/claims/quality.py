"""What the points of some runs are worth: seconds say nothing without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dovetail_study.best_known import Reachable, instance, worth
from dovetail_study.run import Record
from dovetail_study.statistics import constant, mean, never_improved, text, where


@dataclass(frozen=True)
class Quality:
    """Of each run the part that it reached of the best known, and of big-M's own point."""

    ENOUGH: ClassVar[float] = 0.95
    """The part that counts as no loss: one sample in 20."""
    MOST_STUCK: ClassVar[float] = 0.5
    """The part of the runs that may end where they began for their seconds to say something."""
    shares: Sequence[float]
    """Of the best known, where a reference looked."""
    beside: Sequence[float]
    """Of big-M's own point, where it found one."""
    stuck: int
    """Runs that never improved on their start, of those whose network is not constant."""
    alive: int
    """How many these are."""
    runs: int

    @classmethod
    def of(cls, mine: Sequence[Record], every: Sequence[Record]) -> Quality:
        """Of these runs, by what all runs of the experiment found."""
        scip = {instance(row): worth(row) for row in where(every, method="big-m")}
        beside = [(worth(row) or 0.0) / theirs for row in mine if (theirs := scip.get(instance(row)))]
        alive = [row for row in mine if not constant(row)]
        stuck = sum(map(never_improved, alive))
        return cls(Reachable(every).shares(mine), beside, stuck, len(alive), len(mine))

    @property
    def good(self) -> bool | None:
        """Whether nothing was lost; None where nobody knows what can be reached."""
        return mean(self.shares) >= self.ENOUGH if self.shares else None

    @property
    def fair(self) -> bool:
        """Whether the seconds can be compared with the baseline's: it has no better points for its own."""
        if self.beside:
            return mean(self.beside) >= self.ENOUGH
        return self.stuck <= self.MOST_STUCK * self.alive

    def __str__(self) -> str:
        parts = []
        if self.shares:
            parts.append(
                f"its points are worth {text(mean(self.shares))} of the best known, over {len(self.shares)} "
                f"of {self.runs} runs"
            )
        else:
            parts.append("what its points are worth is not known: no reference yet, or nothing to reach")
        if self.beside:
            parts.append(f"{text(mean(self.beside))} of big-M's own, over the {len(self.beside)} that it has")
        return ", ".join(parts)
