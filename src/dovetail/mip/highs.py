"""HiGHS as an engine for every kind of block: LP and MILP only, since HiGHS refuses quadratic MIPs.

Weights on integer columns with few values are exact (see `expansion`). Weights on continuous columns are
handled by outer approximation: a MILP with tangents in place of the parabolas finds integers, a QP with these
integers fixed finds the best point, tangents at that point are added, and so on until the MILP's bound meets
the best QP value. Tangents lie below the parabolas, so the bound is valid, and they are kept for later
solves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import EngineError
from dovetail.core.mip import Mip
from dovetail.mip.expansion import Expansion
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.loaded_piqp import LoadedPiqp
from dovetail.run.budget import Budget
from dovetail.run.engine import (
    Bounds,
    Heard,
    MipAnswer,
    MipSession,
    MipStatus,
    Quadratic,
    certified,
    within_cutoff,
)

ROUNDS = 10
"""Largest number of rounds of MILP and QP: each costs a MILP, and a step of the outer loop need not be
exact."""
LP_ROUNDS = 100
"""Largest number of rounds of LP and QP, without integers."""
KEPT_TANGENTS = 8
"""Number of tangents per square kept between solves: centres move little, and more rows make nodes slower."""
CONTRADICTION = 1e-6
"""Relative: a bound that exceeds a point's own value by more is invalid."""
BESIDE = 1e-3
"""Relative to max(1, |x|): distance of two tangents on either side of the best point, where slopes
balance."""


class HighsEngine:
    """HiGHS for MILPs; proximal terms by binaries and tangents."""

    name = "highs"

    def refuses(self, mip: Mip, columns: IntArray) -> str | None:
        """HiGHS takes every program."""
        return None

    def load(self, mip: Mip, columns: IntArray, *, seed: int = 0, threads: int = 1) -> MipSession:
        """Load the expanded program once."""
        return HighsSession(mip, columns, seed=seed, threads=threads)


