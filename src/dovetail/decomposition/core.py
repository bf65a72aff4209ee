"""The choice over all blocks: an LP over those nearest to indifference, a MIP over the last few, a polish.

At good prices nearly all blocks have one best column. For those with two an LP says how many of which, and
leaves no more fractions than there are rows; swaps make it whole, a MIP with the rows as they are begins
there. Equations that no choice of columns meets, and room that is left, are met by small steps of some
blocks, to first order.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import TOLERANCE
from dovetail.decomposition.share import CoreColumns, Slopes
from dovetail.decomposition.shares import Shares
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import Program
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus

LP_BLOCKS, LP_BLOCKS_PER_ROW = 4_000, 100
"""Blocks in the LP: an equal part for each side of the coupling rows, and for each at least so many."""
MORE = 4
"""Times as many blocks where the choice misses a row."""
MIP_BLOCKS, MIP_BLOCKS_PER_ROW = 250, 6
"""Blocks in the MIP beside the fractional ones: with ten times 250 it brings no more in its seconds (water,
n = 2,000, 18 rows)."""
GAP = 1e-6
"""Relative, at which the MIP ends."""
SWAPS = 400
"""At most, for the rows and then for the objective."""
LITTLE = 1e-9
"""Relative to a row's limit: a miss that is none, if it is half of what the check forgives at most."""
POLISHED, POLISHES, REACH = 400, 6, 0.2
"""Blocks that take small steps, how often, and the reach of a step in usual moves."""


