"""Pricing: what is the best point of each component at today's prices? All components in one LP.

Without the coupling rows the program falls apart into components; a few sequential-LP steps over all of
them at once, each with a trust region of its own, answer for all. Every iterate is a column.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dovetail.analysis.components import Components
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.linearised.networks import Linearisation
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.linearised.trust_region import TrustRegionSubproblem
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext

FIRST_RADIUS, WIDER, NARROWER = 0.15, 1.5, 0.4


class Pricing:
    """The pricing program of one problem."""

    def __init__(self, context: SolveContext, scaled: ScaledProblem, parts: Components) -> None:
        self._scaled, self._parts = scaled, parts
        self._program = TrustRegionSubproblem(
            scaled,
            context.stopwatch,
            integer=False,
            rows=parts.private_rows,
            seed=context.seed,
            threads=context.threads,
        )
        self._owned = ~parts.shared
        self._output_owner = parts.owner[scaled.networks.outputs]
        groups = scaled.networks.class_groups
        self._single = np.array([group[0] for group in groups if group.size == 1], dtype=np.int64)
        self._several = [group for group in groups if group.size > 1]

    def answer(
        self,
        cost: FloatArray,
        z: FloatArray,
        steps: int,
        budget: Budget,
        found: Callable[[FloatArray], object],
    ) -> None:
        """Search from `z` for each component's best point at `cost`; settled iterates go to `found`."""
        scaled, networks = self._scaled, self._scaled.networks
        cost = np.where(self._owned, cost, 0.0)
        lower, upper = self._held(z, cost)
        z = np.clip(z, lower, upper)
        penalty = self._penalty(cost)
        radius = np.full(self._parts.count, FIRST_RADIUS)
        view = networks.linearise(z)
        merit = self._merits(z, view.values, cost, penalty)
        for _ in range(steps):
            if budget.over:
                return
            reach = radius[np.maximum(self._parts.owner, 0)] * scaled.width
            near_low, near_high = lower.copy(), upper.copy()
            scaled.narrow(near_low, near_high, z, reach, whole=True)
            step = self._program.solve(cost, near_low, near_high, view, penalty, budget=budget)
            if step is None:
                radius *= 2.0
                continue
            trial = networks.linearise(step.z)
            found(networks.with_predictions(step.z[None], trial.values[None])[0])
            now = self._merits(step.z, trial.values, cost, penalty)
            better = now < merit - 1e-9 * (1.0 + np.abs(merit))
            radius = np.clip(np.where(better, WIDER, NARROWER) * radius, 1e-4, 1.0)
            z = np.where(better[np.maximum(self._parts.owner, 0)] & self._owned, step.z, z)
            merit = np.where(better, now, merit)
            view = self._mixed(view, trial, better, z)

    def _mixed(
        self, view: Linearisation, trial: Linearisation, better: BoolArray, z: FloatArray
    ) -> Linearisation:
        """The trial's view for components that moved, the old one for the others."""
        moved = better[self._output_owner]
        entries = np.where(moved[self._scaled.networks.rows], trial.entries, view.entries)
        return Linearisation(
            np.where(moved, trial.values, view.values), entries, np.where(moved, trial.offset, view.offset)
        )

    def _held(self, z: FloatArray, cost: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds with shared columns and plain integers held, and each class set to the one that pays."""
        host = self._scaled.host
        lower, upper = host.lower.copy(), host.upper.copy()
        held = host.integer | ~self._owned
        lower[held] = upper[held] = np.clip(np.where(host.integer, np.round(z), z), lower, upper)[held]
        single = self._single  # hundreds of them: all at once
        wanted = np.where(cost[single] <= 0.0, 1.0, 0.0)
        lower[single] = upper[single] = np.clip(wanted, host.lower[single], host.upper[single])
        for columns in self._several:
            lower[columns] = upper[columns] = _wanted(cost, columns, host.lower, host.upper)
        return lower, upper

    def _penalty(self, cost: FloatArray) -> FloatArray:
        """Twice what all of a component is worth at these prices, per unit of each output's spread."""
        scaled = self._scaled
        worth = np.where(self._owned, (cost * np.minimum(scaled.width, 1e10)) ** 2, 0.0)
        total = np.sqrt(np.bincount(np.maximum(self._parts.owner, 0), worth, minlength=self._parts.count))
        return np.asarray(2.0 * np.maximum(total, 1e-6)[self._output_owner] / scaled.spread)

    def _merits(self, z: FloatArray, values: FloatArray, cost: FloatArray, penalty: FloatArray) -> FloatArray:
        """(C,) cost plus penalties, component by component."""
        networks, count = self._scaled.networks, self._parts.count
        merit = np.bincount(
            np.maximum(self._parts.owner, 0), np.where(self._owned, cost * z, 0.0), minlength=count
        )
        apart = np.abs(z[networks.outputs] - values) * ~networks.classes
        merit += np.bincount(self._output_owner, apart * penalty, minlength=count)
        conditions = networks.conditions
        if conditions.count:
            short = np.maximum(conditions.margin - conditions.form @ values, 0.0) * conditions.active(z)
            weight = np.asarray(conditions.weights @ penalty)
            merit += np.bincount(self._parts.owner[conditions.column], short * weight, minlength=count)
        return np.asarray(merit, dtype=np.float64)


def _wanted(cost: FloatArray, columns: IntArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """The class that costs least among those the bounds allow."""
    if columns.size == 1:
        wanted = np.array([1.0 if cost[columns[0]] <= 0.0 else 0.0])
    else:
        allowed = np.where(upper[columns] > 0.5, cost[columns], np.inf)
        allowed[lower[columns] > 0.5] = -np.inf  # held at 1: no other can be
        wanted = np.eye(columns.size)[int(np.argmin(allowed))]
    return np.asarray(np.clip(wanted, lower[columns], upper[columns]))
