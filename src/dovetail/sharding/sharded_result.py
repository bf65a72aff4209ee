"""What a solve of shards returns: numbers over all of them, and where the values of each are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.check import Violation
from dovetail.run.budget import StopReason


@dataclass(frozen=True, eq=False, repr=False)
class ShardedResult:
    """Of `solve_shards`; the values stay in files, one for each shard.

    >>> import tempfile
    >>> import dovetail as dt
    >>> from dovetail.testing.problems import offers_of
    >>> result = dt.solve_shards(offers_of, range(2), out=tempfile.mkdtemp(), log=False)
    >>> result.activity["budget"] <= 20.0 + 1e-6, result.blocks, [file.name for file in result.files]
    (True, 120, ['shard-00000.npz', 'shard-00001.npz'])
    """

    objective: float | None
    """In the sense of the problem; None where no choice was found that passes the check."""
    limit: float
    """No choice of the columns found is beyond it: an estimate, other columns may be."""
    violation: Violation | None
    """Of the choice, by the shards' own predictors and over all shards; None where there was none."""
    activity: dict[str, float]
    """What the coupling rows come to, by name."""
    files: tuple[Path, ...]
    """Of the shards, in their order; none where there is no answer."""
    stop_reason: StopReason
    """Why the search ended: "stalled" where more rounds brought nothing, "time" or "interrupt"."""
    blocks: int
    rounds: int
    seconds: float
    workers: int
    losses: int
    """Workers that were lost and replaced."""
    step_bytes: float
    """That travelled, both ways and over all workers, per sum over all blocks at other prices."""
    total_bytes: int

    def values(self, shard: int) -> dict[str, FloatArray]:
        """(blocks, width) values of each family of a shard, by its place in the list."""
        with np.load(self.files[shard]) as file:
            return {name: file[name] for name in file.files}

    def __repr__(self) -> str:
        found = "no answer" if self.objective is None else f"objective {self.objective:.8g}, verified"
        return (
            f"<ShardedResult: {found}; no choice of the columns found is beyond {self.limit:.8g}; "
            f"{self.blocks:,} blocks in {len(self.files)} files, {self.rounds} rounds, {self.seconds:.1f} s>"
        )
