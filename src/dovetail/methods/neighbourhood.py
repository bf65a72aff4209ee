"""Neighbourhoods of the best point: MILPs in which most integers are held, sizes adapted by success.

    relax: sequential LP with the integers relaxed, then a MILP over those not integral: a first solution.
    near: from one integer outward, through rows and networks, the next ones are free. rows: the integers of
    some whole rows are free. repeat: a neighbourhood that is solved without a gain grows, one that is not
    solved in time shrinks

Where the networks can be written as rows (`reformulations/relu_big_m.py`) the MILP is exact, and the signs of
neurons are integers among the others: those held keep the networks in their linear pieces. Other networks are
linear at the best point, within a trust region. Weakness: improvements that need more simultaneous changes
than a MILP of a second can handle are not found; nothing is proved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import Mip
from dovetail.core.options import require_count, require_flags
from dovetail.linearised.descent import INTEGRAL, DescentOptions, MixedIntegerDescent
from dovetail.linearised.scaled_problem import ScaledProblem, scaled_problem
from dovetail.linearised.starts import Starts
from dovetail.methods.portfolio import Move, Turn, moves_of, take_turns
from dovetail.mip.answers import loaded
from dovetail.reformulations.reformulated import Reformulated, reformulate
from dovetail.reformulations.relu_big_m import ReluBigM
from dovetail.run.budget import Budget
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.engine import MipStatus, Quadratic
from dovetail.run.failures import expendable
from dovetail.structure.structure import structure_of

RELAXED_STARTS, RELAX_SHARE = 4, 0.15
"""Number of descents of the relaxed problem, and their share of the time left."""
RELAXED_TOLERANCE = 1e-5
"""Tolerance of those descents, whose result is rounded anyway."""
RENS_SHARE = 0.2
"""Share of the time left for one MILP towards a first point."""
RENS_FREED = (0.0, 0.1, 0.3, 1.0)
"""Fractions of the integers that came out integral, freed too in turn."""
RENS_RADIUS, NEAR_RADIUS = 1.0, 0.3
"""Trust regions of linear MILPs: the whole box towards a first point, near the incumbent from then on."""
SECONDS = 2.0
"""Time limit of a step other than a MILP: an LP or a descent."""
FIRST_SIZE, GROW, SHRINK = 10, 1.2, 0.8
"""Number of free integers at first, and the factors on it after turns without success."""
FIRST_NODES, MORE_NODES = 50, 1.5
"""Node limit of a neighbourhood at first, and the factor on it after a MILP without result."""
DESCENT_RADIUS = 0.2
"""Trust region of the descents before and after a linear MILP."""
PENALTY_FACTOR = 100.0
"""Factor on penalties of linear MILPs: a descent raises penalties from step to step, but a MILP is solved
once."""
MOST_SIGNS = 400
"""Largest number of neurons that can change sign in the exact form; with more each MILP spends its time on
presolve."""
PRICED = 1e-9
"""Larger duals make an output critical; smaller ones are within the LP's tolerance."""


