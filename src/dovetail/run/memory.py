"""Memory: what this process holds, and what the machine can still give it.

Linux tells what is held now. Other systems tell the most that was ever held, and not what is free; where
the standard library has no `resource` (Windows), nothing is told.
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
"""Of all memory, this stays free: for other processes, and for what is still taken until work has ended."""
UNLIMITED = 2.0**60
"""Bytes; a control group without a limit says more than this (version 1), or "max" (version 2)."""


LOOK_SECONDS = 0.05
"""From look to look. One takes a ten-thousandth of a second; between two, SCIP takes megabytes."""


def resident(proc: Path = Path("/proc")) -> float | None:
    """GB of memory this process holds, or None where nobody says."""
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
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / GB


def spare(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> float | None:
    """GB this process may still take if a tenth of all is to stay free, or None where nobody says.

    Of the machine's memory, and of that of the control groups the process is in: a container's limit is one.
    """
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
    """The same of every group this process is in, and of the groups these are in."""
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
    """Bytes free and in all of one group; pages of files that nobody reads now count as free."""
    try:
        total, used = float((folder / limit).read_text()), float((folder / usage).read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        unread = float(stat.get(cache, 0.0))
    except (OSError, ValueError):  # no such group here, or no limit: "max"
        return
    if total < UNLIMITED:
        yield total - used + unread, total


def give_back() -> None:
    """Hand freed memory to the system, where the C library (glibc) keeps it for later.

    After a model of a million rows that is as much as was freed, and whoever measures next would count it.
    """
    trim = None if sys.platform == "win32" else getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class MemoryWatch:
    """Says when this process holds more than `limit` GB, or when the machine has no more to give.

    Once over, it stays over: what is given back later was missing when it was asked for.
    """

    def __init__(self, limit: float | None = None) -> None:
        self._limit = math.inf if limit is None else limit
        self._next_look = -math.inf
        self._exceeded = False
        self.held: float | None = None
        """GB at the last look; None where this system does not say."""
        self.peak: float | None = None
        """The most of them at any look."""
        self.allowed = self._limit
        """GB this process may hold at most, by the limit and by the machine, at the last look."""
        self.look()

    def look(self) -> None:
        """Look now."""
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
        """Whether there was too much at some time; looks, if the last look was a while ago."""
        if not self._exceeded and time.perf_counter() >= self._next_look:
            self.look()
        return self._exceeded

    @property
    def left(self) -> float:
        """GB that may still be taken, as of the last look; infinity where nobody says."""
        return max(0.0, self.allowed - (self.held or 0.0))

    @property
    def bound_by_machine(self) -> bool:
        """Whether it is the machine that allows no more, not the limit."""
        return self.allowed < self._limit

    def __str__(self) -> str:
        return f"{self.peak or 0.0:.2f} GB of {self.allowed:.2f} GB"
