"""Better points and bounds as they came, and how far the one is from the other."""

from __future__ import annotations

from dataclasses import dataclass

HAIR = 1e-9
"""An objective and a bound that are no farther apart are the same (see `run.gap`), near 0 too."""
SMALLEST = 1e-12
"""What an objective of 0 counts as where something is said relative to it."""
LARGE = 10.0
"""A gap that no percentage makes clear any more."""
ROUNDING = 1e-9
"""A gap that is one of digits only. One that is larger is said to be there, also where it is small enough for
an optimum: nobody asks then why a search with a gap of 0 % went on."""


@dataclass(frozen=True)
class Gain:
    """A better point or a better bound: when, what it is worth in the user's sense, and what found it."""

    seconds: float
    value: float
    source: str


def gap_text(gap: float) -> str:
    """A gap as messages, the end of the log and the page say it: three digits of a percentage."""
    if gap <= ROUNDING:
        return "0 %"
    return f"{100 * gap:.3g} %" if gap < LARGE else f"{gap:,.0f} times the objective"


def relative_gap(objective: float, bound: float) -> float:
    """|objective - bound| / |objective|; 0 where the two are the same."""
    apart = abs(objective - bound)
    return 0.0 if apart <= HAIR else apart / max(abs(objective), SMALLEST)
