"""Where a row comes from: the code, the machine, and how many runs it shared the machine with."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import dovetail as dt
from dovetail_study.run import THREADS

PACKAGES = (Path(dt.__file__).parent, Path(__file__).parent)
"""The library and the study: a row depends on both."""
VARIABLE = "DOVETAIL_COMMIT"
"""Names the commit where the code was copied without its history, to another machine or into a container."""


@dataclass(frozen=True)
class Provenance:
    """What every row says about how it was made."""

    commit: str
    """Of the code, with a "+" where files had been changed since; the version where there is no git."""
    machine: str
    threads: int
    """Of the solve."""
    shared: int
    """How many runs there were at the same time."""
    dovetail: str
    """The version."""

    @classmethod
    def here(cls, shared: int = 1) -> Provenance:
        """Of what is run now, so many runs at a time."""
        machine = f"{platform.machine()}, {os.cpu_count()} cores"
        return cls(commit(*PACKAGES), machine, THREADS, shared, dt.__version__)


@lru_cache(maxsize=1)
def commit(*packages: Path) -> str:
    """The commit of the code in these folders, asked once: the code that runs is the code at the start."""
    # a wheel may be installed below somebody else's repository: ours is one that knows our files
    known = [_git(package, "ls-files", "--error-unmatch", "__init__.py") for package in packages]
    head = _git(packages[0], "rev-parse", "HEAD")
    if None in known or head is None:
        return os.environ.get(VARIABLE) or dt.__version__
    changed = any(_git(package, "status", "--porcelain", "--", ".") for package in packages)
    return head + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says, or None where it has no answer."""
    try:
        said = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:  # there is no git
        return None
    return said.stdout.strip() if said.returncode == 0 else None
