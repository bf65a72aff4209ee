"""Where the data of one shard come from: its number, or a file; read in the process that has the shard."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.core.errors import DovetailError, ModelError, OptionError
from dovetail.core.problem import Problem

Build = Callable[[Any], Problem]


@dataclass(frozen=True)
class ShardSource:
    """What `build` makes the problem of one shard of: a number, an array in a file, or a file of its own."""

    build: Build
    item: int | Path
    number: int

    @classmethod
    def of(cls, build: Build, item: Any, number: int) -> ShardSource:
        """One of the list of shards."""
        if isinstance(item, Integral) and not isinstance(item, bool):
            return cls(build, int(item), number)
        if isinstance(item, (str, os.PathLike)):
            return cls(build, Path(item), number)
        raise OptionError(f"shards[{number}] is {item!r}; give the path of a file, or a number.")

    @property
    def name(self) -> str:
        """For messages."""
        return f"shard {self.number} ({self.item})" if isinstance(self.item, Path) else f"shard {self.item}"

    def data(self) -> Any:
        """The number itself, a .npy file as an array that stays on the disk, any other file by its path."""
        if not isinstance(self.item, Path):
            return self.item
        try:
            if self.item.stat().st_size == 0:
                raise ValueError("it is empty")
            return np.load(self.item, mmap_mode="r") if self.item.suffix == ".npy" else self.item
        except (OSError, ValueError, EOFError) as reason:
            raise ModelError(
                f"{self.name}: the file cannot be read ({reason}); write it again, or leave it out of shards."
            ) from None

    def problem(self) -> Problem:
        """As `build` states it; what it raises names the shard."""
        data = self.data()
        try:
            made = self.build(data)
        except DovetailError as reason:
            raise type(reason)(f"{self.name}: {reason}") from reason
        except Exception as reason:
            reason.add_note(f"raised by build for {self.name}")
            raise
        if not isinstance(made, Problem):
            raise ModelError(f"{self.name}: build returned {type(made).__name__}; return a dovetail.Problem.")
        return made
