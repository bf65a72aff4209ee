"""Means over rows; missing values are left out and counted, never filled in.

Sums are exact (`math.fsum`): those of Python's own `sum` differ in the last digit before and since 3.12, and
a mean that lies between two roundings would then make another page of the same file.

The best known value of an instance: the best verified point of any method.

A method is compared with this value, not with another method that was stopped early. If no proof excludes a
better point, the best known can only be beaten: a point below it is also below the optimum, a point equal to
it may be. An instance that only the contestants have solved has no reference: otherwise the best of them
would count as perfect.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import stdev
from typing import Any

from dovetail_study.experiment import Record
from dovetail_study.problems.training import DEAD


def where(rows: Iterable[Record], **wanted: Any) -> list[Record]:
    """The rows with these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def distinct(rows: Iterable[Record], name: str) -> list[Any]:
    """The values of a field, in the order they first appear."""
    return list(dict.fromkeys(row[name] for row in rows if name in row))


def present(methods: Iterable[str], rows: Iterable[Record]) -> list[str]:
    """Those of the methods that have rows, in the order given."""
    there = {row["method"] for row in rows}
    return [method for method in methods if method in there]


def known(rows: Iterable[Record], name: str) -> list[float]:
    """The numbers of a field, without missing ones."""
    return [float(row[name]) for row in rows if row.get(name) is not None]


def mean(values: Sequence[float]) -> float:
    """The mean; NaN for an empty sequence."""
    return math.fsum(values) / len(values) if values else math.nan


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive numbers; NaN for an empty sequence."""
    return math.exp(mean([math.log(value) for value in values])) if values else math.nan


def average(rows: Iterable[Record], name: str) -> float:
    """The mean of a field over the rows that have it."""
    return mean(known(rows, name))


def share(rows: Sequence[Record], holds: Callable[[Record], Any]) -> float:
    """The part of the rows of which something is true; NaN of none."""
    return mean([1.0 if holds(row) else 0.0 for row in rows])


def found(row: Record) -> bool:
    """Whether the method found a verified point by itself."""
    return bool(row.get("found"))


def converged(row: Record) -> bool:
    """Whether a run ended because the blocks agreed, or nothing better exists."""
    return row.get("stop") in ("agreed", "proved")


def agreed(row: Record) -> bool:
    """Whether a run ended because the blocks agreed, which is the paper's own rule."""
    return row.get("stop") == "agreed"


def proved(row: Record) -> bool:
    """Whether a run ended because nothing better than its point exists."""
    return row.get("stop") == "proved"


def constant(row: Record) -> bool:
    """Whether the trained network is constant, so that inputs have no effect."""
    return row.get("spread") is not None and bool(row["spread"] < DEAD)


def never_improved(row: Record) -> bool:
    """Whether a loop's point is the one it started from; rows without this information are not counted."""
    return "best_at" in row and row["best_at"] is None


def stopped(row: Record) -> bool:
    """Whether a run ended at its time limit, so that the time it needs is unknown."""
    return row.get("stop") == "time"


def count_of(rows: Sequence[Record], holds: Callable[[Record], Any]) -> str:
    """A count of a total, such as "3 of 5"."""
    return f"{sum(bool(holds(row)) for row in rows)} of {len(rows)}"


def converged_in(rows: Sequence[Record]) -> str:
    """How many runs converged, and how many of these because their point was proved optimal."""
    by_proof = sum(map(proved, rows))
    return count_of(rows, converged) + (f", {by_proof} of them at a proved optimum" if by_proof else "")


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """The slope of a line through the logarithms: y grows like x to this power."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < 2:
        return math.nan
    mx, my = mean([x for x, _ in logs]), mean([y for _, y in logs])
    return math.fsum((x - mx) * (y - my) for x, y in logs) / math.fsum((x - mx) ** 2 for x, _ in logs)


def text(value: float | None, digits: int = 3) -> str:
    """A number for a table; a dash if it is missing."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean and standard deviation over seeds, such as "14.3 ± 0.6"; a single value has no deviation."""
    middle = text(mean(values), digits)
    return f"{middle} ± {text(stdev(values), 2)}" if len(values) > 1 else middle


def spread_of(rows: Iterable[Record], name: str, digits: int = 3) -> str:
    """Mean and standard deviation of a field over the rows that have it."""
    return spread(known(rows, name), digits)


class End(StrEnum):
    """The field `end` of a row; "other" is looked at more closely."""

    PROVED = "proved"
    CLAIMED = "claimed"
    """SCIP says optimal; the verified point does not meet its bound, so nothing is proved."""
    TIME = "time"
    WRITING = "writing"
    MEMORY = "memory"
    INFEASIBLE = "infeasible"
    REFUSED = "refused"
    OTHER = "other"
    UNKNOWN = "unknown"
    """The row does not state it: lines of old files have no such field."""


WORDS = {
    End.PROVED: "proved",
    End.CLAIMED: "SCIP says optimal, not confirmed",
    End.TIME: "searched to the limit",
    End.WRITING: "never finished writing",
    End.MEMORY: "out of memory",
    End.INFEASIBLE: "infeasible beside a verified point",
    End.REFUSED: "refused",
    End.OTHER: "other",
    End.UNKNOWN: "not recorded",
}
"""The words of tables and verdicts."""
DONE = ("optimal", "gaplimit")
"""SCIP's statuses after a complete solve."""

