"""The check of a solution: is it feasible, and are its outputs the predictors' answers?

The check uses plain numpy on the user's arrays and the user's own predictors. The check shares no code with
solvers, engines and methods, so that their mistakes cannot affect the check.

**"Its outputs are what your predictor says"** means: each output variable equals the answer of the
predictor, as its owner deploys it, for that sample in one batch of all samples of its block, on this
machine, now.

A predictor that computes in less than float64 gives other last digits for the same row in another batch,
with another number of threads, or on another processor. These differences are the predictor's own rounding,
and no other solution would be free of them: a value within the rounding counts as the predictor's. The
effect of the rounding on the constraints of the problem is reported as `Violation.rounding`. A class must be
the same in the batch, alone and in float64; otherwise the solution does not count. docs/claims.md says the
same to users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.arrays import FloatArray, NameOf, all_finite, vector
from dovetail.core.batch_rounding import (
    NOTHING,
    BlockAnswers,
    double_copy,
    largest,
    worst_in_pieces,
    worst_of,
)
from dovetail.core.batch_rounding import Worst as Worst
from dovetail.core.errors import ModelError
from dovetail.core.mip import TOLERANCE
from dovetail.core.problem import Problem
from dovetail.core.words import grid

SLOW = 0.001
"""In seconds. A predictor that took longer to complete a point is not evaluated again for its check. A
second evaluation of a fast predictor costs nothing and detects answers that differ from call to call (the
last check of a solve detects them in any case)."""


@dataclass(frozen=True, repr=False)
class Violation:
    """What a check measured: the largest violation of each kind, and where. Up to `TOLERANCE` a point
    passes.

    >>> import dovetail as dt
    >>> mip = dt.Mip(cost=[1.0], A=[[1.0]], row_lower=2.0, row_upper=9.0, row_names=["demand"])
    >>> violation = dt.check(dt.Problem(mip), [1.5])
    >>> violation.within(), violation.rows.amount, str(violation)
    (False, 0.5, 'infeasible: violates constraint demand by 5.0e-01')
    >>> print(dt.check(dt.Problem(mip), [3.0]))
    feasible: constraints, bounds, integers and predictions hold; largest violation 0
    """

    rows: Worst = NOTHING
    bounds: Worst = NOTHING
    integrality: Worst = NOTHING
    prediction: Worst = NOTHING
    """Distance of an output column from the predictor's answer, relative to max(1, |value|)."""
    precision: Worst = NOTHING
    """Relative distance between the predictor as deployed and its float64 copy; reported, never a failure."""
    rounding: Worst = NOTHING
    """The largest possible violation of a constraint or bound if the samples are evaluated one by one, in
    other batches, on another processor or in float64, because predictors round (1 for a class that may
    change). Reported, never a failure."""

    @property
    def worst(self) -> Worst:
        """The largest of the four kinds of violation that decide whether the point passes."""
        kinds = (self.rows, self.bounds, self.integrality, self.prediction)
        return max(kinds, key=lambda kind: kind.amount)

    @property
    def missed(self) -> str:
        """The most violated item with the size of its violation; "nothing" if the violation is 0."""
        words = {
            "rows": "constraint ",
            "bounds": "the bounds of ",
            "integrality": "integrality of ",
            "prediction": "the prediction of ",
        }
        kind = max(words, key=lambda name: float(getattr(self, name).amount))
        worst: Worst = getattr(self, kind)
        if worst.amount == 0.0:
            return "nothing"
        if kind == "bounds" and worst.amount == np.inf:
            return f"finiteness: {worst.name}"  # only the first kinds were evaluated
        return f"{words[kind]}{worst.name} by {worst.amount:.1e}"

    def __str__(self) -> str:
        """Whether the point is feasible, and the largest violation."""
        if not self.within():
            return f"infeasible: violates {self.missed}"
        most = f": {self.missed}" if self.worst.amount else " 0"
        return f"feasible: constraints, bounds, integers and predictions hold; largest violation{most}"

    def __repr__(self) -> str:
        kinds = [f"{kind} {worst.amount:.1e}" for kind, worst in self._kinds() if worst.amount != 0.0]
        return f"<{type(self).__name__}: {self}{''.join(f'; {kind}' for kind in kinds)}>"

    def _repr_html_(self) -> str:
        title = "the point satisfies the problem" if self.within() else f"the point violates {self.missed}"
        rows = [
            (kind, f"{worst.amount:.1e}" if worst.amount else "0", worst.name)
            for kind, worst in self._kinds()
        ]
        return grid(title, ("kind", "by at most", "where"), rows)

    def _kinds(self) -> list[tuple[str, Worst]]:
        names = ("rows", "bounds", "integrality", "prediction", "precision", "rounding")
        return [(name, getattr(self, name)) for name in names]

    def within(self, tolerance: float = TOLERANCE) -> bool:
        """Whether the point satisfies the problem."""
        return self.worst.amount <= tolerance

    def steady(self, tolerance: float = TOLERANCE) -> bool:
        """Whether the point satisfies the problem for every rounding of its predictors."""
        return self.within(tolerance) and self.rounding.amount <= tolerance


