"""Large neighbourhood search: relax, fix what comes out integral, then free a few components at a time.

    relax: sequential LP with the integers relaxed, to a point z whose integers are mostly integral
    RENS:  a MILP over the integers that are not, networks linearised at z
    LNS:   from the incumbent, free the integers of one critical component and a few others, MILP, repeat

A MILP over ten thousand binaries and a trust region finds nothing; one over a few hundred is quick.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.options import require_count, require_flags
from dovetail.linearised.descent import Descent, DescentOptions
from dovetail.linearised.mixed_integer_descent import INTEGRAL
from dovetail.linearised.scaled_problem import ScaledProblem, scaled_problem
from dovetail.linearised.starts import Starts
from dovetail.linearised.trust_region import TrustRegionSubproblem
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.progress import Progress
from dovetail.structure.components import NOBODY
from dovetail.structure.structure import structure_of

RELAXED_STARTS, RELAX_SHARE = 4, 0.15
"""Descents of the relaxed problem, and their part of the time left: the first that ends within it counts."""
RELAXED_TOLERANCE = 1e-5
"""Of those descents: what is rounded afterwards need not be polished."""
RENS_SHARE = 0.2
"""Of the time left, for one MILP towards a first point: four of them leave time for the neighbourhoods."""
RENS_FREED = (0.0, 0.1, 0.3, 1.0)
"""Parts of the integers that came out integral, freed too in turn: they may be wrong."""
RENS_RADIUS, LNS_RADIUS = 1.0, 0.3
"""Trust regions of the MILPs: the whole box towards a first point, near the incumbent from then on."""
LNS_SECONDS = 2.0
"""For one neighbourhood: one that takes longer is too large, and many are to be searched."""
DESCENT_RADIUS = 0.2
"""Of the descents before and after a MILP, as of any other (SequentialLinear)."""
PENALTY_FACTOR = 100.0
"""Penalties of the MILPs, times those of descents, which grow on the way: a MILP has one step only."""
FIRST_RANDOM, MORE_AFTER, QUICK_SECONDS = 5, 8, 1.0
"""Random components beside the critical one; one more after so many failures quicker than this: what is
searched quickly and in vain is too small."""
PRICED = 1e-9
"""Duals above this make a component critical; below is the LP's own tolerance."""


