"""Local search over the integers, judged by the networks themselves, from many starts.

    repeat from a start, or from the best point so far
        descend: all neighbours (a binary turned, two of one choice exchanged, an integer moved by one) are
                 completed by the equality rows and evaluated in one batch; the best one is taken
        chain:   where none is better, up to four moves in a row, compared by the sum of their changes
        kick:    a few random moves away from the local optimum, and descend again
        polish:  beside the integers found, inputs that no integer decides descend by slopes

Idea: across whole steps slopes mislead, but a thousand network evaluations cost a millisecond. Advice: for
problems in which integers choose what the networks see (configurations, selections, chained predictors).
Weakness: integers and continuous columns move in turn, never together (without integers it only looks at the
starts); nothing is proved. Where all values of the integers together fit one batch, all are evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.mip import HAIR
from dovetail.core.options import require_count, require_flags
from dovetail.core.sparse import entries_of
from dovetail.linearised.descent import Descent, DescentOptions
from dovetail.linearised.merit import DECREASE, CompletedMerit
from dovetail.linearised.mixed_integer_descent import INNER_RADIUS
from dovetail.linearised.propagation import Propagation
from dovetail.linearised.scaled_problem import ScaledProblem, scaled_problem
from dovetail.linearised.starts import start_stream
from dovetail.methods.portfolio import Move, Turn, moves_of, take_turns
from dovetail.reformulations.enumerated_inputs import grid
from dovetail.run.budget import Budget
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.stopping import over

MOST_CELLS, MOST_NEIGHBOURS = 4_000_000, 2_000
"""Neighbours times columns, and neighbours, that are evaluated in one batch: 32 MB, and a few milliseconds of
a small network."""
MOST_SAMPLES = 100_000
"""Neighbours times samples of one batch: all networks are asked about each neighbour, which takes a third of
a second with two layers of 64, and no clock is looked at in between (600 plants)."""
FEWEST_NEIGHBOURS = 16
"""However many columns there are: fewer would make a random walk of it."""
CHAIN, MOST_CHAINS = 4, 100
"""Moves of a chain at the most, and chains that go on."""
KICKS = (2, 6)
"""Least and most random moves of a kick: one is undone by the descent, many forget the local optimum."""
STRIDE, LONGEST = 8.0, 1e9
"""Steps of an integer are of 1, 8, 64, ... as far as its bounds reach, which may be endless (two integers in
[-1000, 1000]: 13,000 evaluations where steps of 1 alone took 36,000). Up to eight values have steps of 1."""

Moves = tuple[IntArray, FloatArray]
"""(k, 4) columns and (k, 4) changes; a move of fewer columns has zeros at its end."""


@dataclass(frozen=True)
class IntegerLocalSearch:
    """Options of the method.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0], integer=[True, False]))
    >>> block = problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    >>> dt.solve(problem, dt.IntegerLocalSearch(rounds=1), log=False).objective
    -6.0
    """

    rounds: int | None = None
    """Starts; None: until the time is over or `patience` of them brought nothing."""
    patience: int = 100
    """Starts in a row that brought nothing."""
    kicks: int = 50
    """Of the best local optimum so far, from one start."""
    until_feasible: bool = False
    """Whether to go on beyond `rounds` while no point is known, for as long as there is time and patience."""

    name = "integer-search"

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_count("IntegerLocalSearch: rounds", self.rounds, at_least=1)
        require_count("IntegerLocalSearch: patience", self.patience, at_least=1)
        require_count("IntegerLocalSearch: kicks", self.kicks, at_least=0)
        require_flags("IntegerLocalSearch", self, "until_feasible")

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Search from one start after the other, and from the best point in between."""
        return take_turns(context, moves_of(context, self), self.rounds, until_feasible=self.until_feasible)

    def moves(self, context: SolveContext) -> list[Move]:
        """One: the next start and its kicks."""
        return [IntegerMoves(context, self)]