def check(problem: Problem, x: ArrayLike) -> Violation:
    """How far `x` (a value for every column) is from satisfying `problem`.

    Samples of predictors that compute in less than float64 are also evaluated one by one, which takes as
    many calls as there are samples, for a quarter of a second at most.
    """
    plain = isinstance(x, np.ndarray) and x.dtype == np.float64 and x.shape == (problem.stated.n_columns,)
    point = x if plain else vector("x", x, problem.stated.n_columns)  # the array is only read
    return Checker(problem).violation(np.asarray(point), one_by_one=True)


class Checker:
    """Checks many points of one problem; the float64 copies of its predictors are made once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._copies = [double_copy(block.predictor, block.description) for block in problem.blocks]

    def completed(
        self, x: FloatArray, *, one_by_one: bool = False, worth: Callable[[FloatArray], bool] | None = None
    ) -> tuple[FloatArray, Violation]:
        """`x` with every output set by its predictor, and its violation. `x` may be changed in place. A point
        that violates a constraint or bound, or is not `worth` a full check, is not evaluated by other routes
        (in float64, at rows nearby)."""
        problem, answers, begin = self._problem, None, perf_counter()
        if len(problem.stages) == 1:  # one batch of all samples per predictor, as in the check
            answers = [block.predictor.predict(block.read(x)) for block in problem.blocks]
            for block, values in zip(problem.blocks, answers, strict=True):
                block.write(x, block.decode(values) + 0.0)  # never -0
        else:
            x = problem.predict(x) + 0.0
        slow = perf_counter() - begin > SLOW
        seen = self.screened(x)
        if not seen.within() or (worth is not None and not worth(x)):
            return x, seen
        return x, self.violation(x, one_by_one=one_by_one, answers=answers if slow else None)

    def violation(
        self, x: FloatArray, *, one_by_one: bool = False, answers: list[FloatArray] | None = None
    ) -> Violation:
        """The violation of `x`; `one_by_one` also evaluates every sample alone. `answers` are the
        predictors' answers at `x`, one batch for each block, if known."""
        program = self._problem.stated
        if x.shape != (program.n_columns,):
            raise ModelError(f"x has shape {x.shape}, expected ({program.n_columns},).")
        if not all_finite(x):
            j = int(np.flatnonzero(~np.isfinite(x))[0])
            return Violation(bounds=Worst(float("inf"), f"{program.column_name(j)} is {x[j]}"))
        said = self._block_answers(x, one_by_one, answers)
        # the class of a sample changes as a whole: only numeric outputs let rounding reach the rows
        numbers = not all(block.classifies for block in self._problem.blocks)
        beyond = [part.beyond(x) for part in program.rows] if numbers else []
        return Violation(
            rows=self._worst_row(beyond) if numbers else self._farthest_row(x),
            bounds=self._outside(x),
            integrality=self._worst_fraction(x),
            prediction=largest([block.prediction for block in said]),
            precision=largest([block.precision for block in said]),
            rounding=self._rounding(beyond, x, said),
        )

    def screened(self, x: FloatArray) -> Violation:
        """The violation of constraints, bounds and integers alone, for outputs that are known to be the
        predictors' answers."""
        if not all_finite(x):
            return self.violation(x)
        return Violation(
            rows=self._farthest_row(x), bounds=self._outside(x), integrality=self._worst_fraction(x)
        )

    def _worst_row(self, amounts: list[FloatArray]) -> Worst:
        """The largest violation of a constraint, from the violations of all constraints part by part."""
        found, first = [Worst()], 0
        for amount in amounts:
            found.append(worst_of(amount, partial(_name, self._problem.stated.row_name, first)))
            first += len(amount)
        return largest(found)

    def _farthest_row(self, x: FloatArray) -> Worst:
        """The largest violation of the rows, without computing the amounts of all rows."""
        found, first = [Worst()], 0
        for part in self._problem.stated.rows:
            amount, at = part.farthest(x)
            if amount > 0.0:
                found.append(Worst(amount, self._problem.stated.row_name(first + at)))
            first += part.size
        return largest(found)

    def _outside(self, x: FloatArray) -> Worst:
        """The column that is farthest outside its bounds."""
        program = self._problem.stated
        amount, j = max((part.farthest(x) for part in program.columns), key=lambda one: one[0])
        return Worst(amount, program.column_name(j)) if amount > 0.0 else Worst()

    def _worst_fraction(self, x: FloatArray) -> Worst:
        """The integer that is farthest from a whole number."""
        found = [Worst()]
        for part in self._problem.stated.columns:
            if part.whole:
                name_of = partial(_name, self._problem.stated.column_name, part.first)
                found.append(worst_in_pieces(part.fraction(x), part.shape, name_of))
        return largest(found)

    def allowance(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The effect of rounding on the outputs at `x` if its samples are evaluated elsewhere: (columns,) by
        how much an output may change, and (columns,) the lead above which a class is safe."""
        said = self._block_answers(x, one_by_one=True)
        lead = np.zeros(self._problem.stated.n_columns)
        for each in said:
            lead[each.block.outputs] = each.safe_lead
        return self._changes(said), lead

    def _block_answers(
        self, x: FloatArray, one_by_one: bool, answers: list[FloatArray] | None = None
    ) -> list[BlockAnswers]:
        blocks = self._problem.blocks
        known: Sequence[FloatArray | None] = answers or [None] * len(blocks)
        each = zip(blocks, self._copies, known, strict=True)
        return [BlockAnswers(block, copy, x, answer, one_by_one=one_by_one) for block, copy, answer in each]

    def _changes(self, said: list[BlockAnswers]) -> FloatArray:
        """The changes of each block by itself, then through the blocks that read its outputs."""
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

    def _rounding(self, beyond: list[FloatArray], x: FloatArray, said: list[BlockAnswers]) -> Worst:
        """Constraints and bounds under the worst rounding of the outputs, and classes that may change."""
        turning = [block.turning for block in said]
        if all(each.block.classifies for each in said):
            return largest(turning)
        program, changes = self._problem.stated, self._changes(said)
        in_rows = [part.activity(changes, sizes=True) for part in program.rows]
        missed = [np.where(more > 0.0, by + more, -np.inf) for by, more in zip(beyond, in_rows, strict=True)]
        found = [self._worst_row(missed)]
        for part in program.columns:
            more = part.of(changes)
            if np.any(more):
                outside = np.where(more > 0.0, part.outside(x) + more, -np.inf).ravel()
                found.append(worst_of(outside, partial(_name, program.column_name, part.first)))
        return largest([*found, *turning])


def _name(name_of: NameOf, first: int, k: int) -> str:
    return name_of(first + k)
