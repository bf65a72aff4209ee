"""What is known to be reachable on an instance: the best verified point of any method.

A method is judged against that, not against another method that was stopped half-way. Where no proof
says that nothing better exists, the best known point can only be beaten: what falls short of it falls
short of the optimum too, what reaches it may still do so. An instance on which nobody but the contestants
themselves has been at work says nothing: there the best of them would be called perfect.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dovetail_study.run import Record
from dovetail_study.statistics import where

INSTANCE = ("experiment", "network", "n", "budgets", "init", "grid", "seed")
"""The fields that tell one instance from another; rho and step size are settings of a method."""
REFERENCES = ("auto",)
"""Methods that are run for the sake of a good point, not as contestants."""
SAME = 1e-6
"""Objectives within this part of each other are the same: the tolerance of the check."""


DIGITS = 4
"""Of a network's spread, by which networks are told apart: training from one seed on two kinds of machine
gave spreads that differ by 1e-7 of them where the network is the same to rounding, by 1e-3 where not."""


def instance(row: Record) -> tuple[Any, ...]:
    """Which problem a row is about: the fields that choose it, and the network that came of training."""
    spread = row.get("spread")
    return (*_chosen(row), None if spread is None else round(spread, DIGITS))


def _chosen(row: Record) -> tuple[Any, ...]:
    return tuple(row.get(field) for field in INSTANCE)


def divided(rows: Iterable[Record]) -> int:
    """How many instances came out with several networks: their runs cannot all be compared."""
    networks: dict[tuple[Any, ...], set[Any]] = {}
    for row in rows:
        networks.setdefault(_chosen(row), set()).add(instance(row)[-1])
    return sum(len(each - {None}) > 1 for each in networks.values())


Pairs = list[tuple[Record, Record]]


def pairs(rows: Sequence[Record], method: str, other: str) -> Pairs:
    """Rows of two methods on the same instance."""
    partner = {instance(row): row for row in where(rows, method=other)}
    return [(row, partner[instance(row)]) for row in where(rows, method=method) if instance(row) in partner]


def worth(row: Record) -> float | None:
    """What the verified point of a run is worth: potable samples on water, else the objective.

    Larger is better in both problems. None where the method found no point of its own.
    """
    value = row["potable"] if row.get("potable") is not None else row.get("objective")
    return float(value) if row.get("found") and value is not None else None


@dataclass(frozen=True)
class BestKnown:
    """The best verified point of an instance."""

    value: float
    method: str
    """Whose it is; the first one's where several have it."""
    proved: bool
    """Whether a method proved that nothing better exists, and no verified point says otherwise."""
    ahead: bool
    """Whether a reference's point is better than every contestant's: none of them is judged by itself."""
    bound: float
    """No point is worth more: its own value where that is proved, else the least bound any method proved."""


class Reachable:
    """The best known of every instance in some rows that a reference looked into, or that is proved."""

    def __init__(self, rows: Iterable[Record], references: Collection[str] | None = REFERENCES) -> None:
        """`references=None`: the best of the rows counts wherever it comes from."""
        self._best: dict[tuple[Any, ...], BestKnown] = {}
        by_instance: dict[tuple[Any, ...], list[tuple[float, Record]]] = {}
        for row in rows:
            value = worth(row)
            if value is not None:
                by_instance.setdefault(instance(row), []).append((value, row))
        for key, points in by_instance.items():
            best = max(points, key=lambda point: point[0])
            room = SAME * max(1.0, abs(best[0]))
            proved = any(row.get("status") == "optimal" and value >= best[0] - room for value, row in points)
            others = [value for value, row in points if row["method"] not in REFERENCES]
            ahead = best[1]["method"] in REFERENCES and best[0] > max(others, default=-math.inf) + room
            looked_into = references is None or any(row["method"] in references for _, row in points)
            if proved or looked_into:
                bounds = [row["bound"] for _, row in points if row.get("bound_kind") == "proven"]
                bound = best[0] if proved else min(bounds, default=math.inf)
                self._best[key] = BestKnown(best[0], best[1]["method"], proved, ahead, bound)

    def of(self, row: Record) -> BestKnown | None:
        """The best known on this row's instance; None where none has a point, or no reference looked."""
        return self._best.get(instance(row))

    def share(self, row: Record) -> float | None:
        """What part of the best known a run reached, 0 without a point; None where nothing is reachable."""
        best = self.of(row)
        return (worth(row) or 0.0) / best.value if best is not None and best.value > 0 else None

    def least_share(self, row: Record) -> float | None:
        """The part of the optimum that a run has for certain: that of the least proven bound."""
        best = self.of(row)
        return (worth(row) or 0.0) / best.bound if best is not None and best.bound > 0 else None

    def shares(self, rows: Iterable[Record]) -> list[float]:
        """The shares of the rows that have one."""
        return [part for row in rows if (part := self.share(row)) is not None]

    def values(self, rows: Iterable[Record]) -> list[float]:
        """The best known of each row's instance."""
        return [best.value for row in rows if (best := self.of(row)) is not None]

    def known(self, row: Record) -> bool:
        """Whether a reference looked into this row's instance, or it is proved."""
        return self.of(row) is not None

    def owners(self) -> str:
        """Whose the best known points are, such as "auto 12, big-m 3"."""
        counts = Counter(best.method for best in self._best.values())
        return ", ".join(f"{method} {count}" for method, count in counts.most_common())

    def proved(self, row: Record) -> bool:
        """Whether the best known on this row's instance is the optimum."""
        best = self.of(row)
        return best is not None and best.proved

    def sound(self, row: Record) -> bool:
        """Whether the best known here is no contestant's own: proved, or a reference is ahead of all."""
        best = self.of(row)
        return best is not None and (best.proved or best.ahead)