NO_MEMORY = "insufficient memory"
"""SCIP's words if memory was refused."""
ALL_OF_IT = 0.99
"""SCIP checks the clock only now and then: this fraction of its limit counts as all of it."""


def end(row: Record) -> End:
    """How the run ended, as far as the row states it."""
    said = row.get("end")
    if said == End.OTHER and row.get("status") == "optimal":
        return End.PROVED
    if said == End.OTHER and row.get("scip") in DONE:
        return End.CLAIMED
    if said == End.OTHER and NO_MEMORY in (row.get("message") or ""):
        return End.MEMORY
    return End(said) if said in set(End) else End.UNKNOWN


def spent(rows: Sequence[Record], name: str, limit: float) -> bool:
    """Whether each of these runs, and there are some, spent all of a limit by this field."""
    return bool(rows) and min(known(rows, name), default=0.0) >= ALL_OF_IT * limit


def done(row: Record) -> bool:
    """Whether SCIP finished, so that its seconds are exact and not a lower bound."""
    return end(row) in (End.PROVED, End.CLAIMED)


def searched(row: Record) -> bool:
    """Whether SCIP had its full time, or needed less: its seconds can be compared."""
    return done(row) or end(row) is End.TIME


def put_to_the_test(row: Record) -> bool:
    """Whether big-M was really put to the test: SCIP searched, or memory really ran out."""
    return searched(row) or end(row) is End.MEMORY


def tally(rows: Sequence[Record]) -> str:
    """The number of rows by kind of end, for example "3 proved, 1 out of memory (at 12 GB)"."""
    counts = Counter(map(end, rows))
    return ", ".join(f"{counts[how]} {words}{_at(how, rows)}" for how, words in WORDS.items() if counts[how])


def _at(how: End, rows: Sequence[Record]) -> str:
    if how is not End.MEMORY:
        return ""
    peaks = known([row for row in rows if end(row) is how], "memory_gb")
    return (
        f" (at {text(min(peaks))} GB and more)"
        if len(peaks) > 1
        else f" (at {text(peaks[0])} GB)"
        if peaks
        else ""
    )


def refusals(rows: Sequence[Record]) -> str:
    """Why runs were refused, in the words of the refusal up to its advice, and on which networks."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if end(row) is End.REFUSED and row.get("message"):
            reasons.setdefault(str(row["message"]).partition(";")[0], []).append(str(row.get("network")))
    return "; ".join(f"{reason} ({', '.join(dict.fromkeys(reasons[reason]))})" for reason in reasons)


INSTANCE = ("experiment", "network", "n", "budgets", "init", "grid", "seed")
"""The fields that identify an instance; rho and step size are settings of a method."""
REFERENCES = ("auto",)
"""Methods that are run for the sake of a good point, not as contestants."""
SAME = 1e-6
"""Objectives within this part of each other are the same: the tolerance of the check."""


DIGITS = 4
"""Relative difference of a network's spread by which networks are distinguished: training from one seed on
two kinds of machine gave spreads that differ by 1e-7 if the networks are equal up to rounding, by 1e-3 if
not."""


def instance(row: Record) -> tuple[Any, ...]:
    """The key of a row's problem: the fields that choose it, and the trained network."""
    spread = row.get("spread")
    return (*_chosen(row), None if spread is None else round(spread, DIGITS))


def _chosen(row: Record) -> tuple[Any, ...]:
    return tuple(row.get(field) for field in INSTANCE)


def divided(rows: Iterable[Record]) -> int:
    """The number of instances with several different trained networks, whose runs cannot all be compared."""
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
    """The value of a run's verified point: potable samples on water, otherwise the objective.

    Larger is better in both problems. None where the method found no point of its own.
    """
    value = row["potable"] if row.get("potable") is not None else row.get("objective")
    return float(value) if row.get("found") and value is not None else None


@dataclass(frozen=True)
class BestKnown:
    """The best verified point of an instance."""

    value: float
    method: str
    """The method that found it; the first one if there are several."""
    proved: bool
    """Whether a method proved that no better point exists, and no verified point contradicts this."""
    ahead: bool
    """Whether a reference's point is better than every contestant's, so that no contestant is judged by
    itself."""
    bound: float
    """An upper limit of all points: the own value if it is proved, otherwise the least proved bound of any
    method."""


class Reachable:
    """The best known of every instance in some rows that a reference looked into, or that is proved."""

    def __init__(self, rows: Iterable[Record], references: Collection[str] | None = REFERENCES) -> None:
        """`references=None`: the best of the rows counts, whatever its method."""
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
        """The best known on this row's instance; None if none has a point, or there is no reference."""
        return self._best.get(instance(row))

    def share(self, row: Record) -> float | None:
        """The fraction of the best known that a run reached, 0 without a point; None if nothing is
        reachable."""
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
        """Whether a reference solved this row's instance, or it is proved."""
        return self.of(row) is not None

    def proved(self, row: Record) -> bool:
        """Whether the best known on this row's instance is the optimum."""
        best = self.of(row)
        return best is not None and best.proved

    def sound(self, row: Record) -> bool:
        """Whether the best known value on this instance is independent of the compared methods: proved, or
        found by a reference that is better than all of them."""
        best = self.of(row)
        return best is not None and (best.proved or best.ahead)
