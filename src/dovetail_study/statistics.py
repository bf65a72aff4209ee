"""Means over rows, with what is missing left out and counted, never filled in.

Sums are exact (`math.fsum`): those of Python's own `sum` differ in the last digit before and since 3.12, and
a mean that lies between two roundings would then make another page of the same file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import stdev
from typing import Any

from dovetail_study.problems.training import DEAD
from dovetail_study.run import Record


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
    """The numbers of a field that are there."""
    return [float(row[name]) for row in rows if row.get(name) is not None]


def mean(values: Sequence[float]) -> float:
    """The mean; NaN of nothing."""
    return math.fsum(values) / len(values) if values else math.nan


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive numbers; NaN of nothing."""
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
    """Whether the network came out as a constant: nothing can be changed by its inputs."""
    return row.get("spread") is not None and bool(row["spread"] < DEAD)


def never_improved(row: Record) -> bool:
    """Whether a loop's point is the one it started from; a row that does not say is not counted."""
    return "best_at" in row and row["best_at"] is None


def stopped(row: Record) -> bool:
    """Whether a run met its time limit: what it would have needed is not known."""
    return row.get("stop") == "time"


def count_of(rows: Sequence[Record], holds: Callable[[Record], Any]) -> str:
    """How many of how many, such as "3 of 5"."""
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
    """A number for a table; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean and standard deviation over seeds, such as "14.3 ± 0.6"; of one value the value alone."""
    middle = text(mean(values), digits)
    return f"{middle} ± {text(stdev(values), 2)}" if len(values) > 1 else middle


def spread_of(rows: Iterable[Record], name: str, digits: int = 3) -> str:
    """Mean and standard deviation of a field over the rows that have it."""
    return spread(known(rows, name), digits)