class HighsSession:
    """A program inside HiGHS."""

    def __init__(self, mip: Mip, columns: IntArray, *, seed: int, threads: int) -> None:
        self._mip = mip
        self._expansion = Expansion.of(mip, columns)
        self._live = LoadedHighs(self._expansion.program(), seed=seed, threads=threads)
        self._base_rows = mip.n_rows + np.unique(self._expansion.steps_of).size
        self._tangents = 0
        self._changed_bounds = False

    def solve(
        self,
        objective: Quadratic,
        *,
        budget: Budget,
        start: FloatArray | None = None,
        gap: float = 1e-6,
        bounds: Bounds | None = None,
        cutoff: float = np.inf,
        heard: Heard | None = None,
    ) -> MipAnswer:
        """Minimise, up to `gap` unless a limit is reached. In turns, `heard` is called with the known point
        and bound before each rest."""

        def so_far(lifted: FloatArray | None, bound: float) -> None:
            known = MipAnswer(MipStatus.LIMIT, None, np.inf, bound)
            if lifted is not None:
                x = lifted[: self._mip.n_columns]
                known = certified("HiGHS", self._mip, objective, x, MipStatus.LIMIT, bound, bounds)
            if heard is not None:
                heard(within_cutoff(known, cutoff))

        self._live.set_objective(*self._expansion.cost(objective))
        self._set_bounds(bounds)
        if self._expansion.squares_of.size:
            return self._outer_approximation(objective, budget, start, gap, bounds)
        cutoff = cutoff if self._live.is_mip else np.inf  # an LP that reaches the cutoff ends without a point
        status, lifted, bound = self._run(budget, gap, start, cutoff, so_far)
        if lifted is None:
            return within_cutoff(MipAnswer(status, None, np.inf, bound), cutoff)
        x = lifted[: self._mip.n_columns]
        answer = certified("HiGHS", self._mip, objective, x, status, bound, bounds)
        return within_cutoff(answer, cutoff)

    def _run(
        self,
        budget: Budget,
        gap: float,
        start: FloatArray | None,
        cutoff: float = np.inf,
        heard: Callable[[FloatArray | None, float], None] = lambda x, bound: None,
    ) -> tuple[MipStatus, FloatArray | None, float]:
        """One solve; the start is set last, when all rows are there."""
        if start is not None and self._live.is_mip:
            self._live.set_start(self._expansion.lift(start))
        return self._live.run(budget, gap, cutoff, heard=heard)

    def _set_bounds(self, bounds: Bounds | None) -> None:
        if bounds is not None or self._changed_bounds:
            lower, upper = bounds if bounds is not None else (self._mip.lower, self._mip.upper)
            self._live.set_bounds(*self._expansion.limits(lower, upper))
            self._changed_bounds = bounds is not None

    def _outer_approximation(
        self,
        objective: Quadratic,
        budget: Budget,
        start: FloatArray | None,
        gap: float,
        bounds: Bounds | None,
    ) -> MipAnswer:
        """Alternate a MILP for the integers and a QP for the rest, with tangents at the QP's solution, until
        they agree."""
        best = MipAnswer(MipStatus.LIMIT, None, np.inf, -np.inf)
        if start is not None:
            best, _ = self._polished(start, objective, bounds)
        self._add_tangents(self._column_minima(objective))
        explored: set[bytes] = set()
        for _ in range(ROUNDS if np.any(self._mip.integer) else LP_ROUNDS):
            status, lifted, bound = self._run(budget, 0.5 * gap, best.x)
            if status is MipStatus.UNBOUNDED:
                status, lifted, bound = self._run_from_inside(objective, budget, gap, bounds)
            if bound > best.value + CONTRADICTION * max(1.0, abs(best.value)):
                bound = -np.inf  # no true bound lies above a point's own value
            best = replace(best, bound=min(best.value, max(best.bound, bound)))
            if lifted is None:
                certain = status is not MipStatus.LIMIT and best.x is None
                return replace(best, status=status if certain else MipStatus.LIMIT)
            found, converged = self._polished(lifted[: self._mip.n_columns], objective, bounds)
            if found.value < best.value:
                best = replace(found, bound=best.bound)
            integers = np.round(lifted[: self._mip.n_columns][self._mip.integer]).tobytes()
            near = best.value - best.bound <= gap * max(1.0, abs(best.value))
            if status is MipStatus.OPTIMAL and (near or integers in explored):
                return replace(best, status=MipStatus.OPTIMAL)
            if converged:  # with tangents at their optimum, these integers cannot become the best again
                explored.add(integers)
            if found.x is not None:
                self._add_tangents(found.x)
        return best

    def _run_from_inside(
        self, objective: Quadratic, budget: Budget, gap: float, bounds: Bounds | None
    ) -> tuple[MipStatus, FloatArray | None, float]:
        """Solve again if the tangents leave the program unbounded. Tangents at the best point of any choice
        of integers prevent this unless the program is unbounded in spite of its parabolas."""
        cost, offset = self._expansion.cost(objective)
        self._live.set_objective(np.zeros_like(cost), 0.0)
        _, lifted, _ = self._run(budget, 1.0, None)
        self._live.set_objective(cost, offset)
        if lifted is None:
            return MipStatus.LIMIT, None, -np.inf
        inside, converged = self._polished(lifted[: self._mip.n_columns], objective, bounds)
        if inside.x is None:
            return MipStatus.LIMIT, None, -np.inf
        if not converged:
            return self._held_still(lifted[: self._mip.n_columns], budget, bounds), None, -np.inf
        beside = BESIDE * np.maximum(1.0, np.abs(inside.x))
        for point in (inside.x - beside, inside.x, inside.x + beside):
            self._add_tangents(point)
        return self._run(budget, 0.5 * gap, inside.x)

    def _held_still(self, x: FloatArray, budget: Budget, bounds: Bounds | None) -> MipStatus:
        """UNBOUNDED if the cost falls without limit with all weighted columns fixed at `x`, otherwise
        LIMIT."""
        lower, upper = (side.copy() for side in bounds or (self._mip.lower, self._mip.upper))
        held = self._expansion.weighted
        lower[held] = upper[held] = x[held]
        self._live.set_bounds(*self._expansion.limits(lower, upper))
        status, _, _ = self._run(budget, 1.0, None)
        self._changed_bounds = True
        self._set_bounds(bounds)
        return MipStatus.UNBOUNDED if status is MipStatus.UNBOUNDED else MipStatus.LIMIT

    def _column_minima(self, objective: Quadratic) -> FloatArray:
        """The minimum of each weighted column by itself: a good point for a first tangent."""
        weight = np.where(objective.weight > 0, objective.weight, 1.0)
        goal = objective.centre - objective.cost / weight
        return np.clip(goal, self._mip.lower, self._mip.upper)

    def _add_tangents(self, x: FloatArray) -> None:
        """Add a tangent to every square at the point `x`, and drop the oldest beyond the limit."""
        squares = self._expansion.squares_of
        self._live.add_rows(*self._expansion.tangents(np.arange(squares.size), x[squares]))
        self._tangents += squares.size
        most = KEPT_TANGENTS * squares.size
        if self._tangents > 2 * most:
            self._live.delete_rows(self._base_rows, self._base_rows + self._tangents - most)
            self._tangents = most

    def _polished(self, x: FloatArray, objective: Quadratic, bounds: Bounds | None) -> tuple[MipAnswer, bool]:
        """The best point with the integers of `x`, by a QP; `x` itself and False if the QP fails."""
        mip = self._mip
        whole = np.where(mip.integer, np.round(x), x)
        lower, upper = bounds if bounds is not None else (mip.lower, mip.upper)
        fixed = (np.where(mip.integer, whole, lower), np.where(mip.integer, whole, upper))
        found = LoadedPiqp(mip, *fixed).minimise(objective)
        for point, converged in ((x, False),) if found is None else ((found[0], True), (x, False)):
            try:
                answer = certified("HiGHS", mip, objective, point, MipStatus.LIMIT, -np.inf, bounds)
                return answer, converged
            except EngineError:
                continue
        return MipAnswer(MipStatus.LIMIT, None, np.inf, -np.inf), False
