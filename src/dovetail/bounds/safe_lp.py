"""LPs over one program whose bounds and infeasibilities are proved by us, not believed.

HiGHS finds multipliers; `dual_value` says what they prove. A primal value is never a bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import propagate
from dovetail.bounds.dual_value import dual_value
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import EngineError
from dovetail.core.mip import LARGEST, SMALLEST, Mip
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import Program
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus
from dovetail.run.failures import expendable

WEAK = 1e-7
"""A bound farther below its LP's value than this part of it is worth a second try."""


@dataclass(frozen=True, eq=False)
class LpAnswer:
    """What an LP gave: a point, perhaps, and what is proved."""

    status: MipStatus
    """INFEASIBLE is proved; UNBOUNDED is the solver's word."""
    x: FloatArray | None
    bound: float
    """No x has a lower cost: infinity where there is none at all."""
    multipliers: FloatArray | None = None
    """Of the rows, where the LP was solved: what the bound rests on, or nearly."""
    ray: FloatArray | None = None
    """Multipliers of the rows that show that nothing is there."""


class SafeLp:
    """The LP relaxation of a program in minimisation form, solved again and again with other bounds."""

    def __init__(self, mip: Mip, *, seed: int = 0, threads: int = 1) -> None:
        self._mip, self._seed, self._threads = mip.relaxed(), seed, threads

    @property
    def program(self) -> Mip:
        """With all rows that were added: what multipliers belong to."""
        return self._mip

    @cached_property
    def _live(self) -> LoadedHighs:
        return LoadedHighs(Program.of(self._mip), seed=self._seed, threads=self._threads)

    def add_rows(self, rows: sp.csr_array, lower: FloatArray, upper: FloatArray) -> None:
        """More rows for the next solves, which go on from the last basis."""
        self._live.add_rows(rows, lower, upper)
        self._mip = self._mip.with_rows(rows, lower, upper)
        self.__dict__.pop("_elastic", None)

    def minimise(
        self,
        cost: FloatArray,
        offset: float,
        budget: Budget,
        bounds: tuple[FloatArray, FloatArray] | None = None,
    ) -> LpAnswer:
        """The least cost, for these bounds of the columns; raises no error of the engine's."""
        lower, upper = bounds if bounds is not None else (self._mip.lower, self._mip.upper)
        x, y = None, None
        with expendable("LP for a bound", EngineError):
            self._live.set_bounds(lower, upper)
            self._live.set_objective(cost, offset)
            status, x, _ = self._live.run(budget, 0.0)
            if status is MipStatus.INFEASIBLE:
                return self._infeasible(lower, upper, budget)
            if status is MipStatus.UNBOUNDED or x is None:
                return LpAnswer(status, None, -math.inf)
            y = self._live.row_duals()
        if x is None or y is None:
            return LpAnswer(MipStatus.LIMIT, None, -math.inf)
        value = dual_value(self._mip, cost, offset, y, lower, upper)
        reached = float(cost @ x) + offset
        if value < reached - WEAK * (1.0 + abs(reached)) and not np.all(np.isfinite(upper - lower)):
            value = max(value, self._below(reached, cost, offset, y, lower, upper))
        return LpAnswer(status, np.clip(x, lower, upper), value, y)

    def extreme(
        self,
        columns: IntArray,
        weights: FloatArray,
        sign: float,
        budget: Budget,
        *,
        room: float,
        constant: float = 0.0,
    ) -> tuple[MipStatus, float]:
        """The least (sign 1) or largest (sign -1) value of weights'x[columns] + constant, as far as proved.

        It is moved outwards by `room` max(1, |value|); infinite where nothing is proved.
        """
        cost = np.zeros(self._mip.n_columns)
        np.add.at(cost, columns, sign * weights)
        answer = self.minimise(cost, sign * constant, budget)
        if not math.isfinite(answer.bound):
            return answer.status, -sign * math.inf
        return answer.status, sign * (answer.bound - room * max(1.0, abs(answer.bound)))

    def _below(
        self,
        value: float,
        cost: FloatArray,
        offset: float,
        y: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
    ) -> float:
        """A bound where columns have none: points that cost more than `ceiling` do not matter.

        With cost'x <= ceiling as one more row, many a column is bounded after all; then nothing costs less
        than the smaller of the ceiling and what the multipliers prove.
        """
        ceiling = value + 1.0 + abs(value)
        row = sp.csr_array(np.where(np.abs(cost) >= SMALLEST, cost, 0.0)[None, :])
        skipped = (cost != 0.0) & (np.abs(cost) < SMALLEST)
        if np.any(skipped) or row.nnz == 0 or np.max(np.abs(row.data)) > LARGEST:
            return -math.inf  # entries a Mip does not take
        cut = self._mip.with_rows(row, [-np.inf], [ceiling - offset])
        box = propagate(replace(cut, lower=lower, upper=upper))
        return min(ceiling, dual_value(self._mip, cost, offset, y, box.lower, box.upper))

    def _infeasible(self, lower: FloatArray, upper: FloatArray, budget: Budget) -> LpAnswer:
        """Infeasible if multipliers prove it: HiGHS's ray, or those of the LP of least violation."""
        nothing = np.zeros(lower.size)
        ray = self._live.dual_ray()
        for y in (ray, None if ray is None else -ray):
            if y is not None and dual_value(self._mip, nothing, 0.0, y, lower, upper) > 0.0:
                return LpAnswer(MipStatus.INFEASIBLE, None, math.inf, ray=y)
        y = self._least_violation(lower, upper, budget)
        if y is not None and dual_value(self._mip, nothing, 0.0, y, lower, upper) > 0.0:
            return LpAnswer(MipStatus.INFEASIBLE, None, math.inf, ray=y)
        return LpAnswer(MipStatus.LIMIT, None, -math.inf)

    @cached_property
    def _elastic(self) -> LoadedHighs:
        """The program with every row free to be missed, at the price of the distance."""
        mip, rows = self._mip, self._mip.n_rows
        A = sp.hstack([mip.A, sp.eye_array(rows), -sp.eye_array(rows)], format="csr")
        miss = np.zeros(2 * rows)
        elastic = Program.of(mip)._replace(
            A=sp.csr_array(A),
            lower=np.concatenate([mip.lower, miss]),
            upper=np.concatenate([mip.upper, miss + np.inf]),
            integer=np.zeros(A.shape[1], dtype=bool),
        )
        live = LoadedHighs(elastic, seed=self._seed, threads=self._threads)
        live.set_objective(np.concatenate([np.zeros(mip.n_columns), miss + 1.0]), 0.0)
        return live

    def _least_violation(self, lower: FloatArray, upper: FloatArray, budget: Budget) -> FloatArray | None:
        """Multipliers of the rows where as little as possible is missed."""
        miss = np.zeros(2 * self._mip.n_rows)
        self._elastic.set_bounds(np.concatenate([lower, miss]), np.concatenate([upper, miss + np.inf]))
        _, x, _ = self._elastic.run(budget, 0.0)
        return None if x is None else self._elastic.row_duals()
