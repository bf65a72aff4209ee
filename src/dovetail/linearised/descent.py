"""Bundle sequential LP: from one start, downhill by steps of the linear model, integers held or relaxed.

A ReLU network is piecewise linear, so once a step stays inside a piece the model is exact and even
equalities through a network are met to machine precision. Optima sit on kinks; there the last views, kept
as one-sided cuts on the side the objective pulls to, model a concave kink without any binary.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.mip import TOLERANCE
from dovetail.linearised.networks import Linearisation
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.linearised.trust_region import Cut, Step, TrustRegionSubproblem
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext

LENGTHS = np.array([1.0, 0.6, 0.3, 0.12, 0.04])
"""Parts of a step that are tried, all in one network call."""
NEAR = 3.0
"""A remembered view is used while it lies within so many radii (or touches the values)."""
RISE, DEAREST = 3.0, 1e8
SMALLEST_RADIUS = 1e-6


@dataclass(frozen=True)
class Options:
    """How a descent goes."""

    steps: int = 60
    memory: int = 8
    tolerance: float = 1e-7
    """Relative gain that the model must still promise."""
    hold_integers: bool = True
    seen: Callable[[FloatArray], object] | None = None
    """Gets every accepted point, with its outputs as the networks have them."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point and what it is worth: its objective where outputs are true and rows hold, else penalised."""

    z: FloatArray
    merit: float
    feasible: bool


class Bundle:
    """The last views, with the points they were taken at."""

    def __init__(self, scaled: ScaledProblem, size: int) -> None:
        self._scaled = scaled
        self._kept: deque[tuple[FloatArray, Linearisation]] = deque(maxlen=max(size, 1))
        self._size = size

    def push(self, z: FloatArray, view: Linearisation) -> None:
        """Remember a view."""
        if self._size:
            self._kept.append((z[self._scaled.networks.columns], view))

    def __len__(self) -> int:
        return len(self._kept)

    def cuts(self, z: FloatArray, view: Linearisation, senses: FloatArray, radius: float) -> tuple[Cut, ...]:
        """The views that are near or meet here, and lie on the right side of the values at `z`.

        Pieces that meet at `z` count whatever the radius: forgotten in turn, they would send it in circles.
        """
        networks, width = self._scaled.networks, self._scaled.width
        if not self._kept:
            return ()
        here = z[networks.columns]
        slack = 1e-9 * np.maximum(1.0, np.abs(view.values))
        apart = np.abs(np.array([there for there, _ in self._kept]) - here) / width[networks.columns]
        near = np.maximum.reduceat(apart, networks.first_entry[:-1], axis=1) <= NEAR * radius
        level = np.array([networks.level(seen, here) for _, seen in self._kept])
        touching = np.abs(level - view.values) <= slack
        above = (senses < 0) & (level >= view.values - slack)
        below = (senses > 0) & (level <= view.values + slack)
        used = (near | touching) & (above | below)
        return tuple(Cut(seen, mine) for (_, seen), mine in zip(self._kept, used, strict=True))


