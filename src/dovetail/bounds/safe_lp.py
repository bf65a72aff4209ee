"""Linear programs whose bounds and infeasibility dovetail proves itself.

HiGHS finds the dual multipliers, and `dual_value` computes the bound that the multipliers prove. Primal
values are never used as bounds. For very large problems `least_cost` uses the bounds of the variables alone,
part by part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import UNIT, propagate
from dovetail.bounds.dual_value import dual_value
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.errors import EngineError
from dovetail.core.mip import LARGEST, SMALLEST, TOLERANCE, Mip
from dovetail.core.problem import Problem
from dovetail.core.stated_program import ColumnPart
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import LinearProgram
from dovetail.run.budget import Budget
from dovetail.run.engine import MipStatus
from dovetail.run.failures import expendable

LOOSE_BOUND = 1e-7
"""A bound that is farther below its LP's value, relative to it, is computed a second time."""


@dataclass(frozen=True, eq=False)
class LpAnswer:
    """The result of an LP: a point if there is one, and proved bounds."""

    status: MipStatus
    """INFEASIBLE is proved; UNBOUNDED is the solver's status."""
    x: FloatArray | None
    bound: float
    """A lower bound of the cost; infinity if the LP is infeasible."""
    multipliers: FloatArray | None = None
    """Multipliers of the rows, if the LP was solved: the basis of the bound, or nearly."""
    ray: FloatArray | None = None
    """Multipliers of the rows that prove infeasibility."""


class SafeLp:
    """The LP relaxation of a program in minimisation form, solved repeatedly with other bounds."""

    def __init__(self, mip: Mip, *, seed: int = 0, threads: int = 1) -> None:
        self._mip, self._seed, self._threads = mip.relaxed(), seed, threads

    @property
    def program(self) -> Mip:
        """The program with all added rows, to which multipliers belong."""
        return self._mip

    @cached_property
    def _live(self) -> LoadedHighs:
        return LoadedHighs(LinearProgram.of(self._mip), seed=self._seed, threads=self._threads)

    def add_rows(self, rows: sp.csr_array, lower: FloatArray, upper: FloatArray) -> None:
        """Add rows for the next solves, which continue from the last basis."""
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
        """Minimise the cost for these bounds of the columns; errors of the engine are not raised."""
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
        if value < reached - LOOSE_BOUND * (1.0 + abs(reached)) and not np.all(np.isfinite(upper - lower)):
            value = max(value, self._bound_below_ceiling(reached, cost, offset, y, lower, upper))
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
        """A proved bound of the least (sign 1) or largest (sign -1) value of weights'x[columns] + constant.
        It is relaxed by `room` max(1, |value|); infinite if no bound is proved."""
        cost = np.zeros(self._mip.n_columns)
        np.add.at(cost, columns, sign * weights)
        answer = self.minimise(cost, sign * constant, budget)
        if not math.isfinite(answer.bound):
            return answer.status, -sign * math.inf
        return answer.status, sign * (answer.bound - room * max(1.0, abs(answer.bound)))

    def _bound_below_ceiling(
        self,
        value: float,
        cost: FloatArray,
        offset: float,
        y: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
    ) -> float:
        """A bound if columns have none: points that cost more than `ceiling` do not matter. With cost'x <=
        ceiling as a row many columns are bounded; the bound is the smaller of the ceiling and the bound by
        the multipliers."""
        ceiling = value + 1.0 + abs(value)
        row = sp.csr_array(np.where(np.abs(cost) >= SMALLEST, cost, 0.0)[None, :])
        skipped = (cost != 0.0) & (np.abs(cost) < SMALLEST)
        if np.any(skipped) or row.nnz == 0 or np.max(np.abs(row.data)) > LARGEST:
            return -math.inf  # entries that a Mip refuses
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
        """The program with slacks in every row, at the cost of the violation."""
        mip, rows = self._mip, self._mip.n_rows
        A = sp.hstack([mip.A, sp.eye_array(rows), -sp.eye_array(rows)], format="csr")
        miss = np.zeros(2 * rows)
        elastic = LinearProgram.of(mip)._replace(
            A=sp.csr_array(A),
            lower=np.concatenate([mip.lower, miss]),
            upper=np.concatenate([mip.upper, miss + np.inf]),
            integer=np.zeros(A.shape[1], dtype=bool),
        )
        live = LoadedHighs(elastic, seed=self._seed, threads=self._threads)
        live.set_objective(np.concatenate([np.zeros(mip.n_columns), miss + 1.0]), 0.0)
        return live

    def _least_violation(self, lower: FloatArray, upper: FloatArray, budget: Budget) -> FloatArray | None:
        """Multipliers of the rows at the least total violation."""
        miss = np.zeros(2 * self._mip.n_rows)
        self._elastic.set_bounds(np.concatenate([lower, miss]), np.concatenate([upper, miss + np.inf]))
        _, x, _ = self._elastic.run(budget, 0.0)
        return None if x is None else self._elastic.row_duals()