def choose(
    shares: Shares, prices: FloatArray, limit: FloatArray, highest: FloatArray, budget: Budget, extra: Budget,
    seed: int, *, worth: float, rough: bool = False,
) -> bool:  # fmt: skip
    """Choose a column for each block within the limits, or what misses them least; False where some block
    has none. A gain of less than `worth` is not looked for; a `rough` choice goes without the MIP. `extra` is
    the part of the budget for the MIP, and for more blocks where rows are missed with few."""
    if shares.begin(prices, lasting=not rough) is None:
        return False
    room = _room(shares.slopes(POLISHED, REACH)) if np.any(shares.steerable) else np.zeros(len(limit))
    most, count, best = max(LP_BLOCKS // max(1, len(limit)), LP_BLOCKS_PER_ROW), 0, None
    while best is None or (best.missed() > 0.0 and not extra.over):
        core = Core(shares.core(most), limit, highest, room)
        if core.count == count:
            break
        core.relax(prices, extra if best else budget)
        if not rough or core.missed() > 0.0:
            core.decide(extra, seed, worth)
        if best is None or core.missed() < best.missed():
            best = core
        most, count = MORE * most, core.count
    if best is not None:
        shares.put(best.moves())
    if np.any(shares.steerable):
        polish(shares, limit, highest, budget)
    return True


class Core:
    """Columns of the blocks nearest to indifference, laid end to end, and one that each block has."""

    def __init__(
        self, parts: list[CoreColumns], limit: FloatArray, highest: FloatArray, room: FloatArray
    ) -> None:
        """Columns need to meet an equation by and large only where small steps make up for it."""
        self.owner = np.repeat(np.arange(len(parts)), [len(part.block) for part in parts])
        self.block, self.place, self.cost, self.use, self._first = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("block", "place", "cost", "use", "chosen")
        )
        kept = np.sum([part.kept for part in parts], axis=0)
        self.left, self._limit, self._highest, self._parts = limit - kept, limit, highest, len(parts)
        self.count = 0
        if not len(self.cost):
            return
        self.band = np.where(self._equations, np.minimum(np.abs(self.use).max(axis=0), room), 0.0)
        self.reduced = self.cost
        _, group = np.unique(np.stack([self.owner, self.block], axis=1), axis=0, return_inverse=True)
        self.group = group.ravel()
        self.count = int(self.group.max()) + 1
        self.chosen = self._of_groups(self._first)
        self._weight = self._first.astype(float)

    @property
    def _equations(self) -> BoolArray:
        """(R,) sides that have an opposite one."""
        opposite = self._limit[:, None] == -self._limit
        for one, other in np.argwhere(opposite):
            opposite[one, other] = np.array_equal(self.use[:, one], -self.use[:, other])
        return np.asarray(opposite.any(axis=1))

    def _of_groups(self, flags: BoolArray) -> IntArray:
        """(groups,) the flagged column of each."""
        chosen = np.zeros(self.count, dtype=np.int64)
        chosen[self.group[flags]] = np.flatnonzero(flags)
        return chosen

    def _beyond(self, use: FloatArray) -> FloatArray:
        """How far (..., R) uses are beyond the limits, at the highest prices, in all."""
        over = use - self.left - self.band
        return np.asarray(np.where(over > _forgiven(self._limit), over, 0.0) @ self._highest)

    def missed(self) -> float:
        """Of the columns that are chosen."""
        return float(self._beyond(self.use[self.chosen].sum(axis=0)))

    def relax(self, prices: FloatArray, budget: Budget) -> None:
        """The LP; what it leaves in fractions is made whole by swaps."""
        soft = np.ones(len(self.left), dtype=bool)
        live, _, scale = self._program(np.arange(self.count), self.left, soft=soft, whole=False)
        status, x, _ = live.run(budget, GAP)
        if x is not None:
            self._weight = x[: len(self.cost)]
            order = np.lexsort((self._weight, self.group))
            last = np.append(self.group[order][1:] != self.group[order][:-1], True)
            self.chosen = order[last]
        if status is MipStatus.OPTIMAL:
            prices = -live.row_duals()[self.count :] / scale
        self.reduced = self.cost + self.use @ prices
        self._swap()

    def _program(
        self, groups: IntArray, left: FloatArray, *, soft: BoolArray, whole: bool
    ) -> tuple[LoadedHighs, IntArray, FloatArray]:
        """One column for each of some groups within what is left, their numbers, and the units of the rows;
        `soft` rows may be missed at the highest prices."""
        mine = np.flatnonzero(np.isin(self.group, groups))
        group = np.searchsorted(groups, self.group[mine])
        count, columns, slack = len(groups), len(mine), np.flatnonzero(soft)
        scale = np.maximum(np.abs(self.use[mine]).max(axis=0, initial=0.0), 1e-9)
        one_each = sp.csr_array((np.ones(columns), (group, np.arange(columns))), shape=(count, columns))
        missing = sp.csr_array(
            (-np.ones(len(slack)), (slack, np.arange(len(slack)))), shape=(len(left), len(slack))
        )
        A = sp.block_array([[one_each, None], [sp.csr_array((self.use[mine] / scale).T), missing]])
        size = columns + len(slack)
        program = Program(
            sp.csr_array(A), np.concatenate([np.ones(count), np.full(len(left), -np.inf)]),
            np.concatenate([np.ones(count), left / scale]), np.zeros(size),
            np.where(np.arange(size) < columns, 1.0, np.inf), (np.arange(size) < columns) & whole,
        )  # fmt: skip
        live = LoadedHighs(program, threads=1)
        live.set_objective(np.concatenate([self.cost[mine], (self._highest * scale)[slack]]), 0.0)
        return live, mine, scale

    def _swap(self) -> None:
        """One column for another while that mends the rows for least, or then saves cost within them."""
        use, priced = self.use[self.chosen].sum(axis=0), self.reduced
        for _ in range(SWAPS):
            now = self.chosen[self.group]
            missed, other = float(self._beyond(use)), self._beyond(use + self.use - self.use[now])
            if missed > 0.0:
                mends = missed - other
                helps = mends > LITTLE * missed
                value = mends / np.maximum(mends + (priced - priced[now]).clip(0.0), 1e-300) * helps
                value = np.where(helps & (other <= 0.0), 1.0 + value, value)
            else:
                value = np.where(other <= 0.0, self.cost[now] - self.cost, 0.0)
            best = int(value.argmax())
            if value[best] <= LITTLE:
                return
            use = use + self.use[best] - self.use[now[best]]
            self.chosen[self.group[best]] = best

    def decide(self, budget: Budget, seed: int, worth: float) -> None:
        """A MIP over the groups that the LP leaves in fractions, and those nearest to indifference."""
        fraction = np.zeros(self.count)
        np.maximum.at(fraction, self.group, np.minimum(self._weight, 1.0 - self._weight))
        most = MIP_BLOCKS + MIP_BLOCKS_PER_ROW * len(self.left) + int(np.count_nonzero(fraction > 1e-6))
        second = np.full(self.count, np.inf)
        base = self.reduced[self.chosen]
        others = np.ones(len(self.cost), bool)
        others[self.chosen] = False
        np.minimum.at(second, self.group[others], np.abs(self.reduced - base[self.group])[others])
        second[fraction > 1e-6] = -1.0
        groups = np.sort(np.argsort(second, kind="stable")[:most])
        rest = np.setdiff1d(np.arange(self.count), groups)
        left = self.left - self.use[self.chosen[rest]].sum(axis=0)
        live, mine, _ = self._program(groups, left + self.band, soft=np.zeros(len(left), bool), whole=True)
        start = np.zeros(len(mine))
        start[np.searchsorted(mine, self.chosen[groups])] = 1.0
        live.set_start(start)
        _, x, _ = live.run(budget, GAP, room=worth)
        if x is None:
            return
        taken = mine[x > 0.5]
        before, misses = self.chosen.copy(), self.missed()
        saved = float(self.cost[before].sum())
        self.chosen[self.group[taken]] = taken
        if self.missed() > misses or (self.missed() == misses and self.cost[self.chosen].sum() > saved):
            self.chosen = before

    def moves(self) -> list[tuple[IntArray, IntArray]]:
        """For each share: blocks that change, and their new places."""
        changed = self.chosen[~self._first[self.chosen]]
        mine = [changed[self.owner[changed] == number] for number in range(self._parts)]
        return [(self.block[of_one], self.place[of_one]) for of_one in mine]


