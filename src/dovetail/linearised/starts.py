"""Where descents begin: points of the LP relaxation, vertices and convex combinations of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import EngineError
from dovetail.linearised.scaled_problem import CompletedMerit, ScaledProblem, scaled_problem
from dovetail.mip.highs import HighsEngine
from dovetail.run.context import SolveContext
from dovetail.run.engine import Bounds, MipSession, Quadratic
from dovetail.run.failures import expendable

EARLY = 6
"""Number of starts before half of them are near the incumbent."""
PERTURBATIONS = (0.1, 0.25, 0.5)
"""Distances of such starts from the incumbent towards a random point, as fractions."""
KEPT_VERTICES = 48
"""Number of stored vertices for combinations: those of about twenty starts."""
CANDIDATES = (4, 16, 64)
"""Numbers of combinations compared for one start: an evaluation takes little time compared with a descent,
but the best of many would always lie in the same valley."""
GAP = 0.1
"""The gap for the engine: any point will do."""


class Starts:
    """An endless supply of starts: best, least activity, then random ones, some near the incumbent.

    Every other random start is the best of a few by the networks' values.
    """

    def __init__(self, context: SolveContext, scaled: ScaledProblem) -> None:
        self._context, self._scaled = context, scaled
        self._rng = np.random.default_rng(context.seed + 1)
        nothing = np.empty(0, dtype=np.int64)
        with context.stopwatch.measure("engine"):
            self._relaxed = HighsEngine().load(
                scaled.host.relaxed(), nothing, seed=context.seed, threads=context.threads
            )
        self._least_activity: FloatArray | None = None
        self._vertices: deque[FloatArray] = deque(maxlen=KEPT_VERTICES)
        self._merit = CompletedMerit(scaled)

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
            yield least_activity, "least-activity"
        number = 2
        while not self._context.budget.over:
            number += 1
            choosing = number == 3 or number % 4 == 0
            point = self.best_of(int(self._rng.choice(CANDIDATES))) if choosing else self.random()
            if point is None:
                return
            if number > EARLY and number % 2 and incumbent.x is not None:
                share = float(self._rng.choice(PERTURBATIONS))
                yield (1.0 - share) * incumbent.x + share * point, "near"
            else:
                yield point, "random"

    def cheapest(self) -> FloatArray | None:
        """The best point of the LP relaxation, without the cost of unbounded outputs."""
        host = self._scaled.host
        cost = host.cost.copy()
        outputs = self._scaled.networks.outputs
        open_ended = ~np.isfinite(host.lower[outputs]) | ~np.isfinite(host.upper[outputs])
        cost[outputs[open_ended]] = 0.0
        return self.vertex(cost)

    def least_activity(self) -> FloatArray | None:
        """The point with the least activity: columns that are neither input nor output are as small as
        possible."""
        if self._least_activity is None:
            host, scaled = self._scaled.host, self._scaled
            free = np.ones(host.n_columns, dtype=bool)
            free[scaled.inputs] = free[scaled.networks.outputs] = False
            below = np.where(np.isfinite(host.lower), 1.0, 0.0)
            self._least_activity = self.vertex(np.where(free, below, 0.0) / scaled.width)
        return self._least_activity

    def random(self) -> FloatArray | None:
        """A convex combination of two or three vertices in random directions of the inputs."""
        scaled = self._scaled
        vertices = []
        for _ in range(int(self._rng.integers(2, 4))):
            cost = np.zeros(scaled.host.n_columns)
            cost[scaled.inputs] = self._rng.standard_normal(scaled.inputs.size) / scaled.width[scaled.inputs]
            vertex = self.vertex(cost)
            if vertex is None:
                break
            vertices.append(vertex)
        if not vertices:
            return None
        self._vertices.extend(vertices)
        return self._combination(vertices)

    def best_of(self, count: int) -> FloatArray | None:
        """The best of a random point and of `count` combinations of stored vertices."""
        first = self.random()
        if first is None:
            return None
        picks = [self._rng.integers(0, len(self._vertices), 3) for _ in range(count)]
        Z = np.array([first, *(self._combination([self._vertices[k] for k in pick]) for pick in picks)])
        networks = self._scaled.networks
        completed = networks.with_predictions(Z, networks.values(Z))
        return np.asarray(Z[int(np.argmin(self._merit.of(completed)))])

    def _combination(self, vertices: list[FloatArray]) -> FloatArray:
        """A random convex combination, uniform over all weights."""
        return np.asarray(self._rng.dirichlet(np.ones(len(vertices))) @ np.array(vertices))

    def vertex(self, cost: FloatArray) -> FloatArray | None:
        """The best point of the LP relaxation for a cost, within typical ranges if it is unbounded."""
        host, ranges = self._scaled.host, self._scaled.ranges
        found = _best_point(self._relaxed, cost, self._context)
        if found is not None:
            return found
        lower = np.where(np.isfinite(host.lower), host.lower, ranges.lower)
        upper = np.where(np.isfinite(host.upper), host.upper, ranges.upper)
        return _best_point(self._relaxed, cost, self._context, (lower, upper))


def start_stream(context: SolveContext) -> Iterator[tuple[FloatArray, str]]:
    """Starts that continue where the last method stopped; made once (see `SolveContext.once`)."""
    return iter(Starts(context, context.once(scaled_problem)))


def _best_point(
    session: MipSession, cost: FloatArray, context: SolveContext, bounds: Bounds | None = None
) -> FloatArray | None:
    with context.stopwatch.measure("engine"), expendable("LP for a start", EngineError):
        return session.solve(Quadratic.linear(cost), budget=context.budget, gap=GAP, bounds=bounds).x
    return None
