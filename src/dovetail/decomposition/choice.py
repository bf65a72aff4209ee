"""Columns of blocks, and the choice of one column for each block: an LP, swaps, a MIP, small steps.

    LP      min  cost'theta + shared cost + highest prices'missed
            s.t. sum of theta over a block's columns = 1,   use theta + shared use - missed <= limit

A *column* is one feasible solution of one block. The duals of the LP are prices. At good prices nearly
all blocks have one best column; the LP mixes columns of at most as many blocks as there are coupling
constraints. Swaps replace the mixtures by single columns, and a MIP with the exact constraints starts
from the result. Small first-order steps of some blocks meet equations that no choice of columns meets,
and use remaining slack of the limits.

If the LP reaches a value that single columns cannot reach, all prices are zero. The *level* LP then gives
useful prices: by how much could every limit be lowered at this cost?

    min  level
    s.t. use theta + shared use - level scale <= limit,   cost'theta + shared cost <= this cost
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import SMALLEST, TOLERANCE, Mip
from dovetail.decomposition.shard import Slopes
from dovetail.decomposition.share import CoreColumns, shortest_steps
from dovetail.decomposition.shares import Shares
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import LinearProgram
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus

LP_BLOCKS, LP_BLOCKS_PER_ROW = 4_000, 100
"""Number of blocks in the LP, in equal parts for each side of the coupling rows; the second number is the
minimum for each side."""
MORE = 4
"""Factor on this number if the choice violates a row."""
MIP_BLOCKS, MIP_BLOCKS_PER_ROW = 250, 6
"""Number of blocks in the MIP beside the fractional ones: with ten times 250 it gains nothing in its time
(water, n = 2,000, 18 rows)."""
GAP = 1e-6
"""Relative, at which the MIP ends."""
SWAPS = 400
"""Largest number of swaps, for the rows and then for the objective."""
LITTLE = 1e-9
"""Relative to a row's limit: a smaller violation counts as none, if it is at most half of the check's
tolerance."""
POLISHED, POLISHES, REACH = 400, 6, 0.2
"""Number of blocks that take small steps, number of rounds, and the largest step in units of typical
moves."""


@dataclass(frozen=True, eq=False)
class SharedColumns:
    """Columns of no block, which are chosen too."""

    cost: FloatArray
    use: sp.csr_array
    """(R, columns)."""
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray

    @classmethod
    def none(cls, rows: int) -> SharedColumns:
        """No shared columns, for (R,) rows."""
        nothing = np.zeros(0)
        return cls(nothing, sp.csr_array((rows, 0)), nothing, nothing, nothing.astype(bool))

    @classmethod
    def of(cls, mip: Mip, which: BoolArray, use: sp.csr_array) -> SharedColumns:
        """Some columns of a program in minimisation form, with the (R, columns) use of all."""
        return cls(
            mip.cost[which], sp.csr_array(use[:, which]), mip.lower[which], mip.upper[which],
            mip.integer[which],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A solution of the LP, or of the level LP."""

    value: float
    """Cost, including penalties for violated rows."""
    weight: FloatArray
    """(K,) of each column."""
    shared: FloatArray
    prices: FloatArray
    """(R,) nonnegative duals: the value of a unit less of a limit, in units of `on_cost` times the
    objective."""
    on_cost: float
    """1 for the LP; for the level LP the dual of the limit on the cost."""
    least: FloatArray
    """(blocks,) the least cost of each at these prices."""
    missed: float
    """Total violation of rows, in their scales."""

    def reduced_cost(self, columns: Columns) -> FloatArray:
        """(K,) the cost of each column beyond its block's best at these prices."""
        priced = self.on_cost * columns.cost + columns.use @ self.prices
        return np.asarray(priced - self.least[columns.owner])