class IntegerMoves(Move):
    """Local searches from the starts of a solve, and from the best point in between."""

    def __init__(self, context: SolveContext, options: IntegerLocalSearch) -> None:
        super().__init__(options.patience)
        self._context, self._kicks, self._done = context, options.kicks, 0
        scaled = context.once(scaled_problem)
        self._local = LocalSearch(context, scaled)
        self._starts = context.once(start_stream)
        self._descent = Descent(context, scaled, DescentOptions()) if self._local.holds_inputs else None

    def turn(self, context: SolveContext) -> Turn | None:
        """From the next start, or from the best point."""
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
    """Neighbourhood, descent and kicks over one problem."""

    def __init__(self, context: SolveContext, scaled: ScaledProblem) -> None:
        self._context, self._scaled = context, scaled
        self._propagation = Propagation(scaled)
        self.holds_inputs = self._propagation.holds_inputs
        self._rng = np.random.default_rng(context.seed + 4)
        free = scaled.free_integers.copy()
        free[scaled.networks.outputs] = False
        self._free = free
        self._choice_rows = self._find_choice_rows()
        self._assignment = self._find_assignment()
        self._merit = CompletedMerit(scaled)
        samples = sum(block.samples for block in scaled.problem.blocks)
        fitting = min(MOST_CELLS // scaled.host.n_columns, MOST_SAMPLES // max(1, samples))
        self._batch = min(MOST_NEIGHBOURS, max(FEWEST_NEIGHBOURS, fitting))
        self._every = grid(np.flatnonzero(free), scaled.host.lower, scaled.host.upper, self._batch)
        """(k, integers) all values that they can have together; None where a batch cannot hold them."""

    def _find_choice_rows(self) -> list[IntArray]:
        """Equality rows over free binaries alone with equal entries: one of them on, or several."""
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
        """Search from `z`, offering what may beat the incumbent; returns the best point and its merit."""
        if self._every is not None and len(self._every):
            return self._best_of_all(z, 1 + kicks, source)
        best, best_merit = self._descend(self._rounded(z), budget, source)
        ends = {best[self._free].tobytes()}
        for kick in range(kicks if np.any(self._free) else 0):
            if over(self._context.incumbent, budget) or settled(1 + kick, len(ends)):
                break
            z, merit = self._descend(self._kicked(best), budget, source)
            ends.add(z[self._free].tobytes())
            if merit < best_merit - DECREASE * (1.0 + abs(best_merit)):
                best, best_merit = z, merit
        return best, best_merit

    def _best_of_all(self, z: FloatArray, most: int, source: str) -> tuple[FloatArray, float]:
        """All values of the integers beside the other columns of `z`; the best ones are offered, `most` of
        them while none is accepted."""
        assert self._every is not None
        Z = np.repeat(z[None], len(self._every), axis=0)
        Z[:, self._free] = self._every
        merits = self._merits(Z)
        best = np.argsort(merits, kind="stable")
        for k in best[:most]:
            self._offer(Z[k], float(merits[k]), source)
        return Z[best[0]], float(merits[best[0]])

    def _rounded(self, z: FloatArray) -> FloatArray:
        """Whole numbers; in each choice as many on as the fractions add up to, the largest ones."""
        z = z.copy()
        for row in self._choice_rows:
            count = round(float(z[row].sum()))
            order = row[np.argsort(-z[row], kind="stable")]
            z[order[:count]], z[order[count:]] = 1.0, 0.0
        z[self._free] = np.round(z[self._free])
        return z

    def _descend(self, z: FloatArray, budget: Budget, source: str) -> tuple[FloatArray, float]:
        """To a point none of whose neighbours is better, nor any chain of moves that was tried."""
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
            k = int(np.argmin(merits))
            if merits[k] < merit - DECREASE * (1.0 + abs(merit)):
                z, merit = Z[k].copy(), float(merits[k])
                continue
            chain = self._chain(z, Z, merits, merit, budget)
            if chain is None:
                break  # of all neighbours, or of those that were drawn
            z, merit = chain
        self._offer(z, merit, source)
        return z, merit

    def _chain(
        self, z: FloatArray, Z: FloatArray, merits: FloatArray, merit: float, budget: Budget
    ) -> tuple[FloatArray, float] | None:
        """A better point several moves away, or None.

        What a move changes at `z` it changes nearly as much elsewhere: sums exactly, outputs of networks to
        first order. So chains are compared by sums of changes, and the best of them evaluated.
        """
        wide = min(MOST_CHAINS, MOST_CELLS // Z.size)
        if wide == 0:
            return None
        changes = Z - z
        chains = Z[np.argsort(merits, kind="stable")[:wide]]
        for _ in range(CHAIN - 1):
            if budget.over:
                return None
            further = (chains[:, None] + changes).reshape(-1, z.size)
            self._propagation.fill(further, predict=False)
            expected = self._merit.of(further)
            likely = np.argsort(expected, kind="stable")[: len(Z)]
            found = further[likely]
            merits = self._merits(found)
            order = np.argsort(merits, kind="stable")
            if merits[order[0]] < merit - DECREASE * (1.0 + abs(merit)):
                return found[order[0]].copy(), float(merits[order[0]])
            _, first = np.unique(found[order][:, self._free], axis=0, return_index=True)
            chains = found[order[np.sort(first)[:wide]]]
        return None

    def _offer(self, z: FloatArray, merit: float, source: str) -> None:
        incumbent, host = self._context.incumbent, self._scaled.host
        known = np.inf if incumbent.x is None else self._context.problem.mip.sign * incumbent.objective
        if merit + host.offset < known - HAIR * (1.0 + abs(known) if np.isfinite(known) else 1.0):
            incumbent.offer(z, source)

    def _merits(self, Z: FloatArray) -> FloatArray:
        """(T,) of points completed in place."""
        self._propagation.fill(Z)
        return self._merit.of(Z)

    def _moves(self, z: FloatArray) -> Moves:
        """The neighbourhood: swaps within a choice row, or between two; steps of integers in no such row."""
        host = self._scaled.host
        columns, changes = [np.empty((0, 4), dtype=np.int64)], [np.empty((0, 4))]
        alone = self._free.copy()
        for row in self._choice_rows:
            alone[row] = False
        if self._assignment is not None:
            four = self._swaps(z)
            columns.append(four)
            changes.append(np.tile([-1.0, -1.0, 1.0, 1.0], (len(four), 1)))
        for row in self._choice_rows if self._assignment is None else ():
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

    def _find_assignment(self) -> tuple[IntArray, IntArray, dict[tuple[int, int], int]] | None:
        """Where each binary is in two choice rows, as in an assignment (its job's, its machine's): which two.

        First and second row of each column, and the column of each pair of rows.
        """
        count = np.zeros(self._free.size, dtype=np.int64)
        both = np.full((self._free.size, 2), -1)
        for number, row in enumerate(self._choice_rows):
            if np.any(count[row] == 2):
                return None
            both[row, count[row]] = number
            count[row] += 1
        inside = np.flatnonzero(count)
        if inside.size == 0 or np.any(count[inside] != 2):
            return None
        column_of = {(int(a), int(b)): int(j) for j, (a, b) in zip(inside, both[inside], strict=True)}
        return both[:, 0], both[:, 1], column_of

    def _swaps(self, z: FloatArray) -> IntArray:
        """Two binaries that are on, swapped: both choice rows of each keep their sums."""
        assert self._assignment is not None
        first, second, column_of = self._assignment
        on = np.flatnonzero((first >= 0) & (z > 0.5))
        moves = []
        if on.size * (on.size - 1) <= 4 * self._batch:
            pairs = np.stack(np.triu_indices(on.size, 1), axis=1)
        else:
            pairs = self._rng.integers(on.size, size=(2 * self._batch, 2))
        for p, q in on[pairs]:
            r, s = column_of.get((first[p], second[q])), column_of.get((first[q], second[p]))
            if r is not None and s is not None and len({p, q, r, s}) == 4:
                moves.append((p, q, r, s))
        return np.array(moves, dtype=np.int64).reshape(-1, 4)

    def _kicked(self, z: FloatArray) -> FloatArray:
        """A few random moves away."""
        z = z.copy()
        for _ in range(int(self._rng.integers(*KICKS, endpoint=True))):
            columns, changes = self._moves(z)
            if len(columns):
                k = int(self._rng.integers(len(columns)))
                for side in range(4):
                    z[columns[k, side]] += changes[k, side]
        return z


def settled(searches: int, optima: int) -> bool:
    """Whether so many local searches, which ended in so many different optima, have probably found all.

    After n searches with w optima the expected number of all optima is w (n - 1) / (n - w - 2); this asks
    whether it is at most w + 1/2 (Boender and Rinnooy Kan, Bayesian stopping rules for multistart global
    optimization methods, Mathematical Programming 37, 1987).

    >>> settled(7, 1), settled(6, 1), settled(50, 5)
    (True, False, False)
    """
    return searches >= 2 * optima**2 + 3 * optima + 2