def _forgiven(limit: FloatArray) -> FloatArray:
    """(R,) by how much limits may be missed."""
    return np.minimum(LITTLE * (1.0 + np.abs(limit)), 0.5 * TOLERANCE)


def _room(parts: list[Slopes]) -> FloatArray:
    """(R,) half of what small steps of these blocks can take off the use of each side."""
    taken = [
        np.minimum(part.use * part.lower[:, None], part.use * part.upper[:, None]).sum(axis=(0, 2))
        for part in parts
    ]
    return np.asarray(-0.5 * np.sum(taken, axis=0))


def polish(shares: Shares, limit: FloatArray, highest: FloatArray, budget: Budget) -> None:
    """The shortest steps of some blocks that make up for what rows miss, to first order. Blocks whose step
    breaks a condition stay where they were, and the next LP does without them."""
    use, reach = shares.uses(), REACH
    for _ in range(POLISHES):
        if not np.any(use > limit + _forgiven(limit)):
            return
        steps = _steps(shares.slopes(POLISHED, reach), limit - use, highest, budget)
        if steps is None:
            return
        use = shares.step(steps)


def _steps(
    parts: list[Slopes], left: FloatArray, highest: FloatArray, budget: Budget
) -> list[tuple[IntArray, FloatArray]] | None:
    """The shortest steps within what is left of the rows, which may be missed at the highest prices."""
    length, lower, upper = (
        np.concatenate([getattr(part, name).ravel() for part in parts])
        for name in ("length", "lower", "upper")
    )
    if not len(length):
        return None
    use = np.concatenate([part.use.transpose(1, 0, 2).reshape(len(left), -1) for part in parts], axis=1)
    own = sp.block_diag([one for part in parts for one in part.on_moves], format="csr")
    least = np.concatenate([np.minimum(part.least.ravel(), 0.0) for part in parts])
    rows, size = len(left), len(length)
    scale = np.maximum(np.abs(use).max(axis=1), 1e-9)
    of_rows = sp.csr_array(use / scale[:, None])
    missed = sp.block_array([[-sp.eye_array(rows)], [sp.csr_array((len(least), rows))]])
    both = sp.vstack([of_rows, sp.csr_array(own)]) if len(least) else of_rows
    program = Program(
        sp.csr_array(sp.hstack([both, -both, missed if len(least) else -sp.eye_array(rows)])),
        np.concatenate([np.full(rows, -np.inf), least]),
        np.concatenate([left / scale, np.full(len(least), np.inf)]),
        np.zeros(2 * size + rows), np.concatenate([upper, -lower, np.full(rows, np.inf)]),
        np.zeros(2 * size + rows, dtype=bool),
    )  # fmt: skip
    live = LoadedHighs(program, threads=1)
    live.set_objective(np.concatenate([length, length, highest * scale]), 0.0)
    _, x, _ = live.run(budget, GAP)
    if x is None:
        return None
    found, first, steps = [], 0, x[:size] - x[size : 2 * size]
    for part in parts:
        found.append((part.block, steps[first : first + part.length.size].reshape(part.length.shape)))
        first += part.length.size
    return found
