"""Evaluating a decision with other models: models of the user's, or the predictors trained again on bootstrap
samples.

The decision stays: all variables but the outputs keep their values. Continuous variables that an equation
ties to the outputs (a profit, a stock) follow if the equation has only one of them; other constraints that no
longer hold are counted.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.errors import DovetailError, OptionError, PredictorError
from dovetail.core.mip import TOLERANCE
from dovetail.core.options import require_count
from dovetail.core.predictor import ComposedPredictor, Predictor, RefittablePredictor, as_predictor
from dovetail.core.problem import Problem
from dovetail.run.second_opinion import SecondOpinion

MOST_BROKEN = 20
"""Largest number of violated constraints that are named, the worst first."""


@dataclass(frozen=True, eq=False)
class Questions:
    """What `Result.second_opinion` was given."""

    predictors: Any = None
    data: Any = None
    refits: int = 20
    refit: Callable[[Any, Any], Any] | None = None
    against: Any = None
    seed: int = 0

    def __post_init__(self) -> None:
        require_count("second_opinion: refits", self.refits, at_least=1)
        if (self.predictors is None) == (self.data is None):
            raise OptionError(
                "second_opinion: give either predictors= (other models) or data=(X, y) (to train again)."
            )

    def models(self, problem: Problem) -> Iterator[dict[str, Predictor]]:
        """For each opinion, the predictors of some blocks by name."""
        if self.data is not None:
            given = _by_block(problem, self.data, "data")
            for k in range(self.refits):
                yield {name: self._refitted(problem, name, X, y, k) for name, (X, y) in given.items()}
            return
        listed = _by_block(problem, self.predictors, "predictors")
        if len({len(each) for each in listed.values()}) != 1:
            raise OptionError("second_opinion: predictors= needs as many models for each block.")
        for each in zip(*listed.values(), strict=True):
            yield dict(zip(listed, map(as_predictor, each), strict=True))

    def _refitted(self, problem: Problem, name: str, X: Any, y: Any, number: int) -> Predictor:
        """The predictor of a block, trained on a bootstrap sample."""
        rng = np.random.default_rng([self.seed, number])
        rows = rng.integers(len(X), size=len(X))
        X, y = _rows(X, rows), _rows(y, rows)
        if self.refit is not None:
            return as_predictor(self.refit(X, y))
        predictor = _block(problem, name).predictor
        if not isinstance(predictor, RefittablePredictor):
            raise PredictorError(
                f"second_opinion: {_block(problem, name).description.name} of {name} has no fit; give "
                "refit=train, a function (X, y) -> a trained predictor, or predictors=[...]."
            )
        return predictor.refitted(lambda model: _trained(model, X, y, rng))


def _trained(model: Any, X: Any, y: Any, rng: np.random.Generator) -> Any:
    """A copy with other random numbers, trained."""
    made = copy.deepcopy(model)
    if hasattr(made, "get_params"):
        states = [name for name in made.get_params() if name.endswith("random_state")]
        made.set_params(**{name: int(rng.integers(2**31)) for name in states})
    return made.fit(X, y)


def _with(block: Block, predictor: Predictor, x: FloatArray) -> Block:
    """The block with another predictor of as many outputs."""
    outputs = predictor.predict(block.read(x)[:1]).shape[1]
    if outputs != block.outputs.shape[1]:
        raise PredictorError(
            f"second_opinion: a model gives {outputs} outputs for {block.name}, not {block.outputs.shape[1]}."
        )
    return replace(block, predictor=predictor)


def _rows(table: Any, rows: IntArray) -> Any:
    return table.iloc[rows] if hasattr(table, "iloc") else np.asarray(table)[rows]


def _block(problem: Problem, name: str) -> Block:
    return next(block for block in problem.blocks if block.name == name)


def _by_block(problem: Problem, given: Any, what: str) -> dict[str, Any]:
    """What was given by the name of a block; a problem with one predictor needs no name."""
    trained = [
        block.name
        for block in problem.blocks
        if not (isinstance(block.predictor, ComposedPredictor) and block.predictor.apart() is None)
    ]
    if not isinstance(given, Mapping):
        if len(trained) != 1:
            raise OptionError(f"second_opinion: {what}= needs the name of a predictor: {', '.join(trained)}.")
        given = {trained[0]: given}
    for name, one in given.items():
        if name not in trained:
            raise OptionError(
                f"second_opinion: no predictor is called {name!r}; there are {', '.join(trained)}."
            )
        if not isinstance(one, (tuple, list)) or not one or (what == "data" and len(one) != 2):
            wanted = "a pair (X, y)" if what == "data" else "a list of models"
            raise OptionError(f"second_opinion: {what}= of {name} must be {wanted}.")
    return dict(given)


@dataclass(frozen=True, eq=False)
class Judge:
    """Evaluates decisions of one problem by other predictors."""

    problem: Problem

    def opinion(self, x: FloatArray, asked: Questions) -> SecondOpinion:
        """The opinions on a decision, and on the reference if there is one."""
        program = self.problem.stated
        reference = self._reference(asked.against)
        objectives, others, points = list[float](), list[float](), list[FloatArray]()
        for models in asked.models(self.problem):
            blocks = tuple(
                _with(block, models[block.name], x) if block.name in models else block
                for block in self.problem.blocks
            )
            changed = self.problem.with_predictors(blocks)
            points.append(self._seen(changed, x))
            objectives.append(program.objective(points[-1]))
            if reference is not None:
                others.append(program.objective(self._seen(changed, reference)))
        return SecondOpinion(
            program.sense, program.objective(x), np.array(objectives),
            None if reference is None else program.objective(self._seen(self.problem, reference)),
            None if reference is None else np.array(others),
            self._broken(points, x), asked.data is not None,
        )  # fmt: skip

    def _reference(self, against: Any) -> FloatArray | None:
        x = getattr(against, "x", against)
        if x is None:
            return None
        found = np.asarray(x, dtype=np.float64)
        if found.shape != (self.problem.stated.n_columns,):
            raise OptionError(
                f"second_opinion: against has the shape {found.shape}; give a result, or a value for each of "
                f"the {self.problem.stated.n_columns} variables."
            )
        return found

    @cached_property
    def _followers(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Equations with exactly one continuous variable outside the predictors, these variables, and their
        coefficients."""
        mip = self.problem.mip
        free = ~mip.integer
        free[self.problem.inputs] = free[self.problem.outputs] = False
        entries = mip.A.tocoo()
        mine = free[entries.col] & (entries.data != 0.0) & (mip.row_lower == mip.row_upper)[entries.row]
        row, column, a = entries.row[mine], entries.col[mine], entries.data[mine]
        alone = np.bincount(row, minlength=mip.n_rows)[row] == 1
        return row[alone], column[alone], a[alone]

    def _seen(self, problem: Problem, x: FloatArray) -> FloatArray:
        """The decision with the outputs of these predictors, and the variables that follow from them."""
        found = problem.predict(x)
        if not np.all(np.isfinite(found)):
            raise DovetailError("second_opinion: a model gives NaN or infinity at the decision.")
        row, column, a = self._followers
        if row.size:
            mip = problem.mip
            missing = mip.row_lower[row] - (mip.A @ found)[row]
            moved = np.abs(missing) > TOLERANCE
            found[column[moved]] += missing[moved] / a[moved]
        return found

    def _broken(self, points: Sequence[FloatArray], x: FloatArray) -> dict[str, FloatArray]:
        """By constraint, the violations of each model's point."""
        program = self.problem.stated
        missed = np.array(
            [_outside(program.activity(z), program.row_lower, program.row_upper) for z in points]
        )
        limits = np.array([_outside(z, program.lower, program.upper) for z in points])
        room = TOLERANCE * (1.0 + program.activity(np.abs(x), sizes=True))
        named = [
            *(
                (program.row_name(i), missed[:, i])
                for i in np.flatnonzero((missed > room).any(axis=0)).tolist()
            ),
            *(
                (f"the bound of {program.column_name(j)}", limits[:, j])
                for j in np.flatnonzero((limits > TOLERANCE).any(axis=0)).tolist()
            ),
        ]
        named.sort(key=lambda one: -float(one[1].max()))
        return {name: np.where(by > TOLERANCE, by, 0.0) for name, by in named[:MOST_BROKEN]}


def _outside(values: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    return np.maximum(np.maximum(lower - values, values - upper), 0.0)
