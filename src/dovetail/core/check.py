"""The judge: is this point what it claims to be?

Plain numpy on the user's arrays and the user's own predictors. Nothing here is
shared with a solver, an engine or a method, so that no mistake there can hide here.

**"Its outputs are what your predictor says"** means: each output column is what the predictor, as its owner
deploys it, answers for that sample in one batch of all samples of its block, on this machine, now. A
predictor that computes in less than float64 gives other last digits for the same row in another batch, with
another number of threads, on another processor. They are its own rounding, and no other point would be
free of it: an answer within it counts as the predictor's. What it may do to the rows of the problem
is reported as `Violation.rounding`. A class must be the same in the batch, alone and in float64, or the
point does not count. docs/claims.md says the same to users.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.arrays import BoolArray, FloatArray, IntArray, NameOf, all_finite, vector
from dovetail.core.batch_rounding import Copy, alone, batch_rounding, double_copy, nearby, rows_nearby
from dovetail.core.block import Block
from dovetail.core.errors import ModelError
from dovetail.core.html_table import grid
from dovetail.core.mip import TOLERANCE
from dovetail.core.problem import Problem

FEW = 4096
"""Rows that are put together for one call of a float64 copy; to copy more of them would take longer."""
SLOW = 0.003
"""Seconds. Predictors that took longer to complete a point are not asked the same again to check it. Of quick
ones a second question costs nothing, and finds those that answer differently from call to call at once (the
last check of a solve does in any case)."""


@dataclass(frozen=True)
class Worst:
    """The largest violation of one kind, and the item that has it ("" when there is none)."""

    amount: float = 0.0
    name: str = ""

    def __str__(self) -> str:
        return f"{self.amount:.1e}" + (f" ({self.name})" if self.name else "")


@dataclass(frozen=True, repr=False)
class Violation:
    """How far a point is from satisfying a problem, kind by kind; up to `TOLERANCE` it counts.

    >>> import dovetail as dt
    >>> mip = dt.Mip(cost=[1.0], A=[[1.0]], row_lower=2.0, row_upper=9.0, row_names=["demand"])
    >>> violation = dt.check(dt.Problem(mip), [1.5])
    >>> violation.within(), violation.rows.amount, str(violation)
    (False, 0.5, 'row demand by 5.0e-01')
    """

    rows: Worst = Worst()
    bounds: Worst = Worst()
    integrality: Worst = Worst()
    prediction: Worst = Worst()
    """Distance of an output column from what its predictor says, relative to max(1, |value|)."""
    precision: Worst = Worst()
    """Distance between the predictor as deployed and its float64 copy, relative; a report, not a failure."""
    rounding: Worst = Worst()
    """By how much a row or a bound may be missed where the samples are evaluated one by one, in other
    batches, on another processor or in float64, as far as the predictors' own rounding goes (1 for a class
    that may turn). A report, not a failure; up to the tolerance nothing is missed."""

    @property
    def worst(self) -> Worst:
        """The largest of the four kinds that decide whether the point counts."""
        kinds = (self.rows, self.bounds, self.integrality, self.prediction)
        return max(kinds, key=lambda kind: kind.amount)

    def __str__(self) -> str:
        """What is worst, in words."""
        words = {
            "rows": "row ",
            "bounds": "the bounds of ",
            "integrality": "integrality of ",
            "prediction": "",
        }
        kind = max(words, key=lambda name: float(getattr(self, name).amount))
        worst: Worst = getattr(self, kind)
        if worst.amount == 0.0:
            return "nothing"
        return f"{words[kind]}{worst.name} by {worst.amount:.1e}"

    def __repr__(self) -> str:
        verdict = "satisfied" if self.within() else f"not satisfied, {self} at worst"
        kinds = [f"{kind} {worst.amount:.1e}" for kind, worst in self._kinds() if worst.amount != 0.0]
        return f"<{type(self).__name__}: {verdict}; {', '.join(kinds) or 'nothing is missed at all'}>"

    def _repr_html_(self) -> str:
        title = "the point satisfies the problem" if self.within() else f"the point misses {self}"
        rows = [
            (kind, f"{worst.amount:.1e}" if worst.amount else "0", worst.name)
            for kind, worst in self._kinds()
        ]
        return grid(title, ("kind", "by at most", "where"), rows)

    def _kinds(self) -> list[tuple[str, Worst]]:
        names = ("rows", "bounds", "integrality", "prediction", "precision", "rounding")
        return [(name, getattr(self, name)) for name in names]

    def within(self, tolerance: float = TOLERANCE) -> bool:
        """True when the point satisfies the problem."""
        return self.worst.amount <= tolerance

    def steady(self, tolerance: float = TOLERANCE) -> bool:
        """True when it does so whatever the predictors' rounding may be elsewhere."""
        return self.within(tolerance) and self.rounding.amount <= tolerance


