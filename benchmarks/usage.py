"""What this process and those that it has ended have used."""

from __future__ import annotations

import resource
import sys

HERE, ENDED = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN


def cpu_seconds() -> float:
    """Of the CPU, of this process and of those that it has ended."""
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, (HERE, ENDED)))


def peak(whose: int = HERE) -> float:
    """GB at most, of this process or of the largest of those that it has ended."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(whose).ru_maxrss * unit / 1e9
