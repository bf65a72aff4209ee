"""Better points and bounds as they came, and how far the one is from the other."""

from __future__ import annotations

from dataclasses import dataclass

SMALLEST = 1e-12
"""What an objective of 0 counts as where something is said relative to it."""


@dataclass(frozen=True)
class Gain:
    """A better point or a better bound: when, what it is worth in the user's sense, and what found it."""

    seconds: float
    value: float
    source: str


def relative_gap(objective: float, bound: float) -> float:
    """|objective - bound| / |objective|; 0 where both are the same, 0 too."""
    apart = abs(objective - bound)
    return 0.0 if apart == 0.0 else apart / max(abs(objective), SMALLEST)