def no_whole_number(problem: Problem) -> int | None:
    """An integer or class column without a whole number between its bounds."""
    for part, classes in _parts(problem):
        whole = part.integer if classes is None else part.integer | classes
        if np.any(whole):
            lower, upper = _limits(part, classes)
            empty = whole & (np.ceil(lower - TOLERANCE) > np.floor(upper + TOLERANCE))
            if np.any(empty):
                return part.first + int(np.argmax(np.broadcast_to(empty, part.shape)))
    return None


def least_cost(problem: Problem) -> float:
    """A lower bound of the cost between the columns' bounds, in minimisation form; rounded outward."""
    sign, terms = problem.stated.sign, [problem.stated.sign * problem.stated.offset]
    for part, classes in _parts(problem):
        if not part.costs:
            continue
        cost, (lower, upper) = sign * part.cost, _limits(part, classes)
        with np.errstate(invalid="ignore"):  # 0 times infinity
            least = np.where(cost == 0.0, 0.0, cost * np.where(cost > 0.0, lower, upper))
        if not np.all(np.isfinite(least)):
            return -math.inf
        least = least - 2.0 * UNIT * np.abs(least)  # each product is rounded once
        if least.size == 1:  # the same factor for every column: another kind of product
            terms.append(float(least.ravel()[0]) * (part.shape[0] * part.shape[1]))
            terms.append(-2.0 * UNIT * abs(terms[-1]))
        else:
            terms += np.broadcast_to(least, part.shape).ravel().tolist()
    total = math.fsum(terms)
    return total - 2.0 * UNIT * abs(total)


def _parts(problem: Problem) -> Iterator[tuple[ColumnPart, BoolArray | None]]:
    """Parts of the columns, and which columns are classes."""
    outputs = [block.outputs.ravel() for block in problem.blocks if block.classifies]
    spans = [(int(columns.min()), int(columns.max())) for columns in outputs]
    for part in problem.stated.columns:
        size = part.shape[0] * part.shape[1]
        end = part.first + size
        near = [c for c, (low, high) in zip(outputs, spans, strict=True) if low < end and high >= part.first]
        mine = np.concatenate([np.empty(0, np.int64), *(c[(c >= part.first) & (c < end)] for c in near)])
        if mine.size == size:  # no column appears twice
            yield part, np.array(True)
        elif mine.size:
            classes = np.zeros(size, dtype=bool)
            classes[mine - part.first] = True
            yield part, classes.reshape(part.shape)
        else:
            yield part, None


def _limits(part: ColumnPart, classes: BoolArray | None) -> tuple[FloatArray, FloatArray]:
    """Bounds; classes are 0 or 1."""
    if classes is None:
        return part.lower, part.upper
    lower = np.where(classes, np.maximum(np.ceil(part.lower - TOLERANCE), 0.0), part.lower)
    return lower, np.where(classes, np.minimum(np.floor(part.upper + TOLERANCE), 1.0), part.upper)


DIGITS = Fraction(1, 2**51)
"""Decimal numbers are stored to within half of this: if a row's products cancel to a smaller fraction of
their sizes, the sum counts as 0."""
GRID = 2.0**20
"""Directions are rounded to this number of steps of their largest entry, or to multiples of their smallest
one, because further digits of a solver are noise."""


def improving_ray(mip: Mip, direction: FloatArray) -> bool:
    """Whether the cost falls without limit along `direction`, and no row or bound of `mip` stops it."""
    top = float(np.max(np.abs(direction), initial=0.0))
    if not np.isfinite(top) or top == 0.0:
        return False
    ray = np.round(direction / top * GRID) / GRID
    least = float(np.min(np.abs(ray[ray != 0.0])))
    return any(_improves_for_ever(mip, candidate) for candidate in (ray, np.round(ray / least), direction))


def _improves_for_ever(mip: Mip, ray: FloatArray) -> bool:
    backwards = (ray < 0) & np.isfinite(mip.lower)
    forwards = (ray > 0) & np.isfinite(mip.upper)
    if np.any(backwards | forwards):
        return False
    along, size = _product(mip.cost, np.arange(mip.n_columns), ray)
    if along >= -DIGITS * size:
        return False
    return all(_blocks_ray(mip, i, ray) for i in range(mip.n_rows))


def _blocks_ray(mip: Mip, i: int, ray: FloatArray) -> bool:
    entries = slice(mip.A.indptr[i], mip.A.indptr[i + 1])
    columns = mip.A.indices[entries]
    if not np.any(ray[columns]):
        return True
    along, size = _product(mip.A.data[entries], columns, ray)
    rises = along > DIGITS * size and np.isfinite(mip.row_upper[i])
    falls = along < -DIGITS * size and np.isfinite(mip.row_lower[i])
    return not (rises or falls)


def _product(values: FloatArray, columns: np.ndarray, ray: FloatArray) -> tuple[Fraction, Fraction]:
    """The exact sum of values times ray, and the sum of absolute products."""
    total = size = Fraction(0)
    for a, j in zip(values.tolist(), columns.tolist(), strict=True):
        if a and ray[j]:
            product = Fraction(a) * Fraction(float(ray[j]))
            total += product
            size += abs(product)
    return total, size