@dataclass(frozen=True)
class Neighbourhood:
    """MILPs around the incumbent, with most integers fixed; begins with relax and fix for many integers.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0], integer=[True, False]))
    >>> block = problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    >>> dt.solve(problem, dt.Neighbourhood(rounds=1), log=False).objective
    -6.0
    """

    rounds: int | None = None
    """Number of neighbourhoods of each kind; None: until the time is over or `patience` neighbourhoods
    brought no improvement."""
    patience: int = 40
    relax: bool = True
    """Begin with the relaxation, also if there is an incumbent."""

    name = "neighbourhood"

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_count("Neighbourhood: rounds", self.rounds, at_least=1)
        require_count("Neighbourhood: patience", self.patience, at_least=1)
        require_flags("Neighbourhood", self, "relax")

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Relax and fix, then one neighbourhood after the other."""
        return take_turns(context, moves_of(context, self), self.rounds)

    def moves(self, context: SolveContext) -> list[Move]:
        """The relaxation, and one move for each kind of neighbourhood."""
        form: _MilpForm | None = context.once(_written_form)
        if form is None and not self.relax and not np.any(context.once(structure_of).free_integers):
            return []
        form = form or context.once(_linear_form)
        moves: list[Move] = [_NearIntegers(context, form, self.patience)] if form.integers.size else []
        if form.whole_rows:
            moves.append(_WholeRows(context, form, self.patience))
        return ([_RelaxedStart(context)] if self.relax else []) + moves


class _MilpForm(ABC):
    """A MIP that equals the problem, exactly or nearly, around the incumbent."""

    mip: Mip
    """In minimisation form; the problem's columns come first."""
    integers: IntArray
    """Its integer columns that can move."""
    whole_rows: dict[int, list[IntArray]]
    """The integers of each row that has several, by their number."""

    def _connect_integers(self, mip: Mip, further: sp.csr_array, host_columns: int) -> None:
        """Connect integers that share rows: `further` has rows of columns in addition to those of the MIP."""
        self.mip = mip
        movable = mip.integer & (mip.upper - mip.lower > 0.5)
        self.integers = np.flatnonzero(movable)
        rows = sp.csr_array(sp.vstack([mip.A, further], format="csr"))
        self.ties = sp.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
        self.tied = sp.csr_array(self.ties.T)
        self.whole_rows = {}
        movable[host_columns:] = False
        count = self.ties[: mip.n_rows] @ movable.astype(float)
        for row in np.flatnonzero(count >= 2.0):
            columns = self.ties.indices[self.ties.indptr[row] : self.ties.indptr[row + 1]]
            self.whole_rows.setdefault(int(count[row]), []).append(columns[movable[columns]])

    @abstractmethod
    def point(self, x: FloatArray) -> FloatArray:
        """A point of the problem as one of the MIP."""

    @abstractmethod
    def search(
        self, z: FloatArray, free: BoolArray, nodes: float, context: SolveContext
    ) -> tuple[float, bool]:
        """Find the best point with all other integers as in `z`, and offer it: its merit, and whether the
        MILP finished."""

    def beginning(self, z: FloatArray, rng: np.random.Generator, context: SolveContext) -> int:
        """The column around which integers are freed."""
        return int(rng.choice(self.integers))

    def held(self, z: FloatArray, free: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Bounds that fix the other integers."""
        lower, upper = self.mip.lower.copy(), self.mip.upper.copy()
        held = self.integers[~free[self.integers]]
        lower[held] = upper[held] = np.clip(np.round(z[held]), lower[held], upper[held])
        return lower, upper


class _ExactForm(_MilpForm):
    """Networks written as constraints: exact."""

    def __init__(self, context: SolveContext, written: Reformulated) -> None:
        self._written = written
        host, mip = context.problem.mip, written.problem.mip.minimised()
        self._connect_integers(mip, sp.csr_array((0, mip.n_columns)), host.n_columns)
        self._session = loaded("highs", mip, seed=context.seed, threads=context.threads)
        self._objective = Quadratic.linear(mip.cost, mip.offset)

    def point(self, x: FloatArray) -> FloatArray:
        return self._written.lift(x)

    def search(
        self, z: FloatArray, free: BoolArray, nodes: float, context: SolveContext
    ) -> tuple[float, bool]:
        incumbent = context.incumbent
        with context.stopwatch.measure("engine"):
            answer = self._session.solve(
                self._objective,
                budget=context.budget.part(context.budget.left, nodes=nodes),
                start=z,
                gap=incumbent.gap.of_engine,
                bounds=self.held(z, free),
                cutoff=incumbent.cutoff,
            )
        if answer.x is not None and answer.value < incumbent.cutoff:
            incumbent.offer(self._written.restrict(answer.x), "lns")
        return answer.value, answer.status is not MipStatus.LIMIT


class _LinearForm(_MilpForm):
    """Networks linearised at the incumbent, within a trust region."""

    def __init__(self, context: SolveContext, scaled: ScaledProblem) -> None:
        self.scaled = scaled
        samples = [
            np.unique(np.concatenate([block.inputs[i], block.outputs[i]]))
            for block in scaled.problem.blocks
            for i in range(block.samples)
        ]
        first = np.cumsum([0, *map(len, samples)])
        columns = np.concatenate([np.empty(0, dtype=np.int64), *samples])
        shape = (len(samples), scaled.host.n_columns)
        self._connect_integers(
            scaled.host, sp.csr_array((np.ones(columns.size), columns, first), shape=shape), shape[1]
        )
        self.descent = MixedIntegerDescent(context, scaled, DescentOptions())
        self._critical: tuple[FloatArray | None, IntArray] = None, self.integers

    def point(self, x: FloatArray) -> FloatArray:
        return x

    def search(
        self, z: FloatArray, free: BoolArray, nodes: float, context: SolveContext
    ) -> tuple[float, bool]:
        budget = context.budget.part(context.budget.left, nodes=nodes)
        merit = self.sub_mip(z, free, NEAR_RADIUS, budget, context, "lns")
        return merit, not budget.over

    def sub_mip(
        self,
        z: FloatArray,
        free: BoolArray,
        radius: float,
        budget: Budget,
        context: SolveContext,
        source: str,
    ) -> float:
        """A MILP over the free integers with networks linearised at `z`, and a descent from its point."""
        penalty = PENALTY_FACTOR * self.scaled.penalty
        step = self.descent.step(z, radius, self.held(z, free), penalty, budget)
        start, part = z if step is None else step.z, context.budget.part(SECONDS)
        iterate = self.descent.held.run(start, DESCENT_RADIUS, part, source)
        context.incumbent.offer(iterate.z, source)
        return iterate.merit

    def beginning(self, z: FloatArray, rng: np.random.Generator, context: SolveContext) -> int:
        """An output that limits the objective, if there is one: its network's row has a price while the
        integers are fixed."""
        at, columns = self._critical
        if at is not z:
            scaled = self.scaled
            step = self.descent.held.subproblem.solve(
                scaled.host.cost,
                *self.held(z, np.zeros(z.size, dtype=bool)),
                scaled.networks.linearise(z),
                PENALTY_FACTOR * scaled.penalty,
                budget=context.budget.part(SECONDS),
            )
            columns = self.integers
            if step is not None and np.any(np.abs(step.duals) > PRICED):
                columns = scaled.networks.outputs[np.abs(step.duals) > PRICED]
            self._critical = z, columns
        return int(rng.choice(columns))


def _written_form(context: SolveContext) -> _ExactForm | None:
    """None if the networks cannot be written as constraints, or are too large (see `SolveContext.once`)."""
    structure = context.once(structure_of)
    with expendable("networks written out for neighbourhoods"):
        layers = structure.relu_layers
        if layers is not None and layers.unstable <= MOST_SIGNS:
            given = Reformulated.start(context.problem, structure.tight_box, context.relaxed)
            return _ExactForm(context, reformulate(given, (ReluBigM(layers),)))
    return None


def _linear_form(context: SolveContext) -> _LinearForm:
    return _LinearForm(context, context.once(scaled_problem))


class _Neighbourhoods(Move):
    """Neighbourhoods of one kind."""

    def __init__(self, context: SolveContext, form: _MilpForm, patience: int) -> None:
        super().__init__(patience)
        self._context, self._form = context, form
        self._rng = np.random.default_rng(context.seed + 3)
        self._size, self._nodes = float(FIRST_SIZE), float(FIRST_NODES)
        self._closed: FloatArray | None = None
        """The incumbent at which a neighbourhood with all integers free found no improvement."""

    def ready(self, context: SolveContext) -> bool:
        x = self._context.incumbent.x
        return x is not None and x is not self._closed

    def turn(self, context: SolveContext) -> Turn | None:
        """One neighbourhood of the incumbent."""
        context = replace(self._context, budget=context.budget)
        x, form = context.incumbent.x, self._form
        assert x is not None
        z = form.point(x)
        free = np.zeros(form.mip.n_columns, dtype=bool)
        if self._size >= form.integers.size:
            free[form.integers] = True
        else:
            self.pick(free, z, context)
        merit, closed = form.search(z, free, self._nodes, context)
        if context.incumbent.x is x:
            if closed and self._size >= form.integers.size:
                self._closed = x
            self._size = min(self._size * (GROW if closed else SHRINK), float(form.integers.size))
            self._nodes *= 1.0 if closed else MORE_NODES
        return Turn(merit)

    @abstractmethod
    def pick(self, free: BoolArray, z: FloatArray, context: SolveContext) -> None:
        """Mark the integers that are free."""


class _NearIntegers(_Neighbourhoods):
    """Integers connected with one of them."""

    def pick(self, free: BoolArray, z: FloatArray, context: SolveContext) -> None:
        form = self._form
        reached = np.zeros(free.size)
        reached[form.beginning(z, self._rng, context)] = 1.0
        inside = np.flatnonzero(reached)
        while True:
            found = self._rng.permutation(inside[np.isin(inside, form.integers)])
            free[found[: int(self._size) - np.count_nonzero(free)]] = True
            if np.count_nonzero(free) >= int(self._size):
                return
            wider = np.asarray(form.tied @ (form.ties @ reached > 0.0).astype(float)) > 0.0
            inside = np.flatnonzero(wider & (reached == 0.0))
            if inside.size == 0:
                return
            reached[inside] = 1.0


class _WholeRows(_Neighbourhoods):
    """The integers of all rows that contain the same number of integers."""

    def pick(self, free: BoolArray, z: FloatArray, context: SolveContext) -> None:
        rows = self._form.whole_rows[int(self._rng.choice(list(self._form.whole_rows)))]
        for number in self._rng.permutation(len(rows)):
            free[rows[number]] = True
            if np.count_nonzero(free) >= self._size:
                return


class _RelaxedStart(Move):
    """A relaxed local optimum, and the first integral point made of it."""

    def __init__(self, context: SolveContext) -> None:
        super().__init__(patience=RELAXED_STARTS)
        self._context, self._form = context, context.once(_linear_form)
        self._starts = Starts(context, self._form.scaled)
        self._rng = np.random.default_rng(context.seed + 3)
        self._done = 0

    def ready(self, context: SolveContext) -> bool:
        return self._done == 0 or self._context.incumbent.x is None

    def turn(self, context: SolveContext) -> Turn | None:
        """Relaxed descents, and MILPs over more and more integers around the best of them."""
        self._done += 1
        context = replace(self._context, budget=context.budget)
        form, scaled = self._form, self._form.scaled
        descent = form.descent.held.relaxed(RELAXED_TOLERANCE)
        best = None
        part = context.budget.part(RELAX_SHARE * context.budget.left)
        for k in range(RELAXED_STARTS):
            if best is not None and part.over:
                break
            z = self._starts.random() if k else self._starts.cheapest()
            if z is None:
                continue
            if context.incumbent.x is None:  # of a large host, whose point may never be needed
                context.incumbent.offer(z, "cheapest")
            iterate = descent.run(z, DESCENT_RADIUS, part, "relaxed")
            best = iterate if best is None or iterate.merit < best.merit else best
        if best is None:
            return None
        free = np.abs(best.z - np.round(best.z)) > INTEGRAL
        free[scaled.networks.outputs[scaled.networks.classes]] = True  # a relaxed class has no information
        for share in RENS_FREED:
            some = free | (self._rng.random(free.size) < share)
            part = context.budget.part(RENS_SHARE * context.budget.left)
            form.sub_mip(best.z, some, RENS_RADIUS, part, context, "rens")
            if context.incumbent.x is not None or context.budget.over:
                break
        return Turn(best.merit)
