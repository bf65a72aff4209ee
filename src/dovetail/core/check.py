"""The judge: is this point what it claims to be?

Plain numpy on the user's arrays and the user's own predictors. Nothing here is
shared with a solver, an engine or a method, so that no mistake there can hide here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dovetail.core.arrays import FloatArray, NameOf, vector
from dovetail.core.block import Block
from dovetail.core.errors import ModelError
from dovetail.core.problem import Problem

TOLERANCE = 1e-6
"""Absolute for rows, bounds and integrality; for predictions relative to max(1, |value|)."""


@dataclass(frozen=True)
class Worst:
    """The largest violation of one kind, and the item that has it ("" when there is none)."""

    amount: float = 0.0
    name: str = ""

    def __str__(self) -> str:
        return f"{self.amount:.1e}" + (f" ({self.name})" if self.name else "")


@dataclass(frozen=True)
class Violation:
    """How far a point is from satisfying a problem, kind by kind."""

    rows: Worst = Worst()
    bounds: Worst = Worst()
    integrality: Worst = Worst()
    prediction: Worst = Worst()
    """Distance of an output column from what its predictor says, relative to max(1, |value|)."""
    precision: Worst = Worst()
    """Distance between the predictor as deployed and its float64 copy, relative; a report, not a failure."""

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
        return f"{words[kind]}{worst.name} by {worst.amount:.1e}"

    def within(self, tolerance: float = TOLERANCE) -> bool:
        """True when the point satisfies the problem."""
        return self.worst.amount <= tolerance


def check(problem: Problem, x: ArrayLike) -> Violation:
    """How far `x` (a value for every column) is from satisfying `problem`."""
    return Checker(problem).violation(vector("x", x, problem.mip.columns))


class Checker:
    """Checks many points of one problem: the float64 copies of its predictors are made once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._copies = [_double(block) for block in problem.blocks]

    def violation(self, x: FloatArray) -> Violation:
        """How far `x` is from satisfying the problem."""
        mip = self._problem.mip
        if x.shape != (mip.columns,):
            raise ModelError(f"x has shape {x.shape}, expected ({mip.columns},).")
        if not np.all(np.isfinite(x)):
            j = int(np.flatnonzero(~np.isfinite(x))[0])
            return Violation(bounds=Worst(float("inf"), f"{mip.column_name(j)} is {x[j]}"))
        activity = mip.A @ x
        beyond = np.maximum(mip.row_lower - activity, activity - mip.row_upper)
        outside = np.maximum(mip.lower - x, x - mip.upper)
        fraction = np.where(mip.integer, np.abs(x - np.round(x)), 0.0)
        prediction, precision = self._predictions(x)
        return Violation(
            rows=_worst(beyond, mip.row_name),
            bounds=_worst(outside, mip.column_name),
            integrality=_worst(fraction, mip.column_name),
            prediction=prediction,
            precision=precision,
        )

    def _predictions(self, x: FloatArray) -> tuple[Worst, Worst]:
        prediction, precision = Worst(), Worst()
        for block, copy in zip(self._problem.blocks, self._copies, strict=True):
            values = block.predictor.predict(x[block.inputs])
            if not np.all(np.isfinite(values)):
                prediction = Worst(float("inf"), f"{block.name}: the predictor does not give a finite number")
                continue
            prediction = max(prediction, _error(block, values, x), key=lambda w: w.amount)
            if not (block.predictor.exact or block.predictor.doubles):
                precision = Worst(float("nan"), f"{block.name}: no float64 copy can be made")
            if copy is not None:
                exact = copy(x[block.inputs])
                apart = np.abs(values - exact) / np.maximum(1.0, np.abs(exact))
                precision = max(precision, _at(block, apart), key=lambda w: w.amount)
                if block.classifies and not np.array_equal(block.outcome(values), block.outcome(exact)):
                    note = f"{block.name}: class differs between its own dtype and float64"
                    prediction = max(prediction, Worst(1.0, note), key=lambda w: w.amount)
        return prediction, precision


def _double(block: Block) -> Callable[[FloatArray], FloatArray] | None:
    """A float64 copy of a predictor that computes in less, as a function of numpy arrays."""
    if block.predictor.exact or not block.predictor.doubles:
        return None
    import torch

    forward = block.predictor.snapshot("cpu")

    def evaluate(X: FloatArray) -> FloatArray:
        with torch.no_grad():
            return np.asarray(forward(torch.from_numpy(np.ascontiguousarray(X))).numpy())

    return evaluate


def _error(block: Block, values: FloatArray, x: FloatArray) -> Worst:
    truth = block.outcome(values)
    apart = np.abs(x[block.outputs] - truth) / np.maximum(1.0, np.abs(truth))
    return _at(block, apart)


def _at(block: Block, amounts: FloatArray) -> Worst:
    amounts = np.where(np.isnan(amounts), np.inf, amounts)
    i, o = np.unravel_index(int(np.argmax(amounts)), amounts.shape)
    amount = float(amounts[i, o])
    return Worst(amount, f"{block.name}, sample {i}, output {o}") if amount > 0 else Worst()


def _worst(amounts: FloatArray, name_of: NameOf) -> Worst:
    if amounts.size == 0:
        return Worst()
    amounts = np.where(np.isnan(amounts), np.inf, amounts)
    k = int(np.argmax(amounts))
    return Worst(float(amounts[k]), name_of(k)) if amounts[k] > 0 else Worst()