class Descent:
    """Runs descents over one step program."""

    def __init__(
        self, context: SolveContext, scaled: ScaledProblem, program: TrustRegionSubproblem, options: Options
    ) -> None:
        self._context, self._scaled, self._program, self._options = context, scaled, program, options
        self.steps = 0

    def iterate(self, z: FloatArray, penalty: FloatArray, source: str) -> Iterate:
        """What `z` is worth; a point that may beat the incumbent goes to the incumbent."""
        return self._best_of(z[None], penalty, source)[0]

    def _best_of(self, Z: FloatArray, penalty: FloatArray, source: str) -> tuple[Iterate, int, float]:
        """The best of several points, its number, and the merit of the first."""
        scaled, incumbent = self._scaled, self._context.incumbent
        values = scaled.networks.values(Z)
        true = scaled.networks.with_predictions(Z, values)
        feasible = self._holds(true, Z)
        merit = np.where(feasible, true @ scaled.host.cost, self.merits(Z, values, penalty))
        best = int(np.argmin(merit))
        if self._options.seen is not None:
            self._options.seen(true[best])
        objective = float(true[best] @ scaled.host.cost) + scaled.host.offset
        promising = incumbent.x is None or objective < self._incumbent_value - 1e-9 * abs(
            objective - scaled.host.offset
        )
        if promising and self._options.hold_integers:
            admitted = incumbent.admit(true[best], source)
            if admitted is not None and not feasible[best] and self._same_classes(admitted, Z[best]):
                value = float(scaled.host.cost @ admitted)
                return Iterate(admitted, value, True), best, float(merit[0])
        point = true[best] if feasible[best] else Z[best]
        return Iterate(point, float(merit[best]), bool(feasible[best])), best, float(merit[0])

    @property
    def _incumbent_value(self) -> float:
        return self._context.problem.mip.sign * self._context.incumbent.objective

    def _same_classes(self, true: FloatArray, z: FloatArray) -> bool:
        networks = self._scaled.networks
        columns = networks.outputs[networks.classes]
        return bool(np.all(np.abs(true[columns] - z[columns]) < 0.5))

    def _holds(self, true: FloatArray, Z: FloatArray) -> BoolArray:
        """(T,) rows, bounds, integers and wanted classes, quickly; the check judges."""
        host, networks = self._scaled.host, self._scaled.networks
        limit = 0.5 * TOLERANCE
        holds = np.max(np.maximum(host.lower - true, true - host.upper), axis=1) <= limit
        if self._options.hold_integers and np.any(host.integer):
            whole = true[:, host.integer]
            holds &= np.max(np.abs(whole - np.round(whole)), axis=1) <= TOLERANCE
        columns = networks.outputs[networks.classes]
        if columns.size:
            holds &= np.max(np.abs(true[:, columns] - Z[:, columns]), axis=1) < 0.5
        if host.n_rows:
            activity = (host.A @ true.T).T
            beyond = np.maximum(host.row_lower - activity, activity - host.row_upper)
            holds &= np.max(beyond, axis=1) <= limit
        return np.asarray(holds)

    def merits(self, Z: FloatArray, values: FloatArray, penalty: FloatArray) -> FloatArray:
        """(T,) cost plus penalised distance from the networks, at each row of `Z`."""
        networks = self._scaled.networks
        apart = np.abs(Z[:, networks.outputs] - values) * ~networks.classes
        merit = Z @ self._scaled.host.cost + apart @ penalty
        conditions = networks.conditions
        if conditions.count:
            short = np.maximum(conditions.margin - values @ conditions.form.T, 0.0) * conditions.active(Z)
            merit += short @ np.asarray(conditions.weights @ penalty)
        return np.asarray(merit)

    def run(self, z: FloatArray, radius: float, budget: Budget, source: str) -> Iterate:
        """Downhill from `z` until the model promises nothing, the radius is tiny, or the time is over."""
        scaled, options = self._scaled, self._options
        penalty = scaled.penalty.copy()
        memory = Bundle(scaled, options.memory)
        iterate = self.iterate(z, penalty, source)
        view = scaled.networks.linearise(iterate.z)
        senses = np.sign(scaled.host.cost[scaled.networks.outputs])
        for k in range(options.steps):
            if budget.over or self._context.incumbent.proved:
                break
            lower, upper = self._region(iterate.z, radius)
            cuts = memory.cuts(iterate.z, view, senses, radius)
            step = self._program.solve(
                scaled.host.cost, lower, upper, view, penalty, budget=budget, senses=senses, cuts=cuts
            )
            self.steps += 1
            if step is None:
                radius *= 3.0
                if radius > 1.0:
                    break
                continue
            senses = np.where(np.abs(step.duals) > 1e-12, np.sign(step.duals), 0.0)
            if k >= 2:
                penalty = increase_penalty(penalty, step)
            if not iterate.feasible:
                iterate = Iterate(iterate.z, self._merit(iterate.z, view.values, penalty), False)
            promised = iterate.merit - self._model_value(step, penalty)
            if promised < options.tolerance * (1.0 + abs(iterate.merit)):
                if iterate.feasible or not np.any((step.slack > 1e-7) & (penalty < DEAREST)):
                    break
                continue  # it stands still because missing is cheap: the penalty rises
            trials = iterate.z + LENGTHS[:, None] * (
                step.z - iterate.z
            )  # host rows are convex: each keeps them
            candidate, best, whole = self._best_of(trials, penalty, source)
            ratio = (iterate.merit - whole) / promised
            accepted = candidate.merit < iterate.merit - 1e-4 * promised
            if not accepted or best > 0:  # the model was wrong at the end of the step: remember why
                memory.push(step.z, scaled.networks.linearise(step.z))
            if accepted:
                memory.push(iterate.z, view)
                iterate = candidate
                view = scaled.networks.linearise(iterate.z)
                radius = min(1.0, 2.0 * radius) if ratio > 0.5 else radius / 2.0 if ratio < 0.1 else radius
            else:
                radius *= 0.35 if len(memory) >= 3 else 0.5
            if radius < SMALLEST_RADIUS:
                break
        return iterate

    def _merit(self, z: FloatArray, values: FloatArray, penalty: FloatArray) -> float:
        return float(self.merits(z[None], values[None], penalty)[0])

    def _model_value(self, step: Step, penalty: FloatArray) -> float:
        return float(self._scaled.host.cost @ step.z + (penalty * self._scaled.spread) @ step.slack)

    def _region(self, z: FloatArray, radius: float) -> tuple[FloatArray, FloatArray]:
        """The trust region: inputs near `z` in units of their widths; integers held where they are."""
        scaled = self._scaled
        lower, upper = scaled.host.lower.copy(), scaled.host.upper.copy()
        if self._options.hold_integers:
            whole = scaled.host.integer
            lower[whole] = upper[whole] = np.round(z[whole])
        scaled.narrow(lower, upper, z, radius * scaled.width, whole=True)
        return lower, upper


def increase_penalty(penalty: FloatArray, step: Step) -> FloatArray:
    """Penalties that let something pass were too small."""
    return np.where(step.slack > 1e-7, np.minimum(RISE * penalty, np.maximum(DEAREST, penalty)), penalty)
