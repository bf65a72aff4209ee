"""How much memory a run may take, so that runs at the same time fit into the machine together."""

from __future__ import annotations

import os
from pathlib import Path

GB = 1e9
RESERVE = 2.0
"""GB left to the system and to the process that hands out the runs."""
GROUP = Path("/sys/fs/cgroup/memory.max")
"""Where Linux says how much a container may take, which may be less than the machine has."""


def share(jobs: int) -> float | None:
    """GB for each of so many runs; None where the system does not say how much there is."""
    whole = _installed()
    if whole is None:
        return None
    return max(whole - RESERVE, whole / 2) / jobs  # half of a machine that is smaller than the reserve


def _installed() -> float | None:
    try:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GB
    except (AttributeError, ValueError, OSError):
        return None
    try:
        return min(whole, float(GROUP.read_text()) / GB)
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return whole
