"""Pricing: the best point of each component at the master's prices, all components in one LP.

Without the coupling rows the program consists of independent components; a few sequential-LP steps over all
of them at once, each with its own trust region, give columns for all. Every iterate is a column.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.linearised.networks import Linearisation
from dovetail.linearised.scaled_problem import DECREASE, SAFETY, WIDEST, ScaledProblem
from dovetail.linearised.trust_region import TrustRegionSubproblem
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.structure.components import Components

FIRST_RADIUS, GROW, SHRINK = 0.15, 1.5, 0.4
"""Of each component's own trust region, gentler than a descent's: there are few steps, and every one of them
is a column."""
SMALLEST_RADIUS, LARGEST_RADIUS = 1e-4, 1.0
"""In widths of the inputs: a component whose steps are smaller is done, but the others go on."""
ESCAPE = 2.0
"""Growth factor of all regions if the LP over them is infeasible."""
SMALLEST_WORTH = 1e-6
"""Smallest worth of a component in penalties, for components whose columns have no cost."""


class Pricing:
    """The pricing problems of all components, as one trust-region subproblem."""

    def __init__(self, context: SolveContext, scaled: ScaledProblem, components: Components) -> None:
        self._scaled, self._components = scaled, components
        self._subproblem = TrustRegionSubproblem(
            scaled,
            context.stopwatch,
            integer=False,
            rows=components.private_rows,
            seed=context.seed,
            threads=context.threads,
        )
        self._owned = ~components.shared
        self._owner = np.maximum(components.owner, 0)  # shared columns count for the first one, at no cost
        self._output_owner = components.owner[scaled.networks.outputs]
        groups = scaled.networks.class_groups
        self._single = np.array([group[0] for group in groups if group.size == 1], dtype=np.int64)
        self._several = [group for group in groups if group.size > 1]

    def answer(
        self,
        cost: FloatArray,
        z: FloatArray,
        steps: int,
        budget: Budget,
        on_column: Callable[[FloatArray], object],
    ) -> None:
        """Descend from `z` to each component's best point at `cost`; completed iterates go to `on_column`."""
        scaled, networks = self._scaled, self._scaled.networks
        cost = np.where(self._owned, cost, 0.0)
        lower, upper = self._held(z, cost)
        z = np.clip(z, lower, upper)
        penalty = self._penalty(cost)
        radius = np.full(self._components.count, FIRST_RADIUS)
        model = networks.linearise(z)
        merit = self._merits(z, model.values, cost, penalty)
        for _ in range(steps):
            if budget.over:
                return
            own_radius = radius[self._owner]
            region = scaled.trust_region(z, own_radius, lower, upper, integers=True)
            step = self._subproblem.solve(cost, *region, model, penalty, budget=budget)
            if step is None:
                radius *= ESCAPE
                continue
            trial = networks.linearise(step.z)
            on_column(networks.with_predictions(step.z[None], trial.values[None])[0])
            now = self._merits(step.z, trial.values, cost, penalty)
            better = now < merit - DECREASE * (1.0 + np.abs(merit))
            radius = np.clip(np.where(better, GROW, SHRINK) * radius, SMALLEST_RADIUS, LARGEST_RADIUS)
            z = np.where(better[self._owner] & self._owned, step.z, z)
            merit = np.where(better, now, merit)
            model = self._mixed(model, trial, better)

    def _mixed(self, model: Linearisation, trial: Linearisation, better: BoolArray) -> Linearisation:
        """The trial's linearisation for components that moved, the old one for the others."""
        moved = better[self._output_owner]
        slopes = np.where(moved[self._scaled.networks.rows], trial.slopes, model.slopes)
        return Linearisation(
            np.where(moved, trial.values, model.values), slopes, np.where(moved, trial.offset, model.offset)
        )

    def _held(self, z: FloatArray, cost: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds with shared columns and plain integers held, and each class set to the one that pays."""
        host = self._scaled.host
        lower, upper = host.lower.copy(), host.upper.copy()
        held = host.integer | ~self._owned
        lower[held] = upper[held] = np.clip(np.where(host.integer, np.round(z), z), lower, upper)[held]
        single = self._single  # hundreds of them: all at once
        cheapest = np.where(cost[single] <= 0.0, 1.0, 0.0)
        lower[single] = upper[single] = np.clip(cheapest, host.lower[single], host.upper[single])
        for columns in self._several:
            lower[columns] = upper[columns] = _cheapest_class(cost, columns, host.lower, host.upper)
        return lower, upper

    def _penalty(self, cost: FloatArray) -> FloatArray:
        """Penalties above the total value of a component at these prices, per unit of each output's
        spread."""
        scaled = self._scaled
        worth = np.where(self._owned, (cost * np.minimum(scaled.width, WIDEST)) ** 2, 0.0)
        total = np.sqrt(np.bincount(self._owner, worth, minlength=self._components.count))
        return np.asarray(SAFETY * np.maximum(total, SMALLEST_WORTH)[self._output_owner] / scaled.spread)

    def _merits(self, z: FloatArray, values: FloatArray, cost: FloatArray, penalty: FloatArray) -> FloatArray:
        """(C,) the l1 merit, component by component."""
        networks, count = self._scaled.networks, self._components.count
        merit = np.bincount(self._owner, np.where(self._owned, cost * z, 0.0), minlength=count)
        apart = np.abs(z[networks.outputs] - values) * ~networks.classes
        merit += np.bincount(self._output_owner, apart * penalty, minlength=count)
        conditions = networks.conditions
        if conditions.count:
            short = conditions.shortfall(z, values) * np.asarray(conditions.weights @ penalty)
            merit += np.bincount(self._components.owner[conditions.column], short, minlength=count)
        return np.asarray(merit, dtype=np.float64)


def _cheapest_class(cost: FloatArray, columns: IntArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Of several classes the one that costs least among those the bounds allow."""
    allowed = np.where(upper[columns] > 0.5, cost[columns], np.inf)
    allowed[lower[columns] > 0.5] = -np.inf  # held at 1: no other can be
    one_hot = np.eye(columns.size)[int(np.argmin(allowed))]
    return np.asarray(np.clip(one_hot, lower[columns], upper[columns]))