@dataclass(eq=False)
class Columns:
    """The cost of some points of blocks (or lower bounds for boxes), and their use of the coupling rows."""

    count: int
    """Number of blocks."""
    limit: FloatArray
    """(R,)."""
    scale: FloatArray
    """(R,) the unit of each row."""
    shared: SharedColumns
    owner: IntArray
    """(K,) the block of each."""
    cost: FloatArray
    use: FloatArray
    """(K, R)."""

    @property
    def size(self) -> int:
        """Number of columns."""
        return int(self.owner.size)

    def ranked(self, key: FloatArray) -> tuple[IntArray, IntArray]:
        """All columns, block by block and by `key` within each; and the rank of each in its block."""
        order = np.lexsort((key, self.owner))
        owner = self.owner[order]
        first = np.searchsorted(owner, np.arange(self.count))
        return order, np.arange(order.size) - first[owner]

    def relaxed(
        self, budget: Budget, highest: FloatArray | None = None, *, level_at: float | None = None
    ) -> tuple[MipStatus, Relaxation | None]:
        """The LP, with rows that may be violated at the `highest` prices, if any; or the level LP for a
        cost."""
        rows, own = len(self.limit), self.size + self.shared.cost.size
        most = np.full(rows, 0.0 if highest is None or level_at is not None else np.inf)
        live = self._loaded(most, level_at=level_at)
        slack = np.zeros(rows) if highest is None else highest * self.scale
        true_cost = np.concatenate([self.cost, self.shared.cost, slack, [0.0]])
        level = np.zeros(true_cost.size)
        level[-1] = 1.0
        live.set_objective(true_cost if level_at is None else level, 0.0)
        status, x, _ = live.run(budget, GAP)
        if x is None:
            return status, None
        duals = live.row_duals()
        least, of_rows, of_cost = np.split(duals, [self.count, self.count + rows])
        on_cost = 1.0 if level_at is None else max(0.0, -float(of_cost[0]))
        prices = np.maximum(0.0, -of_rows) / self.scale
        value, missed = float(true_cost @ x), float(x[own : own + rows].sum())
        return status, Relaxation(value, x[: self.size], x[self.size : own], prices, on_cost, least, missed)

    def whole(self, budget: Budget, start: FloatArray, worth: float) -> FloatArray | None:
        """A MIP over columns, started from known ones, which ignores gains below `worth`."""
        rows = len(self.limit)
        live = self._loaded(np.zeros(rows), whole=True)
        live.set_objective(np.concatenate([self.cost, np.zeros(rows + 1)]), 0.0)
        live.set_start(np.concatenate([start, np.zeros(rows + 1)]))
        _, x, _ = live.run(budget, GAP, room=worth)
        return None if x is None else x[: self.size]

    def _loaded(
        self, most_missed: FloatArray, *, whole: bool = False, level_at: float | None = None
    ) -> LoadedHighs:
        shared, rows = self.shared, len(self.limit)
        use = self.use / self.scale
        use[np.abs(use) < SMALLEST] = 0.0
        unit = sp.diags_array(1.0 / self.scale)
        A = sp.block_array(
            [
                [self._one_each, sp.csr_array((self.count, shared.cost.size + rows + 1))],
                [
                    sp.csr_array(use.T),
                    sp.hstack([unit @ shared.use, -sp.eye_array(rows), -np.ones((rows, 1))]),
                ],
                [self.cost[None], np.concatenate([shared.cost, np.zeros(rows + 1)])[None]],
            ],
            format="csr",
        )
        leveled = level_at is not None
        program = LinearProgram(
            sp.csr_array(A),
            np.concatenate([np.ones(self.count), np.full(rows + 1, -np.inf)]),
            np.concatenate([np.ones(self.count), self.limit / self.scale, [level_at if leveled else np.inf]]),
            np.concatenate([np.zeros(self.size), shared.lower, np.zeros(rows), [-1.0 if leveled else 0.0]]),
            np.concatenate(
                [
                    np.full(self.size, 1.0 if whole else np.inf),
                    shared.upper,
                    most_missed,
                    [np.inf if leveled else 0.0],
                ]
            ),
            np.concatenate([np.ones(self.size, bool), shared.integer, np.zeros(rows + 1, bool)]) & whole,
        )
        return LoadedHighs(program, threads=1)

    @property
    def _one_each(self) -> sp.csr_array:
        place = self.owner, np.arange(self.size)
        return sp.csr_array((np.ones(self.size), place), shape=(self.count, self.size))

    def as_mip(self, offset: float = 0.0) -> Mip:
        """One column for each block, and the shared columns first. If every point of the problem is in one
        of each block's boxes, the bound of this program is one of the problem."""
        shared, rows = self.shared, len(self.limit)
        small = np.abs(self.use) < SMALLEST  # engines would drop these entries; 0 is the safe side
        used = np.where(small, np.where(self.use < 0.0, -SMALLEST, 0.0), self.use)
        A = sp.block_array(
            [
                [sp.csr_array((self.count, shared.cost.size)), self._one_each],
                [shared.use, sp.csr_array(used.T)],
            ],
            format="csr",
        )
        return Mip(
            np.concatenate([shared.cost, self.cost]),
            sp.csr_array(A),
            np.concatenate([np.ones(self.count), np.full(rows, -np.inf)]),
            np.concatenate([np.ones(self.count), self.limit]),
            np.concatenate([shared.lower, np.zeros(self.size)]),
            np.concatenate([shared.upper, np.ones(self.size)]),
            np.concatenate([shared.integer, np.ones(self.size, dtype=bool)]),
            offset=offset,
        )


