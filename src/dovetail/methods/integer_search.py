"""Local search over the integers, judged by the networks themselves, from many starts.

    repeat from a start, or from the best point so far
        descend: all neighbours (a binary turned, two of one choice exchanged, an integer moved by one) are
                 completed by the equality rows and evaluated in one batch; the best one is taken
        path:    further moves, each the best by the sum of the changes, while that sum falls
        chain:   if no neighbour is better, up to four consecutive moves, compared by the sum of their changes
        kick:    a few random moves away from the local optimum, and descend again
        polish: with these integers, inputs that integers do not determine descend by gradients

Idea: across whole steps slopes mislead, but a thousand network evaluations cost a millisecond. Advice: for
problems in which integers choose the networks' inputs (configurations, selections, chained predictors).
Weakness: integers and continuous columns move in turn, never together (without integers only the starts are
evaluated); nothing is proved. Where all values of the integers together fit one batch, all are evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import HAIR
from dovetail.core.options import require_count, require_flags
from dovetail.core.sparse import entries_of, times
from dovetail.linearised.descent import INNER_RADIUS, Descent, DescentOptions
from dovetail.linearised.propagation import Propagation
from dovetail.linearised.scaled_problem import (
    DECREASE,
    ROUNDING,
    CompletedMerit,
    ScaledProblem,
    scaled_problem,
)
from dovetail.linearised.starts import start_stream
from dovetail.methods.portfolio import Move, Turn, moves_of, take_turns
from dovetail.run import work
from dovetail.run.budget import Budget
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.incumbent import over
from dovetail.structure.boxes import grid

MOST_CELLS, MOST_NEIGHBOURS = 4_000_000, 2_000
"""Neighbours times columns, and neighbours, evaluated in one batch: 32 MB, and a few milliseconds of a small
network."""
MOST_SAMPLES = 100_000
"""Neighbours times samples of one batch: a third of a second with two layers of 64, during which no clock is
checked (600 plants)."""
FEWEST_NEIGHBOURS = 16
"""Smallest number of neighbours: fewer would make a random walk."""
CHAIN, MOST_CHAINS = 4, 100
"""Largest number of moves in a chain, and of chains that are continued."""
LONGEST_PATH, ON_THE_WAY = 64, 7
"""Number of moves that follow an improvement before all neighbours are evaluated again (dispatch of 240
jobs: a better point after 8 s than single moves after 20), and of points of this path that are evaluated."""
STILL = 1e-9
"""Relative to a row's largest entry: smaller changes are rounding."""
KICKS = (2, 6)
"""Smallest and largest number of random moves of a kick."""
STRIDE, LONGEST = 8.0, 1e9
"""Steps of an integer are 1, 8, 64, ... up to its bounds, which may be infinite (two integers in [-1000,
1000]: 13,000 evaluations instead of 36,000 with steps of 1). Up to eight values have steps of 1."""
STEP_EFFORT, CELL_EFFORT = 1e-4, 1.7e-8
"""Effort in seconds of a level of sums, and of each number in it, fitted on six problems (see
`Work.effort`)."""
NEIGHBOURS_EFFORT = 1.2e-3
"""The same for all neighbours of a point, whatever their number (0.8 to 2 ms on five problems)."""

Moves = tuple[IntArray, FloatArray]
"""(k, 4) columns and (k, 4) changes; a move of fewer columns has zeros at its end."""


class Exchanges(NamedTuple):
    """Binaries in two choice rows each, as in an assignment: a job's and a machine's."""

    job: IntArray
    """(n,) the job of each column, -1 outside assignments."""
    machine: IntArray
    column: IntArray
    """(rows, rows) the column of a job and a machine, -1 without one."""


