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
from dovetail.core.budget import Budget
from dovetail.core.mip import TOLERANCE
from dovetail.core.search import Search
from dovetail.local.networks import View
from dovetail.local.scene import Scene
from dovetail.local.step import Cut, Step, StepProgram

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
class Place:
    """A point and what it is worth: its objective where outputs are true and rows hold, else penalised."""

    z: FloatArray
    merit: float
    feasible: bool


class Memory:
    """The last views, with the points they were taken at."""

    def __init__(self, scene: Scene, size: int) -> None:
        self._scene = scene
        self._kept: deque[tuple[FloatArray, View]] = deque(maxlen=max(size, 1))
        self._size = size

    def push(self, z: FloatArray, view: View) -> None:
        """Remember a view."""
        if self._size:
            self._kept.append((z[self._scene.networks.columns], view))

    def __len__(self) -> int:
        return len(self._kept)

    def cuts(self, z: FloatArray, view: View, senses: FloatArray, radius: float) -> tuple[Cut, ...]:
        """The views that are near or meet here, and lie on the right side of the values at `z`.

        Pieces that meet at `z` count whatever the radius: forgotten in turn, they would send it in circles.
        """
        networks, width = self._scene.networks, self._scene.width
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

    def __init__(self, search: Search, scene: Scene, program: StepProgram, options: Options) -> None:
        self._search, self._scene, self._program, self._options = search, scene, program, options
        self.steps = 0

    def place(self, z: FloatArray, penalty: FloatArray, source: str) -> Place:
        """What `z` is worth; a point that may beat the incumbent goes to the door."""
        return self._best_of(z[None], penalty, source)[0]

    def _best_of(self, Z: FloatArray, penalty: FloatArray, source: str) -> tuple[Place, int, float]:
        """The best of several points, its number, and the merit of the first."""
        scene, incumbent = self._scene, self._search.incumbent
        values = scene.networks.values(Z)
        true = scene.networks.settle(Z, values)
        feasible = self._holds(true, Z)
        merit = np.where(feasible, true @ scene.host.cost, self.merits(Z, values, penalty))
        best = int(np.argmin(merit))
        if self._options.seen is not None:
            self._options.seen(true[best])
        objective = float(true[best] @ scene.host.cost) + scene.host.offset
        promising = incumbent.x is None or objective < self._incumbent_value - 1e-9 * abs(
            objective - scene.host.offset
        )
        if promising and self._options.hold_integers:
            admitted = incumbent.admit(true[best], source)
            if admitted is not None and not feasible[best] and self._same_classes(admitted, Z[best]):
                value = float(scene.host.cost @ admitted)
                return Place(admitted, value, True), best, float(merit[0])
        point = true[best] if feasible[best] else Z[best]
        return Place(point, float(merit[best]), bool(feasible[best])), best, float(merit[0])

    @property
    def _incumbent_value(self) -> float:
        return self._search.problem.mip.sign * self._search.incumbent.objective

    def _same_classes(self, true: FloatArray, z: FloatArray) -> bool:
        networks = self._scene.networks
        columns = networks.outputs[networks.classes]
        return bool(np.all(np.abs(true[columns] - z[columns]) < 0.5))

    def _holds(self, true: FloatArray, Z: FloatArray) -> BoolArray:
        """(T,) rows, bounds, integers and wanted classes, quickly; the door judges."""
        host, networks = self._scene.host, self._scene.networks
        limit = 0.5 * TOLERANCE
        holds = np.max(np.maximum(host.lower - true, true - host.upper), axis=1) <= limit
        if self._options.hold_integers and np.any(host.integer):
            whole = true[:, host.integer]
            holds &= np.max(np.abs(whole - np.round(whole)), axis=1) <= TOLERANCE
        columns = networks.outputs[networks.classes]
        if columns.size:
            holds &= np.max(np.abs(true[:, columns] - Z[:, columns]), axis=1) < 0.5
        if host.rows:
            activity = (host.A @ true.T).T
            beyond = np.maximum(host.row_lower - activity, activity - host.row_upper)
            holds &= np.max(beyond, axis=1) <= limit
        return np.asarray(holds)

    def merits(self, Z: FloatArray, values: FloatArray, penalty: FloatArray) -> FloatArray:
        """(T,) cost plus penalised distance from the networks, at each row of `Z`."""
        networks = self._scene.networks
        apart = np.abs(Z[:, networks.outputs] - values) * ~networks.classes
        merit = Z @ self._scene.host.cost + apart @ penalty
        conditions = networks.conditions
        if conditions.count:
            short = np.maximum(conditions.margin - values @ conditions.form.T, 0.0) * conditions.active(Z)
            merit += short @ np.asarray(conditions.weights @ penalty)
        return np.asarray(merit)

    def run(self, z: FloatArray, radius: float, budget: Budget, source: str) -> Place:
        """Downhill from `z` until the model promises nothing, the radius is tiny, or the time is over."""
        scene, options = self._scene, self._options
        penalty = scene.penalty.copy()
        memory = Memory(scene, options.memory)
        place = self.place(z, penalty, source)
        view = scene.networks.look(place.z)
        senses = np.sign(scene.host.cost[scene.networks.outputs])
        for k in range(options.steps):
            if budget.over or self._search.incumbent.proved:
                break
            lower, upper = self._region(place.z, radius)
            cuts = memory.cuts(place.z, view, senses, radius)
            step = self._program.solve(
                scene.host.cost, lower, upper, view, penalty, budget=budget, senses=senses, cuts=cuts
            )
            self.steps += 1
            if step is None:
                radius *= 3.0
                if radius > 1.0:
                    break
                continue
            senses = np.where(np.abs(step.pull) > 1e-12, np.sign(step.pull), 0.0)
            if k >= 2:
                penalty = raised(penalty, step)
            if not place.feasible:
                place = Place(place.z, self._merit(place.z, view.values, penalty), False)
            promised = place.merit - self._model_value(step, penalty)
            if promised < options.tolerance * (1.0 + abs(place.merit)):
                if place.feasible or not np.any((step.missed > 1e-7) & (penalty < DEAREST)):
                    break
                continue  # it stands still because missing is cheap: the penalty rises
            trials = place.z + LENGTHS[:, None] * (step.z - place.z)  # host rows are convex: each keeps them
            candidate, best, whole = self._best_of(trials, penalty, source)
            ratio = (place.merit - whole) / promised
            accepted = candidate.merit < place.merit - 1e-4 * promised
            if not accepted or best > 0:  # the model was wrong at the end of the step: remember why
                memory.push(step.z, scene.networks.look(step.z))
            if accepted:
                memory.push(place.z, view)
                place = candidate
                view = scene.networks.look(place.z)
                radius = min(1.0, 2.0 * radius) if ratio > 0.5 else radius / 2.0 if ratio < 0.1 else radius
            else:
                radius *= 0.35 if len(memory) >= 3 else 0.5
            if radius < SMALLEST_RADIUS:
                break
        return place

    def _merit(self, z: FloatArray, values: FloatArray, penalty: FloatArray) -> float:
        return float(self.merits(z[None], values[None], penalty)[0])

    def _model_value(self, step: Step, penalty: FloatArray) -> float:
        return float(self._scene.host.cost @ step.z + (penalty * self._scene.spread) @ step.missed)

    def _region(self, z: FloatArray, radius: float) -> tuple[FloatArray, FloatArray]:
        """The trust region: inputs near `z` in units of their widths; integers held where they are."""
        scene = self._scene
        lower, upper = scene.host.lower.copy(), scene.host.upper.copy()
        if self._options.hold_integers:
            whole = scene.host.integer
            lower[whole] = upper[whole] = np.round(z[whole])
        scene.narrow(lower, upper, z, radius * scene.width, whole=True)
        return lower, upper


def raised(penalty: FloatArray, step: Step) -> FloatArray:
    """Penalties that let something pass were too small."""
    return np.where(step.missed > 1e-7, np.minimum(RISE * penalty, np.maximum(DEAREST, penalty)), penalty)
