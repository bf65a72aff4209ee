"""A quadratic form as a predictor: x'Qx in float64, with exact gradients, known operation by operation.

A form that bends one way only is a sum of squares, after its directions were told apart: planes below a
square are tangents, and nothing is lost by them. Any other is the sum of its products and squares, whose
envelopes over a box (McCormick) are the best there are for each of them alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.description import Description
from dovetail.core.quadratic import QuadraticFunction
from dovetail.networks.arithmetic import FLOAT64
from dovetail.networks.program import Program, Recording


class QuadraticForm:
    """x -> (x - centre)'Q(x - centre), one output."""

    def __init__(self, Q: FloatArray, centre: FloatArray) -> None:
        self.function = QuadraticFunction.form(Q, centre)
        F, G = self.function.factors
        self._definite = not (len(F) and len(G))
        self._sign, self._rows = (1.0, F) if not len(G) else (-1.0, G)
        self._left, self._right = np.nonzero(np.triu(Q))
        self._weights = np.where(self._left == self._right, 1.0, 2.0) * Q[self._left, self._right]

    def predict(self, X: FloatArray) -> FloatArray:
        """Each row's value."""
        X = X - self.function.centre
        if self._definite:
            return np.asarray(self._sign * np.square(X @ self._rows.T).sum(axis=1, keepdims=True))
        return np.asarray((X[:, self._left] * X[:, self._right]) @ self._weights[:, None])

    def snapshot(self, device: str) -> Callable[[Any], Any]:
        """The same for gradients."""
        import torch

        centre, rows, weights, left, right = (
            torch.tensor(part, device=device)
            for part in (
                self.function.centre, self._rows.T, self._weights[:, None], self._left, self._right
            )
        )  # fmt: skip
        if self._definite:
            return lambda U: self._sign * (((U - centre) @ rows) ** 2).sum(dim=1, keepdim=True)
        return lambda U: ((U - centre)[:, left] * (U - centre)[:, right]) @ weights

    def describe(self, X: FloatArray) -> Description:
        """Nothing about it ever changes."""
        return Description(
            "quadratic form",
            features=len(self.function.centre),
            smooth=True,
            program=self._program,
            quadratic=self._functions,
        )

    def _functions(self, features: int) -> tuple[QuadraticFunction, ...]:
        return (self.function,)

    def _program(self, features: int) -> Program:
        recording = Recording(features, formats={"float64"})
        moved = every = np.arange(features)
        if np.any(self.function.centre):
            moved = recording.sums(every, every, np.ones(features), -self.function.centre)
        if self._definite:
            count = len(self._rows)
            row, read = np.nonzero(self._rows)
            made = recording.sums(row, moved[read], self._rows[row, read], np.zeros(count))
            made, weights = recording.functions("square", made), np.full(count, self._sign)
        else:
            made, weights = recording.products(moved[self._left], moved[self._right]), self._weights
        total = recording.sums(np.zeros(made.size, dtype=np.int64), made, weights, np.zeros(1))
        program = recording.program(total)
        return Program(features, program.operations, total, program.formats, False, FLOAT64)
