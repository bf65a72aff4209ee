"""A descent that moves integers and classes too: outer MILP steps, inner descents with integers held."""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.linearised.descent import Descent, Iterate, Options, increase_penalty
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.linearised.trust_region import Step, TrustRegionSubproblem
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext

MIP_SECONDS = 2.5
SMALLEST_RADIUS, SHRINK = 1e-2, 0.4
INNER_RADIUS = 0.2
PATIENCE = 8
"""Outer steps in a row that may bring nothing: a region may shrink and grow for ever."""


class MixedIntegerDescent:
    """Descents over one problem, with the programs they share."""

    def __init__(self, context: SolveContext, scaled: ScaledProblem, options: Options) -> None:
        self._context, self._scaled = context, scaled
        seed, threads, stopwatch = context.seed, context.threads, context.stopwatch
        program = TrustRegionSubproblem(
            scaled, stopwatch, integer=False, memory=options.memory, seed=seed, threads=threads
        )
        self._descent = Descent(context, scaled, program, options)
        self._outer = None
        if np.any(scaled.free_integers):
            self._outer = TrustRegionSubproblem(scaled, stopwatch, integer=True, seed=seed, threads=threads)

    def descend(
        self, z: FloatArray, radius: float, budget: Budget, source: str, steps: int = 1000
    ) -> Iterate:
        """To a local optimum from `z`, a point of the relaxed host, by at most so many outer steps."""
        if self._outer is None:
            return self._descent.run(z, radius, budget, source)
        penalty, best = self._scaled.penalty, self._descent.iterate(z, self._scaled.penalty, source)
        failures = 0
        for _ in range(steps):
            if budget.over or self._context.incumbent.proved or failures > PATIENCE:
                break
            failures += 1
            step = self._outer_step(best.z, radius, penalty, budget)
            if step is None:
                radius *= 3.0
                if radius > 1.0:
                    break
                continue
            penalty = increase_penalty(penalty, step)
            inner = self._completed(
                self._descent.run(step.z, min(radius, INNER_RADIUS), budget, source), source
            )
            if _better(inner, best):
                best, failures = inner, 0
                continue
            radius *= SHRINK
            if radius < SMALLEST_RADIUS:
                break
        return best

    def _completed(self, iterate: Iterate, source: str) -> Iterate:
        """A place whose classes were not all reached, completed."""
        if iterate.feasible:
            return iterate
        admitted = self._context.incumbent.admit(iterate.z, source)
        return (
            iterate if admitted is None else Iterate(admitted, float(self._scaled.host.cost @ admitted), True)
        )

    def _outer_step(self, z: FloatArray, radius: float, penalty: FloatArray, budget: Budget) -> Step | None:
        """The linear model's best point with integers free: no trust region on integer inputs."""
        assert self._outer is not None
        scaled = self._scaled
        lower, upper = scaled.host.lower.copy(), scaled.host.upper.copy()
        scaled.narrow(lower, upper, z, radius * scaled.width, whole=False)
        whole = bool(np.all(np.abs(z - np.round(z))[scaled.host.integer] < 1e-6))
        view = scaled.networks.linearise(z, whole=whole)
        part = budget.part(MIP_SECONDS)
        return self._outer.solve(
            scaled.host.cost, lower, upper, view, penalty, budget=part, start=z if whole else None
        )


def _better(inner: Iterate, best: Iterate) -> bool:
    """A feasible place beats any other; among equals the merit must really fall."""
    if inner.feasible != best.feasible:
        return inner.feasible
    return inner.merit < best.merit - 1e-7 * (1.0 + abs(best.merit))
