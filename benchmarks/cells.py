"""Cells that several tables have."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean


def mean_found(values: Sequence[float], runs: int, digits: int) -> str:
    """The mean over the runs that found something, and how many did not."""
    missing = f" ({runs - len(values)} without)" if len(values) < runs else ""
    return (f"{mean(values):.{digits}g}" if values else "none") + missing