def check(problem: Problem, x: ArrayLike) -> Violation:
    """How far `x` (a value for every column) is from satisfying `problem`.

    Samples of predictors that compute in less than float64 are also evaluated one by one, which takes as
    many calls as there are samples, for a quarter of a second at most.
    """
    plain = isinstance(x, np.ndarray) and x.dtype == np.float64 and x.shape == (problem.stated.n_columns,)
    point = x if plain else vector("x", x, problem.stated.n_columns)  # it is looked at, no more
    return Checker(problem).violation(np.asarray(point), one_by_one=True)


class Checker:
    """Checks many points of one problem: the float64 copies of its predictors are made once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._copies = [double_copy(block.predictor, block.description) for block in problem.blocks]

    def completed(self, x: FloatArray, *, one_by_one: bool = False) -> tuple[FloatArray, Violation]:
        """`x` with every output as its own predictor says, and how far that is from satisfying all.

        The point is the caller's no more: outputs may be put in place.
        """
        problem, answers, begin = self._problem, None, perf_counter()
        if len(problem.stages) == 1:  # in one batch of all samples each, as the check asks them
            answers = [block.predictor.predict(block.read(x)) for block in problem.blocks]
            for block, values in zip(problem.blocks, answers, strict=True):
                block.write(x, block.decode(values) + 0.0)  # never -0
        else:
            x = problem.predict(x) + 0.0
        slow = perf_counter() - begin > SLOW
        return x, self.violation(x, one_by_one=one_by_one, answers=answers if slow else None)

    def violation(
        self, x: FloatArray, *, one_by_one: bool = False, answers: list[FloatArray] | None = None
    ) -> Violation:
        """How far `x` is from satisfying the problem; `one_by_one` evaluates every sample alone too.

        `answers` are what predictors said of it, block by block, in one batch each, if that is known.
        """
        program = self._problem.stated
        if x.shape != (program.n_columns,):
            raise ModelError(f"x has shape {x.shape}, expected ({program.n_columns},).")
        if not all_finite(x):
            j = int(np.flatnonzero(~np.isfinite(x))[0])
            return Violation(bounds=Worst(float("inf"), f"{program.column_name(j)} is {x[j]}"))
        said = self._said(x, one_by_one, answers)
        # classes cannot turn by a little: only where outputs are numbers does rounding reach the rows
        numbers = not all(block.classifies for block in self._problem.blocks)
        beyond = [part.beyond(x) for part in program.rows] if numbers else []
        return Violation(
            rows=self._worst_row(beyond) if numbers else self._farthest_row(x),
            bounds=self._outside(x),
            integrality=self._fraction(x),
            prediction=_largest([block.prediction for block in said]),
            precision=_largest([block.precision for block in said]),
            rounding=self._rounding(beyond, x, said),
        )

    def _worst_row(self, amounts: list[FloatArray]) -> Worst:
        """Of amounts by which rows are missed, part by part."""
        found, first = [Worst()], 0
        for amount in amounts:
            found.append(_worst(amount, self._row_from(first)))
            first += len(amount)
        return _largest(found)

    def _farthest_row(self, x: FloatArray) -> Worst:
        """The same without amounts of all rows."""
        found, first = [Worst()], 0
        for part in self._problem.stated.rows:
            amount, at = part.farthest(x)
            if amount > 0.0:
                found.append(Worst(amount, self._problem.stated.row_name(first + at)))
            first += part.size
        return _largest(found)

    def _row_from(self, first: int) -> NameOf:
        """Names of rows that are counted from one of them."""
        return lambda k: self._problem.stated.row_name(first + k)

    def _outside(self, x: FloatArray) -> Worst:
        """The column that is farthest outside its bounds."""
        program = self._problem.stated
        amount, j = max((part.farthest(x) for part in program.columns), key=lambda one: one[0])
        return Worst(amount, program.column_name(j)) if amount > 0.0 else Worst()

    def _fraction(self, x: FloatArray) -> Worst:
        """The integer that is farthest from a whole number."""
        found = Worst()
        for part in self._problem.stated.columns:
            if part.whole:
                mine = part.of(x)
                apart = np.where(part.integer, np.abs(mine - np.round(mine)), 0.0).ravel()
                found = _largest([found, _worst(apart, self._name_from(part.first))])
        return found

    def _name_from(self, first: int) -> NameOf:
        """Names of columns that are counted from one of them."""
        return lambda k: self._problem.stated.column_name(first + k)

    def allowance(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What rounding may do to the outputs at `x` where its samples are evaluated elsewhere.

        (columns,) by how much an output may change, and (columns,) the lead from which on a class is safe.
        """
        said = self._said(x, one_by_one=True)
        lead = np.zeros(self._problem.stated.n_columns)
        for each in said:
            lead[each.block.outputs] = each.safe_lead
        return self._changes(said), lead

    def _said(self, x: FloatArray, one_by_one: bool, answers: list[FloatArray] | None = None) -> list[Said]:
        blocks = self._problem.blocks
        known: Sequence[FloatArray | None] = answers or [None] * len(blocks)
        each = zip(blocks, self._copies, known, strict=True)
        return [Said(block, copy, x, answer, one_by_one=one_by_one) for block, copy, answer in each]

    def _changes(self, said: list[Said]) -> FloatArray:
        """Of each block by itself, and then through the blocks that read its outputs."""
        changes = np.zeros(self._problem.stated.n_columns)
        for each in said:
            if not each.block.classifies:
                changes[each.block.outputs] = each.batch_rounding
        numbers = {id(block): b for b, block in enumerate(self._problem.blocks)}
        for stage in self._problem.stages[1:]:
            for block, samples in stage:
                if not block.classifies:
                    changes[block.outputs[samples]] += said[numbers[id(block)]].moved_by(changes, samples)
        return changes

    def _rounding(self, beyond: list[FloatArray], x: FloatArray, said: list[Said]) -> Worst:
        """Rows and bounds at the worst that rounding can do to the outputs in them, and classes."""
        turning = [block.turning for block in said]
        if all(each.block.classifies for each in said):
            return _largest(turning)
        program, changes = self._problem.stated, self._changes(said)
        in_rows = [part.activity(changes, sizes=True) for part in program.rows]
        missed = [np.where(more > 0.0, by + more, -np.inf) for by, more in zip(beyond, in_rows, strict=True)]
        found = [self._worst_row(missed)]
        for part in program.columns:
            more = part.of(changes)
            if np.any(more):
                outside = np.where(more > 0.0, part.outside(x) + more, -np.inf).ravel()
                found.append(_worst(outside, self._name_from(part.first)))
        return _largest([*found, *turning])


