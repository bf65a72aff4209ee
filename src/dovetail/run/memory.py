"""Memory used by this process, and memory that the machine still has free.

Linux reports the current use. Other systems report only the maximum, and no free memory; without the module
`resource` (Windows) memory is unknown.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

GB = 1e9
ROOM = 0.1
"""Fraction of all memory that stays free, for other processes and for work that is ending."""
UNLIMITED = 2.0**60
"""Bytes; a control group without a limit reports more than this (version 1), or "max" (version 2)."""


LOOK_SECONDS = 0.05
"""Seconds between measurements. A measurement takes a ten-thousandth of a second; between two of them SCIP
may take megabytes."""


def resident(proc: Path = Path("/proc")) -> float | None:
    """GB of memory of this process, or None if not known."""
    try:
        pages = int((proc / "self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / GB
    except (OSError, ValueError, IndexError):
        return _most_ever()


def _most_ever() -> float | None:
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, kilobytes on other systems
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / GB


def spare(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> float | None:
    """GB that this process may still take if a tenth of all memory is to stay free, or None if not known.
    Limits of control groups (containers) count too."""
    left = [free - ROOM * total for free, total in (*_machine(proc), *_control_groups(proc, groups))]
    return min(left) / GB if left else None


def _machine(proc: Path) -> Iterator[tuple[float, float]]:
    """Bytes free and in total."""
    try:
        lines = (proc / "meminfo").read_text().splitlines()
        kilobytes = {name: float(rest.split()[0]) for name, rest in (line.split(":") for line in lines)}
        yield 1024 * kilobytes["MemAvailable"], 1024 * kilobytes["MemTotal"]
    except (OSError, ValueError, KeyError, IndexError):
        return


def _control_groups(proc: Path, groups: Path) -> Iterator[tuple[float, float]]:
    """Free and total bytes for every control group of this process and its parents."""
    try:
        memberships = [line.split(":", 2) for line in (proc / "self/cgroup").read_text().splitlines()]
    except OSError:
        return
    for _, controllers, path in memberships:
        if controllers == "":
            base, names = groups, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            base = groups / "memory"
        else:
            continue
        group = base / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(base):
                yield from _control_group(folder, *names)


def _control_group(folder: Path, limit: str, usage: str, cache: str) -> Iterator[tuple[float, float]]:
    """Free and total bytes of one group; cached file pages count as free."""
    try:
        total, used = float((folder / limit).read_text()), float((folder / usage).read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        unread = float(stat.get(cache, 0.0))
    except (OSError, ValueError):  # no such control group here, or no limit: "max"
        return
    if total < UNLIMITED:
        yield total - used + unread, total


def give_back() -> None:
    """Return freed memory to the system, if the C library (glibc) kept it. After a model of a million rows
    this affects the next measurement."""
    trim = None if sys.platform == "win32" else getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class MemoryWatch:
    """Reports when this process holds more than `limit` GB, or when the machine has no more memory. Once
    over, the watch stays over."""

    def __init__(self, limit: float | None = None) -> None:
        self._limit = math.inf if limit is None else limit
        self._next_look = -math.inf
        self._exceeded = False
        self.held: float | None = None
        """GB at the last measurement; None if the system does not report it."""
        self.peak: float | None = None
        """The largest measurement."""
        self.allowed = self._limit
        """GB that this process may hold at most, by the limit and by the machine, at the last measurement."""
        self.look()

    def look(self) -> None:
        """Measure now."""
        self._next_look = time.perf_counter() + LOOK_SECONDS
        self.held, left = resident(), spare()
        if self.held is None:
            return
        self.peak = max(self.held, self.peak or 0.0)
        if not self._exceeded:
            self.allowed = min(self._limit, math.inf if left is None else self.held + left)
            self._exceeded = self.held > self.allowed

    @property
    def over(self) -> bool:
        """Whether the limit was exceeded at any time; measures if the last measurement is old."""
        if not self._exceeded and time.perf_counter() >= self._next_look:
            self.look()
        return self._exceeded

    @property
    def left(self) -> float:
        """GB that may still be taken, at the last measurement; infinity if not known."""
        return max(0.0, self.allowed - (self.held or 0.0))

    @property
    def bound_by_machine(self) -> bool:
        """Whether the machine, not the limit, allows no more."""
        return self.allowed < self._limit

    def __str__(self) -> str:
        return f"{self.peak or 0.0:.2f} GB of {self.allowed:.2f} GB"
