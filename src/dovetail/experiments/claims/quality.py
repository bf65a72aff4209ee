"""What the points of some runs are worth: seconds say nothing without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dovetail.experiments.best_known import Reachable, instance, worth
from dovetail.experiments.run import Record
from dovetail.experiments.statistics import mean, text, where


@dataclass(frozen=True)
class Quality:
    """Of each run the part that it reached of the best known, or of big-M's own point."""

    ENOUGH: ClassVar[float] = 0.95
    """The part that counts as no loss: one sample in 20."""
    shares: Sequence[float]
    runs: int

    @classmethod
    def of(cls, mine: Sequence[Record], every: Sequence[Record]) -> Quality:
        """Of these runs, by what all runs of the experiment found."""
        reachable = Reachable(every)
        scip = {instance(row): worth(row) for row in where(every, method="big-m")}
        shares = []
        for row in mine:
            part, theirs = reachable.share(row), scip.get(instance(row))
            if part is None and theirs is not None and theirs > 0:
                part = (worth(row) or 0.0) / theirs
            if part is not None:
                shares.append(part)
        return cls(shares, len(mine))

    @property
    def good(self) -> bool | None:
        """Whether nothing was lost; None where nobody knows what can be reached."""
        return mean(self.shares) >= self.ENOUGH if self.shares else None

    def __str__(self) -> str:
        if not self.shares:
            return "what its points are worth is not known: no reference yet, or nothing to reach"
        return (
            f"its points are worth {text(mean(self.shares))} of the best known or big-M's, over "
            f"{len(self.shares)} of {self.runs} runs"
        )
