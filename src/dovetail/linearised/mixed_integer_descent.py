"""A descent that moves integers and classes too: outer MILP steps, inner descents with integers held."""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.linearised.descent import (
    ESCAPE,
    LARGEST_RADIUS,
    Descent,
    DescentOptions,
    Iterate,
    increase_penalty,
)
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.linearised.trust_region import LinearStep, TrustRegionSubproblem
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.run.engine import Bounds, least_seconds
from dovetail.run.incumbent import over

MIP_SECONDS = 2.5
"""For one outer step: it is one of many, and the best point of a linear model is as good as its optimum."""
SMALLEST_RADIUS, SHRINK = 1e-2, 0.4
"""An outer step that brings nothing narrows the region; it ends where the inner descents see as much."""
INNER_RADIUS = 0.2
"""The most that an inner descent begins with: the outer step has gone the long way already."""
BOX_RADIUS = 0.1
"""Of the first trust region around the point of a box: half that of a random start, as the box is good."""
PATIENCE = 8
"""Outer steps in a row that may bring nothing: a region may shrink and grow for ever."""
MILP_LPS = 10.0
"""What a MILP step takes at the least, in LPs (water, 2,000 samples: two seconds of presolving and root)."""
OUTER_STEPS = 1000
"""More than any budget has time for: `PATIENCE` and the radius end it."""
DECREASE = 1e-7
"""Relative, as in a descent: what a merit falls by less is rounding."""
INTEGRAL = 1e-6
"""Integers this close to whole numbers are: a start for the MILP, and a point with secants around it."""


class MixedIntegerDescent:
    """Descents over one problem, with the subproblems they share."""

    def __init__(self, context: SolveContext, scaled: ScaledProblem, options: DescentOptions) -> None:
        self._context, self._scaled = context, scaled
        self.held = Descent(context, scaled, options)
        """With integers where they are."""
        self._relaxed_descent = self.held.relaxed()
        self._milp = None
        if np.any(scaled.free_integers):
            self._milp = TrustRegionSubproblem(
                scaled, context.stopwatch, integer=True, seed=context.seed, threads=context.threads
            )

    def descend(
        self, z: FloatArray, radius: float, budget: Budget, source: str, steps: int = OUTER_STEPS
    ) -> Iterate:
        """To a local optimum from `z`, a point of the relaxed host, by at most so many outer steps."""
        if self._milp is None:
            return self.held.run(z, radius, budget, source)
        penalty, best = self._scaled.penalty, self.held.evaluate(z, self._scaled.penalty, source)
        failures = 0
        for _ in range(steps):
            if over(self._context.incumbent, budget) or failures > PATIENCE or self._too_late(budget):
                break
            failures += 1
            host, part = self._scaled.host, budget.part(MIP_SECONDS)
            step = self.step(best.z, radius, (host.lower, host.upper), penalty, part)
            if step is None:
                radius *= ESCAPE
                if radius > LARGEST_RADIUS:
                    break
                continue
            penalty = increase_penalty(penalty, step)
            inner = self._completed(self.held.run(step.z, min(radius, INNER_RADIUS), budget, source), source)
            # by the same penalties: those of the inner descent may have grown a million times
            inner, best = (self.held.with_penalty(iterate, penalty) for iterate in (inner, best))
            if _better(inner, best):
                best, failures = inner, 0
                continue
            radius *= SHRINK
            if radius < SMALLEST_RADIUS:
                break
        return best

    def relax(self, z: FloatArray, radius: float, budget: Budget, source: str) -> FloatArray:
        """Where a descent from `z` with integers relaxed ends; the check may find integers that fit it.

        The integers of a linear model leave its inputs as much room as they need and no more, and what a
        network asks for beyond that takes an outer step each time. Here inputs go there first. A relaxed
        class says nothing, so that with no other integers `z` stays as it is.
        """
        choices = self._scaled.free_integers.copy()
        choices[self._scaled.networks.outputs] = False
        if not np.any(choices):
            return z
        iterate = self._relaxed_descent.run(z, radius, budget, source)
        self._context.incumbent.offer(iterate.z, source)
        return iterate.z

    def from_box(self, point: FloatArray, budget: Budget, source: str, *, thorough: bool) -> None:
        """From the point of a box's LP, with its integers held; `thorough`: with all that a descent can do,
        where that brings nothing."""
        host, before = self._scaled.host, self._context.incumbent.x
        z = np.clip(point, host.lower, host.upper)
        self.held.run(z, BOX_RADIUS, budget, source)
        if self._context.incumbent.x is not before or not thorough:
            return  # the box had decided its integers
        if before is None:
            z = self.relax(z, BOX_RADIUS, budget, source)
        self.descend(z, BOX_RADIUS, budget, source)

    def _too_late(self, budget: Budget) -> bool:
        """Whether no MILP would end in time: HiGHS looks at no clock before its first LPs are done."""
        return MILP_LPS * least_seconds(self._scaled.host) > budget.left

    def _completed(self, iterate: Iterate, source: str) -> Iterate:
        """An iterate whose classes were not all reached, completed."""
        if iterate.feasible:
            return iterate
        admitted = self._context.incumbent.admit(iterate.z, source)
        return (
            iterate if admitted is None else Iterate(admitted, float(self._scaled.host.cost @ admitted), True)
        )

    def step(
        self, z: FloatArray, radius: float, bounds: Bounds, penalty: FloatArray, budget: Budget
    ) -> LinearStep | None:
        """The linear model's best point between these bounds: no trust region on integer inputs. None where
        no integer can move, or none is found."""
        if self._milp is None:
            return None
        scaled = self._scaled
        region = scaled.trust_region(z, radius, *bounds, integers=False)
        integral = bool(np.all(np.abs(z - np.round(z))[scaled.host.integer] < INTEGRAL))
        model = scaled.networks.linearise(z, secants=integral)
        return self._milp.solve(
            scaled.host.cost, *region, model, penalty, budget=budget, start=z if integral else None
        )


def _better(inner: Iterate, best: Iterate) -> bool:
    """A feasible iterate beats any other; among equals the merit must really fall."""
    if inner.feasible != best.feasible:
        return inner.feasible
    return inner.merit < best.merit - DECREASE * (1.0 + abs(best.merit))