class Said:
    """What one block's predictor says of a point, by all routes that are open here."""

    def __init__(
        self, block: Block, copy: Copy | None, x: FloatArray, answer: FloatArray | None, *, one_by_one: bool
    ) -> None:
        self.block, self._x = block, x
        self._evaluate = copy if copy is not None else block.predictor.predict
        self._values = block.predictor.predict(block.read(x)) if answer is None else answer
        inputs = block.view(x)
        self._finite = bool(np.all(np.isfinite(self._values)))
        self.batch_rounding: FloatArray = np.zeros(self._values.shape)
        self._double = self._alone = np.full(self._values.shape, np.nan)
        if not self._finite:
            return
        hair, doubles = rows_nearby(block, inputs), None
        if copy is not None:
            self._double, doubles = _both(copy, inputs, hair)
        near = nearby(block, hair, doubles)
        self.batch_rounding = batch_rounding(block, self._values, near, [self._double])
        which = self._unclear | (one_by_one and not block.description.is_float64)
        if np.any(which):
            self._alone = alone(block, inputs, which, self._values)
            self.batch_rounding = batch_rounding(block, self._values, near, [self._double, self._alone])

    def moved_by(self, changes: FloatArray, samples: IntArray) -> FloatArray:
        """(k, q) what changes of these samples' inputs make of their values, input by input."""
        inputs = self.block.inputs[samples]
        u, evaluate = self._x[inputs], self._evaluate
        moved, before = np.zeros((len(u), self.block.outputs.shape[1])), evaluate(u)
        for place in np.flatnonzero(np.any(changes[inputs] > 0.0, axis=0)):
            step = np.zeros(u.shape)
            step[:, place] = changes[inputs[:, place]]
            up, down = np.abs(evaluate(u + step) - before), np.abs(evaluate(u - step) - before)
            moved += np.nan_to_num(np.maximum(up, down), posinf=0.0)
        return moved

    @property
    def _unclear(self) -> BoolArray:
        """(n,) whose class rounding may turn."""
        if not self.block.classifies:
            return np.zeros(self.block.samples, dtype=bool)
        return np.asarray(self.block.lead(self._values) <= self._sides * self.batch_rounding.max(axis=1))

    @property
    def _sides(self) -> int:
        """A value against a threshold, or two against each other."""
        return 1 if self.block.outputs.shape[1] == 1 else 2

    @property
    def safe_lead(self) -> float:
        """The lead from which on no class turns."""
        return self._sides * float(np.max(self.batch_rounding)) if self.block.classifies else 0.0

    @property
    def prediction(self) -> Worst:
        """How far the output columns are from what was said, beyond its own rounding."""
        block = self.block
        if not self._finite:
            return Worst(float("inf"), f"{block.name}: the predictor does not give a finite number")
        truth = block.decode(self._values)
        apart = np.abs(block.outputs_of(self._x) - truth)
        if not block.classifies:
            apart = np.maximum(apart - self.batch_rounding, 0.0)
        faults = [_at(block, apart / np.maximum(1.0, np.abs(truth)))]
        for other, words in ((self._double, "between its own dtype and float64"), (self._alone, _ALONE)):
            if block.classifies and self._turns(other):
                faults.append(Worst(1.0, f"{block.name}: class differs {words}"))
        return _largest(faults)

    def _turns(self, other: FloatArray) -> bool:
        outcome, values = self.block.decode, self._values
        if np.isnan(other[-1:]).any() or np.isnan(other).any():  # of many most are not asked alone
            seen = ~np.isnan(other).any(axis=1)
            values, other = values[seen], other[seen]
        return not np.array_equal(outcome(values), outcome(other))

    @property
    def precision(self) -> Worst:
        """How far it is from its float64 copy."""
        block = self.block
        if not (self._finite and not block.description.is_float64):
            return Worst()
        if not block.description.has_float64_copy:
            return Worst(float("nan"), f"{block.name}: no float64 copy can be made")
        return _at(block, np.abs(self._values - self._double) / np.maximum(1.0, np.abs(self._double)))

    @property
    def turning(self) -> Worst:
        """A class that was the same by all routes here, and may yet be another elsewhere."""
        if self.block.description.is_float64 or not np.any(self._unclear):
            return Worst()
        i = int(np.flatnonzero(self._unclear)[0])
        return Worst(1.0, f"{self.block.name}, sample {i}: its class")