@dataclass(frozen=True)
class Neighbourhood:
    """Options of the method.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0], integer=[True, False]))
    >>> block = problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    >>> dt.solve(problem, dt.Neighbourhood(rounds=1), log=False).objective
    -6.0
    """

    rounds: int | None = None
    """Neighbourhoods to search; None: until the time is over or `patience` of them brought nothing."""
    patience: int = 40
    relax: bool = True
    """Begin with the relaxation, also where there is an incumbent."""

    name = "neighbourhood"

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_count("Neighbourhood: rounds", self.rounds, at_least=1)
        require_count("Neighbourhood: patience", self.patience, at_least=1)
        require_flags("Neighbourhood", self, "relax")

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Relax and fix, then one neighbourhood after the other."""
        search = LargeNeighbourhoodSearch(context, context.once(scaled_problem))
        progress = Progress(context, self.rounds, self.patience)
        while True:
            first = self.relax and progress.done == 0
            outcome = progress.record(search.relax() if first else search.search())
            if outcome is not None:
                return outcome


class LargeNeighbourhoodSearch:
    """Relaxation, RENS and LNS over one problem."""

    def __init__(self, context: SolveContext, scaled: ScaledProblem) -> None:
        self._context, self._scaled = context, scaled
        self._components = context.once(structure_of).parts
        self._integers = np.flatnonzero(scaled.free_integers)
        seed, threads, stopwatch = context.seed, context.threads, context.stopwatch
        held = DescentOptions()
        self._lp = TrustRegionSubproblem(
            scaled, stopwatch, integer=False, bundle_size=held.bundle_size, seed=seed, threads=threads
        )
        self._milp = TrustRegionSubproblem(scaled, stopwatch, integer=True, seed=seed, threads=threads)
        self._rng = np.random.default_rng(seed + 3)
        self._starts = Starts(context, scaled)
        self._descent = Descent(context, scaled, self._lp, held)
        self._random_components, self._failures = FIRST_RANDOM, 0

    def relax(self) -> float:
        """A relaxed local optimum, and the first integral point made of it."""
        context, scaled = self._context, self._scaled
        options = DescentOptions(tolerance=RELAXED_TOLERANCE, hold_integers=False)
        descent = Descent(context, scaled, self._lp, options)
        best = None
        part = context.budget.part(RELAX_SHARE * context.budget.left)
        for k in range(RELAXED_STARTS):
            if best is not None and part.over:
                break
            z = self._starts.random() if k else self._starts.cheapest()
            if z is None:
                continue
            if context.incumbent.x is None:  # of a large host nobody may have asked for a point yet
                context.incumbent.offer(z, "cheapest")
            iterate = descent.run(z, DESCENT_RADIUS, part, "relaxed")
            best = iterate if best is None or iterate.merit < best.merit else best
        if best is None:
            return float("nan")
        integral = np.abs(best.z - np.round(best.z)) <= INTEGRAL
        free = np.zeros(scaled.host.n_columns, dtype=bool)
        free[self._integers] = ~integral[self._integers]
        free[scaled.networks.outputs[scaled.networks.classes]] = True  # a relaxed class says nothing
        for share in RENS_FREED:
            some = free.copy()
            some[self._integers] |= self._rng.random(self._integers.size) < share
            self._sub_mip(best.z, some, RENS_RADIUS, RENS_SHARE * context.budget.left, "rens")
            if context.incumbent.x is not None or context.budget.over:
                break
        return best.merit

    def search(self) -> float:
        """One neighbourhood of the incumbent, or a new start while there is none."""
        best = self._context.incumbent.x
        if best is None:
            return self.relax()
        chosen = self._choose_components(best)
        free = np.zeros(self._scaled.host.n_columns, dtype=bool)
        free[self._integers] = np.isin(self._components.owner[self._integers], [*chosen, NOBODY])
        before, began = self._context.incumbent.objective, self._context.budget.seconds
        merit = self._sub_mip(best, free, LNS_RADIUS, LNS_SECONDS, "lns")
        if self._context.incumbent.objective == before:
            quick = self._context.budget.seconds - began < QUICK_SECONDS
            self._failures += int(quick)
            if self._failures >= MORE_AFTER:
                self._random_components, self._failures = self._random_components + 1, 0
        else:
            self._failures = 0
        return merit

    def _sub_mip(self, z: FloatArray, free: BoolArray, radius: float, seconds: float, source: str) -> float:
        """A MILP over the free integers, networks linearised at `z`; its point goes to the incumbent."""
        scaled, context = self._scaled, self._context
        lower, upper = scaled.host.lower.copy(), scaled.host.upper.copy()
        held = self._integers[~free[self._integers]]
        lower[held] = upper[held] = np.clip(np.round(z[held]), lower[held], upper[held])
        step = self._milp.solve(
            scaled.host.cost,
            *scaled.trust_region(z, radius, lower, upper, integers=False),
            scaled.networks.linearise(z),
            PENALTY_FACTOR * scaled.penalty,
            budget=context.budget.part(seconds),
            start=z if source == "lns" else None,
        )
        if step is None:
            return float("nan")
        if radius < RENS_RADIUS and math.isnan(context.incumbent.offer(step.z, source)):
            return step.value  # a refused neighbour is left; a first point is worth the descent
        iterate = self._descent.run(step.z, DESCENT_RADIUS, context.budget.part(seconds), source)
        context.incumbent.offer(iterate.z, source)
        return iterate.merit

    def _choose_components(self, z: FloatArray) -> IntArray:
        """One component that holds the objective back, and random ones beside it."""
        critical = self._critical(z)
        count = min(self._components.count, 1 + self._random_components)
        every = self._components.count
        first = int(self._rng.choice(critical)) if critical.size else int(self._rng.integers(every))
        others = self._rng.permutation(np.delete(np.arange(every), first))
        return np.concatenate([[first], others[: count - 1]])

    def _critical(self, z: FloatArray) -> IntArray:
        """Components whose network's row has a price while the integers are held."""
        scaled = self._scaled
        lower, upper = scaled.host.lower.copy(), scaled.host.upper.copy()
        lower[self._integers] = upper[self._integers] = np.round(z[self._integers])
        step = self._lp.solve(
            scaled.host.cost,
            lower,
            upper,
            scaled.networks.linearise(z),
            PENALTY_FACTOR * scaled.penalty,
            budget=self._context.budget.part(LNS_SECONDS),
        )
        if step is None:
            return np.empty(0, dtype=np.int64)
        priced = np.abs(step.duals) > PRICED
        owners = self._components.owner[scaled.networks.outputs[priced]]
        return np.unique(owners[owners != NOBODY])
