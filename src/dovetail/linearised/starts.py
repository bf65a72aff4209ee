"""Where searches begin: points of the host, made by LPs and short MIPs over it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import EngineError
from dovetail.linearised.merit import Merit
from dovetail.linearised.scaled_problem import ScaledProblem, scaled_problem
from dovetail.mip.highs import HighsEngine
from dovetail.run.context import SolveContext
from dovetail.run.engine import Bounds, MipSession, Quadratic

MIP_SECONDS = 2.0
EARLY = 6
"""So many starts before half of them are taken near the incumbent."""
SHARES = (0.1, 0.25, 0.5)
CORNERS = 48
"""Vertices of the host that are kept to blend from."""
FIELDS = (4, 16, 64)
"""How many blends are compared for one start."""


class Starts:
    """An endless supply of host points: cheapest, calmest, then random ones and blends with the incumbent.

    Every other random one is the best of a few by the networks' own values: a glance costs little beside a
    descent. How many are compared varies, lest all starts lie in one valley.
    """

    def __init__(self, context: SolveContext, scaled: ScaledProblem) -> None:
        self._context, self._scaled = context, scaled
        self._rng = np.random.default_rng(context.seed + 1)
        nothing = np.empty(0, dtype=np.int64)
        with context.stopwatch.measure("engine"):
            self._relaxed = HighsEngine().load(
                scaled.host.relaxed(), nothing, seed=context.seed, threads=context.threads
            )
        self._calm: FloatArray | None = None
        self._corners: deque[FloatArray] = deque(maxlen=CORNERS)
        self._merit = Merit(scaled)

    def __iter__(self) -> Iterator[tuple[FloatArray, str]]:
        """Points with the name of their kind."""
        scaled, incumbent = self._scaled, self._context.incumbent
        if self._context.start.x is not None:
            yield np.clip(self._context.start.x, scaled.host.lower, scaled.host.upper), "start"
        cheapest = self.cheapest()
        if cheapest is not None:
            yield cheapest, "cheapest"
        least_activity = self.least_activity()
        if least_activity is not None:
            yield least_activity, "calm"
        number = 2
        while not self._context.budget.over:
            number += 1
            choosing = number == 3 or number % 4 == 0
            blend = self.chosen(int(self._rng.choice(FIELDS))) if choosing else self.random()
            if blend is None:
                return
            if number > EARLY and number % 2 and incumbent.x is not None:
                share = float(self._rng.choice(SHARES))
                yield (1.0 - share) * incumbent.x + share * blend, "near"
            else:
                yield blend, "random"

    def cheapest(self) -> FloatArray | None:
        """The relaxed host's best point, without the cost of outputs it leaves unbounded."""
        host = self._scaled.host
        cost = host.cost.copy()
        outputs = self._scaled.networks.outputs
        open_ended = ~np.isfinite(host.lower[outputs]) | ~np.isfinite(host.upper[outputs])
        cost[outputs[open_ended]] = 0.0
        return self.vertex(cost)

    def least_activity(self) -> FloatArray | None:
        """The point that does least: columns that are neither input nor output as small as they can be."""
        if self._calm is None:
            host, scaled = self._scaled.host, self._scaled
            free = np.ones(host.n_columns, dtype=bool)
            free[scaled.inputs] = free[scaled.networks.outputs] = False
            below = np.where(np.isfinite(host.lower), 1.0, 0.0)
            self._calm = self.vertex(np.where(free, below, 0.0) / scaled.width)
        return self._calm

    def random(self) -> FloatArray | None:
        """A blend of two or three vertices in random directions of the inputs."""
        scaled = self._scaled
        corners = []
        for _ in range(int(self._rng.integers(2, 4))):
            cost = np.zeros(scaled.host.n_columns)
            cost[scaled.inputs] = self._rng.standard_normal(scaled.inputs.size) / scaled.width[scaled.inputs]
            corner = self.vertex(cost)
            if corner is None:
                break
            corners.append(corner)
        if not corners:
            return None
        self._corners.extend(corners)
        return self._blend(corners)

    def chosen(self, count: int) -> FloatArray | None:
        """The best of a random point and of `count` blends of corners seen before."""
        first = self.random()
        if first is None:
            return None
        picks = [self._rng.integers(0, len(self._corners), 3) for _ in range(count)]
        Z = np.array([first, *(self._blend([self._corners[k] for k in pick]) for pick in picks)])
        networks = self._scaled.networks
        true = networks.with_predictions(Z, networks.values(Z))
        return np.asarray(Z[int(np.argmin(self._merit.of(true)))])

    def _blend(self, corners: list[FloatArray]) -> FloatArray:
        return np.asarray(self._rng.dirichlet(np.ones(len(corners))) @ np.array(corners))

    def vertex(self, cost: FloatArray) -> FloatArray | None:
        """The relaxed host's best point for a cost, within the stretch where it would fall for ever."""
        host, reach = self._scaled.host, self._scaled.ranges
        found = _solved(self._relaxed, cost, self._context)
        if found is not None:
            return found
        lower = np.where(np.isfinite(host.lower), host.lower, reach.lower)
        upper = np.where(np.isfinite(host.upper), host.upper, reach.upper)
        return _solved(self._relaxed, cost, self._context, (lower, upper))


def start_stream(context: SolveContext) -> Iterator[tuple[FloatArray, str]]:
    """Starts that go on where the last method stopped; made once (see `SolveContext.once`)."""
    return iter(Starts(context, context.once(scaled_problem)))


def _solved(
    session: MipSession, cost: FloatArray, context: SolveContext, bounds: Bounds | None = None
) -> FloatArray | None:
    with context.stopwatch.measure("engine"):
        try:
            return session.solve(Quadratic.linear(cost), budget=context.budget, gap=0.1, bounds=bounds).x
        except EngineError:
            return None