def _both(copy: Copy, one: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What a copy says of rows: in float64 one call says the same as two, and takes no longer."""
    if len(one) > FEW:
        return copy(one), copy(other)
    answers = copy(np.concatenate([one, other]))
    return answers[: len(one)], answers[len(one) :]


_ALONE = "between a sample in its batch and alone"


def _largest(kinds: list[Worst]) -> Worst:
    """The worst of all, or the first that could not be measured."""
    unknown = [kind for kind in kinds if np.isnan(kind.amount)]
    return unknown[0] if unknown else max(kinds, key=lambda kind: kind.amount, default=Worst())


def _at(block: Block, amounts: FloatArray) -> Worst:
    i, o = np.unravel_index(int(np.argmax(amounts)), amounts.shape)
    amount = _amount(amounts[i, o])
    return Worst(amount, f"{block.name}, sample {i}, output {o}") if amount > 0 else Worst()


def _worst(amounts: FloatArray, name_of: NameOf) -> Worst:
    if amounts.size == 0:
        return Worst()
    k = int(np.argmax(amounts))
    amount = _amount(amounts[k])
    return Worst(amount, name_of(k)) if amount > 0 else Worst()


def _amount(largest: float) -> float:
    """What is no number is the worst there is: numpy's largest, too."""
    return float("inf") if np.isnan(largest) else float(largest)