def choose(
    shares: Shares, prices: FloatArray, limit: FloatArray, highest: FloatArray, budget: Budget, extra: Budget,
    *, worth: float, rough: bool = False,
) -> bool:  # fmt: skip
    """Choose a column for each block within the limits, or with the least violation; False if a block has no
    column. Gains of less than `worth` are not searched for; a `rough` choice skips the MIP. `extra` is the
    part of the budget for the MIP, and of a rough choice for more blocks if rows are violated with few."""
    if shares.begin(prices, lasting=not rough) is None:
        return False
    room = _room(shares.slopes(POLISHED, REACH)) if np.any(shares.steerable) else np.zeros(len(limit))
    most, count, best, moves = max(LP_BLOCKS // max(1, len(limit)), LP_BLOCKS_PER_ROW), 0, np.inf, None
    more = extra if rough else budget  # for wider LPs
    while moves is None or (best > 0.0 and not more.over):
        near = _Near(shares.core(most), limit)
        if near.columns.count == count:
            break
        choice = Choice(near.columns, near.first, highest, forgiven(limit), room)
        if near.columns.size:
            choice.relax(prices, more if moves else budget)
            if not rough or choice.missed() > 0.0:
                choice.decide(extra, worth)
        if moves is None or choice.missed() < best:
            best, moves = choice.missed(), near.moves(choice.chosen)
        most, count = MORE * most, near.columns.count
    if moves is not None:
        shares.put(moves)
    if np.any(shares.steerable):
        polish(shares, limit, highest, budget)
    return True


def lp_prices(
    shares: Shares, prices: FloatArray, limit: FloatArray, highest: FloatArray, budget: Budget
) -> FloatArray | None:
    """The prices of the LP over all columns; None without a column for each block, or time."""
    if shares.begin(prices, lasting=False) is None:
        return None
    near = _Near(shares.core(sum(shares.counts)), limit)
    found = near.columns.relaxed(budget, highest)[1] if near.columns.size else None
    return None if found is None else found.prices


class _Near:
    """Columns of the blocks nearest to indifference, concatenated, and the one that each block has."""

    def __init__(self, parts: list[CoreColumns], limit: FloatArray) -> None:
        self._part = np.repeat(np.arange(len(parts)), [len(part.block) for part in parts])
        self._block, self._place, cost, use, self.first = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("block", "place", "cost", "use", "chosen")
        )
        self._parts = len(parts)
        blocks, owner = np.unique(np.stack([self._part, self._block], axis=1), axis=0, return_inverse=True)
        left = limit - np.sum([part.kept for part in parts], axis=0)
        scale = np.maximum(np.abs(use).max(axis=0, initial=0.0), 1e-9)
        shared = SharedColumns.none(len(limit))
        self.columns = Columns(len(blocks), left, scale, shared, owner.ravel(), cost, use)

    def moves(self, chosen: IntArray) -> list[tuple[IntArray, IntArray]]:
        """For each share: blocks that change, and their new columns."""
        changed = chosen[~self.first[chosen]]
        mine = [changed[self._part[changed] == number] for number in range(self._parts)]
        return [(self._block[of_one], self._place[of_one]) for of_one in mine]


