"""The last few: a MIP over the blocks that are nearest to indifference, all others as they were chosen.

With few coupling rows nearly all blocks have one best column at the right prices; what a choice by order of
gain loses, it loses among those with two. It also mends choices that miss a row (equations, lower limits).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.methods.template_pricing.choice import CoreColumns
from dovetail.methods.template_pricing.shares import Shares
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import Program
from dovetail.run.budget import Budget

CORE = 250
"""Blocks in the MIP: with ten times as many it brings no more in its seconds (water, n = 2,000)."""
GAP = 1e-6
"""Relative, at which the MIP ends."""


def improve(
    shares: Shares, prices: FloatArray, limit: FloatArray, budget: Budget, seed: int, *, worth: float
) -> bool:
    """Choose again among the blocks in the core; whether anything changed. A gain of less than `worth` is not
    looked for."""
    nearest = shares.nearest(prices, CORE)
    core = _Core(shares.core(prices, float(nearest[-1]) if nearest.size else -np.inf, CORE), limit)
    chosen = core.solve(budget, seed, worth)
    if chosen is None or bool(core.now[chosen].all()):
        return False
    shares.put(core.moves(chosen))
    return True


class _Core:
    """Columns of the blocks in the core, laid end to end: (share, block, place), costs and uses."""

    def __init__(self, parts: list[CoreColumns], limit: FloatArray) -> None:
        self.owner = np.repeat(np.arange(len(parts)), [len(part.block) for part in parts])
        self.block, self.place, self.cost, self.use, self.now = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("block", "place", "cost", "use", "chosen")
        )
        self.left = limit - np.sum([part.kept for part in parts], axis=0)
        self._parts = len(parts)

    def solve(self, budget: Budget, seed: int, worth: float) -> IntArray | None:
        """Numbers of the columns that are chosen."""
        if len(self.cost) == 0:
            return None
        keys = np.stack([self.owner, self.block], axis=1)
        _, group = np.unique(keys, axis=0, return_inverse=True)
        group = group.ravel()
        count, columns = int(group.max()) + 1, len(self.cost)
        scale = np.maximum(np.abs(self.use).max(axis=0), 1e-9)
        one_each = sp.csr_array((np.ones(columns), (group, np.arange(columns))), shape=(count, columns))
        A = sp.csr_array(sp.vstack([one_each, sp.csr_array((self.use / scale).T)], format="csr"))
        program = Program(
            A,
            np.concatenate([np.ones(count), np.full(len(scale), -np.inf)]),
            np.concatenate([np.ones(count), self.left / scale]),
            np.zeros(columns),
            np.ones(columns),
            np.ones(columns, dtype=bool),
        )
        live = LoadedHighs(program, seed=seed, threads=1)
        live.set_objective(self.cost, 0.0)
        live.set_start(self.now.astype(float))
        _, x, _ = live.run(budget, GAP, room=worth)
        return None if x is None else np.flatnonzero(x > 0.5)

    def moves(self, chosen: IntArray) -> list[tuple[IntArray, IntArray, FloatArray]]:
        """For each share: blocks that change, their new places and what these use."""
        changed = chosen[~self.now[chosen]]
        mine = [changed[self.owner[changed] == number] for number in range(self._parts)]
        return [(self.block[of_one], self.place[of_one], self.use[of_one]) for of_one in mine]
