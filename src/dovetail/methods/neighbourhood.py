"""Many integers: relax, fix what comes out whole, then search large neighbourhoods of critical components.

    relax: sequential LP with the integers relaxed, to a point z whose integers are mostly whole
    RENS:  a MILP over the integers that are not, networks linearised at z
    LNS:   from the incumbent, free the integers of one critical component and a few others, MILP, repeat

A MILP over ten thousand binaries and a trust region finds nothing; one over a few hundred is quick.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dovetail.analysis.components import NOBODY
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.options import require_count, require_flags
from dovetail.linearised.descent import Descent, Options
from dovetail.linearised.scaled_problem import ScaledProblem, scaled_problem
from dovetail.linearised.starts import Starts
from dovetail.linearised.trust_region import TrustRegionSubproblem
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.progress import Progress

WHOLE = 1e-6
RELAXED_STARTS, RELAX_SHARE = 4, 0.15
RENS_SHARE = 0.2
LNS_SECONDS, LNS_RADIUS = 2.0, 0.3
FIRST_COMPANY, MORE_AFTER, QUICK = 5, 8, 1.0
"""Random components beside the critical one; one more after so many quick failures."""


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
    """Neighbourhoods to search; None: until the time is over."""
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
    """The programs and components of one problem."""

    def __init__(self, context: SolveContext, scaled: ScaledProblem) -> None:
        self._context, self._scaled = context, scaled
        self._parts = scaled.parts
        self._integers = np.flatnonzero(scaled.free_integers)
        seed, threads, stopwatch = context.seed, context.threads, context.stopwatch
        self._relaxed = TrustRegionSubproblem(
            scaled, stopwatch, integer=False, memory=8, seed=seed, threads=threads
        )
        self._whole = TrustRegionSubproblem(scaled, stopwatch, integer=True, seed=seed, threads=threads)
        self._rng = np.random.default_rng(seed + 3)
        self._starts = Starts(context, scaled)
        self._held = Descent(context, scaled, self._relaxed, Options())
        self._company, self._failures = FIRST_COMPANY, 0

    def relax(self) -> float:
        """A relaxed local optimum, and the first whole point made of it."""
        context, scaled = self._context, self._scaled
        options = Options(tolerance=1e-5, hold_integers=False)
        descent = Descent(context, scaled, self._relaxed, options)
        best = None
        part = context.budget.part(RELAX_SHARE * context.budget.left)
        for k in range(RELAXED_STARTS):
            z = self._starts.random() if k else self._starts.cheapest()
            if z is not None and not (best is not None and part.over):
                iterate = descent.run(z, 0.2, part, "relaxed")
                best = iterate if best is None or iterate.merit < best.merit else best
        if best is None:
            return float("nan")
        whole = np.abs(best.z - np.round(best.z)) <= WHOLE
        free = np.zeros(scaled.host.n_columns, dtype=bool)
        free[self._integers] = ~whole[self._integers]
        free[scaled.networks.outputs[scaled.networks.classes]] = True  # a relaxed class says nothing
        for share in (0.0, 0.1, 0.3, 1.0):  # what is whole may be wrong: free more until something fits
            some = free.copy()
            some[self._integers] |= self._rng.random(self._integers.size) < share
            self._fill(best.z, some, 1.0, RENS_SHARE * context.budget.left, "rens")
            if context.incumbent.x is not None or context.budget.over:
                break
        return best.merit

    def search(self) -> float:
        """One neighbourhood of the incumbent, or a new start while there is none."""
        best = self._context.incumbent.x
        if best is None:
            return self.relax()
        chosen = self._components(best)
        free = np.zeros(self._scaled.host.n_columns, dtype=bool)
        free[self._integers] = np.isin(self._parts.owner[self._integers], [*chosen, NOBODY])
        before, began = self._context.incumbent.objective, self._context.budget.seconds
        merit = self._fill(best, free, LNS_RADIUS, LNS_SECONDS, "lns")
        if self._context.incumbent.objective == before:
            quick = self._context.budget.seconds - began < QUICK
            self._failures += int(quick)
            if self._failures >= MORE_AFTER:
                self._company, self._failures = self._company + 1, 0
        else:
            self._failures = 0
        return merit

    def _fill(self, z: FloatArray, free: BoolArray, radius: float, seconds: float, source: str) -> float:
        """A MILP over the free integers, networks linearised at `z`; its point goes to the incumbent."""
        scaled, context = self._scaled, self._context
        lower, upper = scaled.host.lower.copy(), scaled.host.upper.copy()
        held = self._integers[~free[self._integers]]
        lower[held] = upper[held] = np.clip(np.round(z[held]), lower[held], upper[held])
        scaled.narrow(lower, upper, z, radius * scaled.width, whole=False)
        step = self._whole.solve(
            scaled.host.cost,
            lower,
            upper,
            scaled.networks.linearise(z),
            100.0 * scaled.penalty,
            budget=context.budget.part(seconds),
            start=z if source == "lns" else None,
        )
        if step is None:
            return float("nan")
        if radius < 1.0 and math.isnan(context.incumbent.offer(step.z, source)):
            return step.value  # a refused neighbour is left; a first point is worth the descent
        iterate = self._held.run(step.z, 0.2, context.budget.part(seconds), source)
        context.incumbent.offer(iterate.z, source)
        return iterate.merit

    def _components(self, z: FloatArray) -> IntArray:
        """One component that holds the objective back, and random company."""
        critical = self._critical(z)
        count = min(self._parts.count, 1 + self._company)
        first = (
            int(self._rng.choice(critical)) if critical.size else int(self._rng.integers(self._parts.count))
        )
        others = self._rng.permutation(np.delete(np.arange(self._parts.count), first))
        return np.concatenate([[first], others[: count - 1]])

    def _critical(self, z: FloatArray) -> IntArray:
        """Components whose network's row has a price while the integers are held."""
        scaled = self._scaled
        lower, upper = scaled.host.lower.copy(), scaled.host.upper.copy()
        lower[self._integers] = upper[self._integers] = np.round(z[self._integers])
        step = self._relaxed.solve(
            scaled.host.cost,
            lower,
            upper,
            scaled.networks.linearise(z),
            100.0 * scaled.penalty,
            budget=self._context.budget.part(LNS_SECONDS),
        )
        if step is None:
            return np.empty(0, dtype=np.int64)
        priced = np.abs(step.duals) > 1e-9
        owners = self._parts.owner[scaled.networks.outputs[priced]]
        return np.unique(owners[owners != NOBODY])
