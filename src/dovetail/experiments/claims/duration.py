"""Seconds in a claim: the end of a run is not the solution of a problem, so both are said."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dovetail.experiments.best_known import Pairs
from dovetail.experiments.run import Record
from dovetail.experiments.statistics import average, converged, count_of, distinct, known, mean, text

CLOCK = 1e-3
"""Seconds below which a run's time says nothing: no ratio is taken of less."""


def said(rows: Sequence[Record]) -> str:
    """How many runs converged, and the seconds to their end and to their best verified point."""
    if not rows:
        return "has no such runs"
    seconds = known(rows, "seconds")
    most = text(max(known(rows, "iterations"), default=math.nan))
    best = average(rows, "best_seconds")
    to_best = f", {text(best)} s to the best verified point" if math.isfinite(best) else ""
    machines = "; ".join(map(str, distinct(rows, "machine")))
    return (
        f"converged in {count_of(rows, converged)} runs; {text(mean(seconds))} s on average (at most "
        f"{text(max(seconds, default=math.nan))}) to the end of at most {most} iterations{to_best}"
        f"{f' [{machines}]' if machines else ''}"
    )


def all_solved(rows: Sequence[Record]) -> bool:
    """Whether every run converged, so that its seconds are those of a solve."""
    return bool(rows) and all(map(converged, rows))


def timed(matched: Pairs) -> Pairs:
    """The pairs of which both have seconds."""
    return [pair for pair in matched if all(known([row], "seconds") for row in pair)]


def apart(matched: Pairs) -> str:
    """Says of how many pairs the two runs were made on different machines: such a ratio is no clean one."""
    differ = sum(mine.get("machine") != other.get("machine") for mine, other in matched)
    return f" ({differ} of these pairs from two machines)" if differ else ""


def times_as_long(slow: Record, fast: Record) -> float:
    """The seconds of a run over those of another."""
    return float(slow["seconds"] / max(fast["seconds"], CLOCK))
