"""What the local methods know about a problem before they start: box, lengths, networks, penalties."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dovetail.bounds.box import Box
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail.core.search import Search
from dovetail.local.networks import Networks
from dovetail.presolve.boxes import tightened_box
from dovetail.presolve.components import Components, components
from dovetail.presolve.host import limits_within
from dovetail.presolve.room import with_room
from dovetail.presolve.stretch import Stretch, stretch

GLANCES = 16
"""Points of the box at which the spread of each class's logit is measured."""


@dataclass(frozen=True, eq=False)
class Scene:
    """One problem, measured. Everything is in minimisation form."""

    problem: Problem
    host: Mip
    """Minimised; bounds as tight as the box, class outputs known to be 0 or 1."""
    box: Box
    reach: Stretch
    networks: Networks
    spread: FloatArray
    """(m,) the length that each output's value is measured in."""
    width: FloatArray
    """How far each column typically moves: what trust regions are measured in; never 0."""
    penalty: FloatArray
    """(m,) what a unit of |y - f(x)|, or of a missed class condition's logit, should cost at least."""

    @classmethod
    def of(cls, search: Search, *, box: Box | None = None, scaled: bool = True) -> Scene:
        """Measure the problem of a search, `box` if it is known; not `scaled`, all inputs share one width."""
        problem = search.problem
        if box is None:
            with search.stopwatch.measure("engine"):
                box = tightened_box(problem, search.budget, seed=search.seed, threads=search.threads)
        problem = with_room(search)
        with search.stopwatch.measure("nn"), search.stopwatch.measure("network"):
            reach = stretch(problem, box, search.seed)
            networks = Networks(problem, search.stopwatch, search.device)
        spread = _spread(problem, networks, reach, search.seed)
        lower, upper, integer = limits_within(problem, box.lower, box.upper)
        host = replace(problem.mip.minimised(), lower=lower, upper=upper, integer=integer)
        width = reach.width if scaled else np.full(host.columns, reach.width[networks.inputs].mean())
        penalty = _penalty(host, networks, reach, spread)
        return cls(problem, host, box, reach, networks, spread, width, penalty)

    @property
    def inputs(self) -> IntArray:
        """Columns that some network reads."""
        return self.networks.inputs

    @cached_property
    def parts(self) -> Components:
        """What only coupling rows tie together."""
        return components(self.problem)

    @property
    def free_integers(self) -> BoolArray:
        """Integer columns that can take more than one value; class outputs among them."""
        return np.asarray(self.host.integer & (self.host.upper - self.host.lower > 0.5))

    def narrow(
        self, lower: FloatArray, upper: FloatArray, z: FloatArray, reach: FloatArray, *, whole: bool
    ) -> None:
        """A trust region, in place: inputs within `reach` of `z`; integer inputs too only with `whole`."""
        near = self.inputs if whole else self.inputs[~self.host.integer[self.inputs]]
        low, high = lower[near], upper[near]
        lower[near] = np.minimum(np.maximum(low, z[near] - reach[near]), high)
        upper[near] = np.maximum(np.minimum(high, z[near] + reach[near]), lower[near])


def _spread(problem: Problem, networks: Networks, reach: Stretch, seed: int) -> FloatArray:
    """Standard deviation of each output's value over the box, never below a thousandth of its size."""
    chance = np.random.default_rng(seed)
    Z = reach.lower + chance.random((GLANCES, problem.mip.columns)) * (reach.upper - reach.lower)
    Z[:, problem.mip.integer] = np.round(Z[:, problem.mip.integer])
    values = networks.values(Z)
    spread = np.maximum(values.std(axis=0), 1e-3 * np.abs(values).max(axis=0))
    return np.where(np.isfinite(spread) & (spread > 1e-12), spread, 1.0)


def _penalty(host: Mip, networks: Networks, reach: Stretch, spread: FloatArray) -> FloatArray:
    """Twice what an output can be worth: by its own cost, or by its share of all that is at stake."""
    at_stake = float(np.sqrt(np.sum((host.cost * np.minimum(reach.width, 1e10)) ** 2)))
    share = (at_stake if at_stake > 0.0 else 1.0) / (spread * np.sqrt(max(1, networks.count)))
    return np.asarray(
        2.0 * np.maximum(np.where(networks.classes, 0.0, np.abs(host.cost[networks.outputs])), share)
    )
