"""A descent that moves integers and classes too: outer MILP steps, inner descents with integers held."""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.budget import Budget
from dovetail.core.search import Search
from dovetail.local.descent import Descent, Options, Place, raised
from dovetail.local.scene import Scene
from dovetail.local.step import Step, StepProgram

MIP_SECONDS = 2.5
SMALLEST_RADIUS, SHRINK = 1e-2, 0.4
INNER_RADIUS = 0.2
PATIENCE = 8
"""Outer steps in a row that may bring nothing: a region may shrink and grow for ever."""


class Walk:
    """Descents over one problem, with the programs they share."""

    def __init__(self, search: Search, scene: Scene, options: Options) -> None:
        self._search, self._scene = search, scene
        seed, threads, watch = search.seed, search.threads, search.stopwatch
        program = StepProgram(scene, watch, integer=False, memory=options.memory, seed=seed, threads=threads)
        self._descent = Descent(search, scene, program, options)
        self._outer = None
        if np.any(scene.free_integers):
            self._outer = StepProgram(scene, watch, integer=True, seed=seed, threads=threads)

    def descend(self, z: FloatArray, radius: float, budget: Budget, source: str, steps: int = 1000) -> Place:
        """To a local optimum from `z`, a point of the relaxed host, by at most so many outer steps."""
        if self._outer is None:
            return self._descent.run(z, radius, budget, source)
        penalty, best = self._scene.penalty, self._descent.place(z, self._scene.penalty, source)
        failures = 0
        for _ in range(steps):
            if budget.over or self._search.incumbent.proved or failures > PATIENCE:
                break
            failures += 1
            step = self._outer_step(best.z, radius, penalty, budget)
            if step is None:
                radius *= 3.0
                if radius > 1.0:
                    break
                continue
            penalty = raised(penalty, step)
            inner = self._settled(
                self._descent.run(step.z, min(radius, INNER_RADIUS), budget, source), source
            )
            if _better(inner, best):
                best, failures = inner, 0
                continue
            radius *= SHRINK
            if radius < SMALLEST_RADIUS:
                break
        return best

    def _settled(self, place: Place, source: str) -> Place:
        """A place whose classes were not all reached, as the door completes it."""
        if place.feasible:
            return place
        admitted = self._search.incumbent.admit(place.z, source)
        return place if admitted is None else Place(admitted, float(self._scene.host.cost @ admitted), True)

    def _outer_step(self, z: FloatArray, radius: float, penalty: FloatArray, budget: Budget) -> Step | None:
        """The linear model's best point with integers free: no trust region on integer inputs."""
        assert self._outer is not None
        scene = self._scene
        lower, upper = scene.host.lower.copy(), scene.host.upper.copy()
        scene.narrow(lower, upper, z, radius * scene.width, whole=False)
        whole = bool(np.all(np.abs(z - np.round(z))[scene.host.integer] < 1e-6))
        view = scene.networks.look(z, whole=whole)
        part = budget.part(MIP_SECONDS)
        return self._outer.solve(
            scene.host.cost, lower, upper, view, penalty, budget=part, start=z if whole else None
        )


def _better(inner: Place, best: Place) -> bool:
    """A feasible place beats any other; among equals the merit must really fall."""
    if inner.feasible != best.feasible:
        return inner.feasible
    return inner.merit < best.merit - 1e-7 * (1.0 + abs(best.merit))