class Choice:
    """One column for each block."""

    def __init__(
        self,
        columns: Columns,
        first: BoolArray,
        highest: FloatArray,
        forgiven: FloatArray,
        room: float | FloatArray = 0.0,
    ) -> None:
        """Begins with the `first` column of each block. Rows may be violated by (R,) `forgiven`; columns need
        to satisfy an equation only within `room`, if small steps correct the rest."""
        self.columns, self._highest, self._forgiven = columns, highest, forgiven
        self.chosen = self._of_blocks(first)
        reach = np.abs(columns.use).max(axis=0, initial=0.0)
        self._band = np.where(self._equations, np.minimum(reach, room), 0.0)
        self._reduced, self._weight = columns.cost, first.astype(float)
        self._relaxed = -np.inf

    @property
    def _equations(self) -> BoolArray:
        """(R,) sides that are equations."""
        limit, use = self.columns.limit, self.columns.use
        opposite = limit[:, None] == -limit
        for one, other in np.argwhere(opposite):
            opposite[one, other] = np.array_equal(use[:, one], -use[:, other])
        return np.asarray(opposite.any(axis=1))

    def _of_blocks(self, flags: BoolArray) -> IntArray:
        """(blocks,) the flagged column of each."""
        chosen = np.zeros(self.columns.count, dtype=np.int64)
        chosen[self.columns.owner[flags]] = np.flatnonzero(flags)
        return chosen

    def _beyond(self, use: FloatArray) -> FloatArray:
        """The penalty of (..., R) uses beyond the limits, at the highest prices."""
        columns = self.columns
        over = use - columns.limit - self._band
        return np.asarray(np.where(over > self._forgiven, over, 0.0) @ self._highest)

    def missed(self) -> float:
        """The violation of the chosen columns."""
        return float(self._beyond(self.columns.use[self.chosen].sum(axis=0)))

    @property
    def value(self) -> float:
        """The cost of the choice."""
        return float(self.columns.cost[self.chosen].sum())

    def _take(self, chosen: IntArray) -> None:
        """Accept another choice if it violates less, or costs no more."""
        before, standing = self.chosen, (self.missed(), self.value)
        self.chosen = chosen
        if (self.missed(), self.value) > standing:
            self.chosen = before

    def relax(self, prices: FloatArray, budget: Budget) -> None:
        """Solve the LP and make its fractions whole by swaps."""
        columns, before = self.columns, self.chosen
        status, found = columns.relaxed(budget, self._highest)
        if found is not None:
            self._weight = found.weight
            order, rank = columns.ranked(-found.weight)
            self.chosen = order[rank == 0]
        if found is not None and status is MipStatus.OPTIMAL:
            prices, self._relaxed = found.prices, found.value
        self._reduced = columns.cost + columns.use @ prices
        self._swap()
        self._take(before)

    def _swap(self) -> None:
        """Exchange columns of single blocks, first to satisfy the rows at least cost, then to reduce the
        cost."""
        columns, owner = self.columns, self.columns.owner
        use, priced = columns.use[self.chosen].sum(axis=0), self._reduced
        for _ in range(SWAPS):
            now = self.chosen[owner]
            missed, other = float(self._beyond(use)), self._beyond(use + columns.use - columns.use[now])
            if missed > 0.0:
                mends = missed - other
                helps = mends > LITTLE * missed
                value = mends / np.maximum(mends + (priced - priced[now]).clip(0.0), 1e-300) * helps
                value = np.where(helps & (other <= 0.0), 1.0 + value, value)
            else:
                value = np.where(other <= 0.0, columns.cost[now] - columns.cost, 0.0)
            best = int(value.argmax())
            if value[best] <= LITTLE:
                return
            use = use + columns.use[best] - columns.use[now[best]]
            self.chosen[owner[best]] = best

    def decide(self, budget: Budget, worth: float) -> None:
        """Solve a MIP over the blocks with fractions in the LP, and those nearest to indifference. Columns
        whose reduced cost exceeds the gap of the choice are in no better choice."""
        columns, reduced = self.columns, self._reduced
        fraction = np.zeros(columns.count)
        np.maximum.at(fraction, columns.owner, np.minimum(self._weight, 1.0 - self._weight))
        most = MIP_BLOCKS + MIP_BLOCKS_PER_ROW * len(columns.limit) + int(np.count_nonzero(fraction > 1e-6))
        second, base = np.full(columns.count, np.inf), reduced[self.chosen]
        others = np.ones(columns.size, bool)
        others[self.chosen] = False
        np.minimum.at(second, columns.owner[others], np.abs(reduced - base[columns.owner])[others])
        second[fraction > 1e-6] = -1.0
        blocks = np.sort(np.argsort(second, kind="stable")[:most])
        rest = np.setdiff1d(np.arange(columns.count), blocks)
        may_pay = np.isin(columns.owner, blocks)
        if self.missed() <= 0.0:
            least = np.full(columns.count, np.inf)
            np.minimum.at(least, columns.owner, reduced)
            room = self.value - self._relaxed + LITTLE * (1.0 + abs(self.value))
            may_pay &= (reduced <= least[columns.owner] + room) | ~others
        mine = np.flatnonzero(may_pay)
        left = columns.limit - columns.use[self.chosen[rest]].sum(axis=0) + self._band
        owner = np.searchsorted(blocks, columns.owner[mine])
        scale = np.maximum(np.abs(columns.use[mine]).max(axis=0, initial=0.0), 1e-9)
        part = Columns(len(blocks), left, scale, columns.shared, owner, columns.cost[mine], columns.use[mine])
        found = part.whole(budget, (~others[mine]).astype(float), worth)
        if found is not None:
            chosen, taken = self.chosen.copy(), mine[found > 0.5]
            chosen[columns.owner[taken]] = taken
            self._take(chosen)


def forgiven(limit: FloatArray) -> FloatArray:
    """(R,) the allowed violation of each limit."""
    return np.minimum(LITTLE * (1.0 + np.abs(limit)), 0.5 * TOLERANCE)


def _room(parts: list[Slopes]) -> FloatArray:
    """(R,) half of the possible change of each side's use by small steps of these blocks."""
    taken = [
        np.minimum(part.use * part.lower[:, None], part.use * part.upper[:, None]).sum(axis=(0, 2))
        for part in parts
    ]
    return np.asarray(-0.5 * np.sum(taken, axis=0))


def polish(shares: Shares, limit: FloatArray, highest: FloatArray, budget: Budget) -> None:
    """Take the shortest steps of some blocks that correct violated rows to first order. Blocks whose step
    violates a condition stay, and the next LP leaves them out."""
    use, reach = shares.uses(), REACH
    for _ in range(POLISHES):
        if not np.any(use > limit + forgiven(limit)):
            return
        steps = shortest_steps(shares.slopes(POLISHED, reach), limit - use, highest, budget)
        if steps is None:
            return
        use = shares.step(steps)