@dataclass(frozen=True)
class IntegerLocalSearch:
    """Local search over the integers; the predictors evaluate the neighbours in batches.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0], integer=[True, False]))
    >>> block = problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    >>> dt.solve(problem, dt.IntegerLocalSearch(rounds=1), log=False).objective
    -6.0
    """

    rounds: int | None = None
    """Number of starts; None: until the time is over or `patience` starts brought no improvement."""
    patience: int = 100
    """Number of starts in a row without progress."""
    kicks: int = 50
    """Number of kicks of the best local optimum from one start."""
    until_feasible: bool = False
    """Whether to continue beyond `rounds` while no solution is known, as long as time and patience last."""

    name = "integer-search"

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_count("IntegerLocalSearch: rounds", self.rounds, at_least=1)
        require_count("IntegerLocalSearch: patience", self.patience, at_least=1)
        require_count("IntegerLocalSearch: kicks", self.kicks, at_least=0)
        require_flags("IntegerLocalSearch", self, "until_feasible")

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Search from one start after the other, and from the incumbent in between."""
        return take_turns(context, moves_of(context, self), self.rounds, until_feasible=self.until_feasible)

    def moves(self, context: SolveContext) -> list[Move]:
        """One move: the next start with its kicks."""
        return [IntegerMoves(context, self)]


class IntegerMoves(Move):
    """Local searches from the starts of a solve, and from the incumbent in between."""

    def __init__(self, context: SolveContext, options: IntegerLocalSearch) -> None:
        super().__init__(options.patience)
        self._context, self._kicks, self._done = context, options.kicks, 0
        scaled = context.once(scaled_problem)
        self._local = LocalSearch(context, scaled)
        self._starts = context.once(start_stream)
        self._descent = Descent(context, scaled, DescentOptions()) if self._local.holds_inputs else None

    def turn(self, context: SolveContext) -> Turn | None:
        """A search from the next start, or from the incumbent."""
        z, _ = next(self._starts, (None, ""))
        if z is None:
            return None
        best = self._context.incumbent.x
        begin = z if best is None or self._done % 2 else best
        self._done += 1
        found, merit = self._local.run(begin, self._kicks, context.budget, "switch")
        if self._descent is not None:
            merit = min(merit, self._descent.run(found, INNER_RADIUS, context.budget, "beside").merit)
        return Turn(merit)


class LocalSearch:
    """Neighbourhood, descent and kicks for one problem."""

    def __init__(self, context: SolveContext, scaled: ScaledProblem) -> None:
        self._context, self._scaled = context, scaled
        self._propagation = Propagation(scaled)
        self.holds_inputs = self._propagation.holds_inputs
        self._rng = np.random.default_rng(context.seed + 4)
        free = scaled.free_integers.copy()
        free[scaled.networks.outputs] = False
        self._free = free
        self._choice_rows = self._find_choice_rows()
        self._exchanges = self._find_exchanges()
        self._merit = CompletedMerit(scaled)
        samples = sum(block.samples for block in scaled.problem.blocks)
        fitting = min(MOST_CELLS // scaled.host.n_columns, MOST_SAMPLES // max(1, samples))
        self._batch = min(MOST_NEIGHBOURS, max(FEWEST_NEIGHBOURS, fitting))
        self._every = grid(np.flatnonzero(free), scaled.host.lower, scaled.host.upper, self._batch)
        """(k, integers) all joint values of the integers; None if a batch cannot hold them."""

    def _find_choice_rows(self) -> list[IntArray]:
        """Equations over free binaries alone with equal entries: one of them is 1, or several are."""
        host = self._scaled.host
        rows = []
        binary = self._free & (host.lower == 0.0) & (host.upper == 1.0)
        for i in np.flatnonzero(host.row_lower == host.row_upper):
            columns, values = entries_of(host.A, i)
            moving = columns[self._free[columns]]
            fixed = host.lower[columns] == host.upper[columns]
            if np.all(binary[columns] | fixed) and moving.size > 1 and np.ptp(values) == 0.0:
                rows.append(moving)
        return rows

    def run(self, z: FloatArray, kicks: int, budget: Budget, source: str) -> tuple[FloatArray, float]:
        """Search from `z`, offering improvements; returns the best point and its merit."""
        if self._every is not None and len(self._every):
            return self._best_of_all(z, 1 + kicks, source)
        best, best_merit = self._descend(self._rounded(z), budget, source)
        ends = {best[self._free].tobytes()}
        for kick in range(kicks if np.any(self._free) else 0):
            if over(self._context.incumbent, budget) or settled(1 + kick, len(ends)):
                break
            z, merit = self._descend(self._random_kick(best), budget, source)
            ends.add(z[self._free].tobytes())
            if merit < best_merit - DECREASE * (1.0 + abs(best_merit)):
                best, best_merit = z, merit
        return best, best_merit

    def _best_of_all(self, z: FloatArray, most: int, source: str) -> tuple[FloatArray, float]:
        """Evaluate all values of the integers with the other columns of `z`; the best are offered, at most
        `most` of them, until one is accepted."""
        assert self._every is not None
        Z = np.repeat(z[None], len(self._every), axis=0)
        Z[:, self._free] = self._every
        merits = self._merits(Z)
        best = np.argsort(merits, kind="stable")
        for k in best[:most]:
            self._offer(Z[k], float(merits[k]), source)
        return Z[best[0]], float(merits[best[0]])

    def _rounded(self, z: FloatArray) -> FloatArray:
        """Rounded integers; in each choice as many are 1 as the sum of the fractions, the largest ones."""
        z = z.copy()
        for row in self._choice_rows:
            count = round(float(z[row].sum()))
            order = row[np.argsort(-z[row], kind="stable")]
            z[order[:count]], z[order[count:]] = 1.0, 0.0
        z[self._free] = np.round(z[self._free])
        return z

    def _descend(self, z: FloatArray, budget: Budget, source: str) -> tuple[FloatArray, float]:
        """Descend to a point without better neighbours, or better chains of moves among those tried."""
        Z = z[None].copy()
        merit = float(self._merits(Z)[0])
        z = Z[0]
        while not budget.over:
            columns, changes = self._moves(z)
            if len(columns) == 0:
                break
            if len(columns) > self._batch:
                some = self._rng.choice(len(columns), self._batch, replace=False)
                columns, changes = columns[some], changes[some]
            Z = np.repeat(z[None], len(columns), axis=0)
            each = np.arange(len(columns))
            for side in range(4):
                Z[each, columns[:, side]] += changes[:, side]
            merits = self._merits(Z)
            further = self._further(z, Z, merits, (columns, changes), merit, budget, source)
            if further is None:
                break  # of all neighbours, or of a random sample
            z, merit = further
        self._offer(z, merit, source)
        return z, merit

    def _further(
        self,
        z: FloatArray,
        Z: FloatArray,
        merits: FloatArray,
        moves: Moves,
        merit: float,
        budget: Budget,
        source: str,
    ) -> tuple[FloatArray, float] | None:
        """A better point, one or several moves away, or None: ranked by sums of changes, the best
        evaluated."""
        work.count(effort=NEIGHBOURS_EFFORT)
        sound = np.isfinite(merits)
        Z, merits, moves = Z[sound], merits[sound], (moves[0][sound], moves[1][sound])
        if len(Z) == 0:
            return None
        changes = Z - z
        changes[:, self._propagation.pushed] = 0.0
        sums = ChainSums(self._merit, self._propagation, changes, moves)
        better = merit - DECREASE * (1.0 + abs(merit))
        k = int(np.argmin(merits))
        if merits[k] < better:
            return self._path(sums, Z[k], float(merits[k]), changes)
        self._offer(z, merit, source)
        chains = Z[np.argsort(merits, kind="stable")[: min(MOST_CHAINS, MOST_CELLS // (len(Z) * sums.width))]]
        for _ in range(CHAIN - 1 if len(chains) else 0):
            if budget.over:
                return None
            before, move, _ = sums.likely(chains, len(Z))
            found = chains[before] + changes[move]
            merits = self._merits(found)
            order = np.argsort(merits, kind="stable")
            if merits[order[0]] < better:
                return found[order[0]].copy(), float(merits[order[0]])
            _, first = np.unique(found[order][:, self._free], axis=0, return_index=True)
            chains = found[order[np.sort(first)[:MOST_CHAINS]]]
        return None

    def _path(
        self, sums: ChainSums, z: FloatArray, merit: float, changes: FloatArray
    ) -> tuple[FloatArray, float]:
        """Continue from a better neighbour, each move the best by sums; the best point on the way. The
        neighbour keeps the merit by which it was chosen, because batches of another size differ slightly."""
        path, expected = [z], np.inf
        while len(path) <= LONGEST_PATH:
            _, move, worth = sums.likely(path[-1][None], 1)
            if not worth[0] < expected - DECREASE * (1.0 + abs(worth[0])):
                break
            expected = float(worth[0])
            path.append(path[-1] + changes[move[0]])
        some = np.unique(np.geomspace(1, max(1, len(path) - 1), min(ON_THE_WAY, self._batch)).astype(int))
        found = np.array(path)[some[some < len(path)]]
        if len(found):
            merits = self._merits(found)
            k = int(np.argmin(merits))
            if merits[k] < merit - DECREASE * (1.0 + abs(merit)):
                return found[k], float(merits[k])
        return z, merit

    def _offer(self, z: FloatArray, merit: float, source: str) -> None:
        incumbent, host = self._context.incumbent, self._scaled.host
        known = np.inf if incumbent.x is None else self._context.problem.mip.sign * incumbent.objective
        if merit + host.offset < known - HAIR * (1.0 + abs(known) if np.isfinite(known) else 1.0):
            incumbent.offer(z, source)

    def _merits(self, Z: FloatArray) -> FloatArray:
        """(T,) merits of points, which are completed in place."""
        self._propagation.fill(Z)
        return self._merit.of(Z)

    def _moves(self, z: FloatArray) -> Moves:
        """The neighbourhood: swaps within a choice row, or between two; steps of other integers."""
        host = self._scaled.host
        columns, changes = [np.empty((0, 4), dtype=np.int64)], [np.empty((0, 4))]
        alone = self._free.copy()
        for row in self._choice_rows:
            alone[row] = False
        if self._exchanges.column.size:
            four = self._swaps(z)
            columns.append(four)
            changes.append(np.tile([-1.0, -1.0, 1.0, 1.0], (len(four), 1)))
        for row in self._choice_rows:
            if self._exchanges.job[row[0]] >= 0:
                continue
            on, off = row[z[row] > 0.5], row[z[row] <= 0.5]
            pairs = np.stack(np.meshgrid(on, off, indexing="ij"), axis=-1).reshape(-1, 2)
            columns.append(np.tile(pairs, (1, 2)))
            changes.append(np.tile([-1.0, 1.0, 0.0, 0.0], (len(pairs), 1)))
        widest, length = float(np.max((host.upper - host.lower)[alone], initial=0.0)), 1.0
        while length <= min(widest, LONGEST):
            for step in (length, -length):
                j = np.flatnonzero(alone & (z + step >= host.lower - 0.5) & (z + step <= host.upper + 0.5))
                columns.append(np.tile(j[:, None], (1, 4)))
                changes.append(np.tile([step, 0.0, 0.0, 0.0], (j.size, 1)))
            length *= STRIDE
        return np.concatenate(columns), np.concatenate(changes)

    def _find_exchanges(self) -> Exchanges:
        """Find assignments: choice rows are nodes of a graph, binaries its edges; a binary in a single row
        leads to an artificial node, because the presolve may have removed a row. The nodes then have two
        sides, jobs and machines."""
        count, both = np.zeros(self._free.size, dtype=np.int64), np.full((self._free.size, 2), -1)
        nodes = len(self._choice_rows)
        for number, row in enumerate(self._choice_rows):
            room = row[count[row] < 2]
            both[room, count[room]] = number
            count[row] += 1
        linking, alone = np.flatnonzero(count == 2), np.flatnonzero(count == 1)
        links = sp.coo_array((np.ones(linking.size), both[linking].T), shape=(nodes, nodes))
        _, label = connected_components(links, directed=False)
        both[alone, 1] = nodes + label[both[alone, 0]]
        every = np.flatnonzero((count == 1) | (count == 2))
        every = every[np.isin(label[both[every, 0]], label[both[linking, 0]])]
        nodes += int(label.max(initial=-1)) + 1
        graph = sp.csr_array(sp.coo_array((np.ones(every.size), both[every].T), shape=(nodes, nodes)))
        side, job, machine = np.full(nodes, -1), np.full(count.size, -1), np.full(count.size, -1)
        for start in np.unique(both[every, 0]):
            if side[start] < 0:
                order, before = breadth_first_order(graph, start, directed=False)
                side[start] = 0
                for node in order[1:]:
                    side[node] = 1 - side[before[node]]
        crooked = every[side[both[every, 0]] == side[both[every, 1]]]
        crowded = [number for number, row in enumerate(self._choice_rows) if np.any(count[row] > 2)]
        unfit = label[np.concatenate([both[crooked, 0], np.array(crowded, dtype=np.int64)])]
        every = every[~np.isin(label[both[every, 0]], unfit)]
        first = side[both[every, 0]] == 0
        job[every] = np.where(first, both[every, 0], both[every, 1])
        machine[every] = np.where(first, both[every, 1], both[every, 0])
        column = np.full((nodes, nodes) if every.size else (0, 0), -1)
        if every.size:
            column[job[every], machine[every]] = every
        return Exchanges(job, machine, column)

    def _swaps(self, z: FloatArray) -> IntArray:
        """Two binaries that are 1, exchanged so that the choice rows keep their sums."""
        job, machine, column = self._exchanges
        on = np.flatnonzero((job >= 0) & (z > 0.5))
        if on.size * (on.size - 1) <= 4 * self._batch:
            pairs = np.stack(np.triu_indices(on.size, 1), axis=1)
        else:
            pairs = self._rng.integers(on.size, size=(2 * self._batch, 2))
        p, q = on[pairs].T
        r, s = column[job[p], machine[q]], column[job[q], machine[p]]
        apart = (job[p] != job[q]) & (machine[p] != machine[q]) & (r >= 0) & (s >= 0)
        return np.asarray(np.stack([p, q, r, s], axis=1)[apart])

    def _random_kick(self, z: FloatArray) -> FloatArray:
        """A few random moves away."""
        z = z.copy()
        for _ in range(int(self._rng.integers(*KICKS, endpoint=True))):
            columns, changes = self._moves(z)
            if len(columns):
                k = int(self._rng.integers(len(columns)))
                for side in range(4):
                    z[columns[k, side]] += changes[k, side]
        return z


class ChainSums:
    """The merit of chains of moves, estimated from the sums of their changes. Activities of rows add
    exactly, outputs of networks to first order. Only rows and columns that some move changes are
    considered."""

    def __init__(
        self,
        merit: CompletedMerit,
        propagation: Propagation,
        changes: FloatArray,
        moves: Moves,
    ) -> None:
        """`changes`: (k, n) the changes of all columns by each of `moves`, without pushed columns."""
        host = merit.host
        self._merit, self._moves, self._levels = merit, moves, propagation.pushed_levels
        self._pushed, self._cost = propagation.pushed, changes @ host.cost
        by_rows, scale = times(host.A, changes), merit.row_scale
        moving = np.any(abs(by_rows) > STILL * scale, axis=0)
        moving |= abs(host.A[:, self._pushed]).sum(axis=1) > 0.0
        self._rows, self._by_rows = np.flatnonzero(moving), by_rows[:, moving]
        self._A, self._scale = host.A[self._rows], scale[self._rows]
        bounded = np.isfinite(host.lower) | np.isfinite(host.upper)
        bounded[moves[0]] = False
        self._columns = np.flatnonzero(bounded & np.any(changes != 0.0, axis=0))
        self._by_columns = changes[:, self._columns]

    @property
    def width(self) -> int:
        """Number of quantities per chain."""
        return 1 + self._rows.size + self._columns.size + 4

    def likely(self, chains: FloatArray, most: int) -> tuple[IntArray, IntArray, FloatArray]:
        """The `most` best pairs of a chain and a further move, by their numbers, and their merits."""
        host, which, change = self._merit.host, *self._moves
        bare = chains.copy()
        bare[:, self._pushed] = 0.0
        activity = times(self._A, bare)[:, None] + self._by_rows
        cost = (bare @ host.cost)[:, None] + self._cost
        for level in self._levels:
            value = level.best(activity[..., np.searchsorted(self._rows, level.row_numbers)])
            value = np.where(np.isfinite(value), value, 0.0)
            cost += host.cost[level.column] * value
            activity += value[..., None] * self._A[:, [level.column]].toarray().ravel()
        beyond = np.maximum(host.row_lower[self._rows] - activity, activity - host.row_upper[self._rows])
        missed = np.maximum(0.0, beyond / self._scale - ROUNDING).sum(axis=2)
        for columns, values in (
            (self._columns, bare[:, None, self._columns] + self._by_columns),
            (which, bare[:, which] + change),
        ):
            beyond = np.maximum(host.lower[columns] - values, values - host.upper[columns])
            missed += np.maximum(0.0, beyond - ROUNDING).sum(axis=2)
        work.count(effort=(1 + len(self._levels)) * (STEP_EFFORT + CELL_EFFORT * missed.size * self.width))
        expected = self._merit.with_missed(cost, missed).ravel()
        some = np.argpartition(expected, min(most, expected.size) - 1)[:most]
        return *np.divmod(some, cost.shape[1]), expected[some]


def settled(searches: int, optima: int) -> bool:
    """Whether this number of local searches, with this number of different optima, has probably found all
    optima.

    After n searches with w optima the expected number of all optima is w (n - 1) / (n - w - 2); the test is
    whether it is at most w + 1/2 (Boender and Rinnooy Kan, Bayesian stopping rules for multistart global
    optimization methods, Mathematical Programming 37, 1987).

    >>> settled(7, 1), settled(6, 1), settled(50, 5)
    (True, False, False)
    """
    return searches >= 2 * optima**2 + 3 * optima + 2
