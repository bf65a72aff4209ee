"""Squares of a predictor's outputs, or of variables: distances from a target, quadratic costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.core.apart import Outer
from dovetail.core.arrays import IntArray
from dovetail.core.description import Description
from dovetail.core.errors import PredictorError
from dovetail.core.quadratic import QuadraticFunction
from dovetail.networks.program import Recording
from dovetail.predictors.derived import DerivedOutputs, numbers, places


class Square(DerivedOutputs):
    """A predictor whose outputs are squares: (output - centre)^2 of each output of `predictor`.

    `output` picks one or several of them, by number; without a predictor it is the inputs that are squared.
    `centre` is one number, or one for each square. With `keep` the predictor's own outputs come first.

    >>> import dovetail as dt
    >>> mip = dt.Mip([0.0, 0.0, 1.0], [[1.0, 1.0, 0.0]], 3.0, 3.0, upper=9.0)  # a + b = 3, least (a - b)^2
    >>> problem = dt.Problem(mip)
    >>> difference = lambda X: X[:, 0] - X[:, 1]
    >>> block = problem.add_predictor(dt.Square(difference, centre=1.0), inputs=[0, 1], outputs=[2])
    >>> [round(float(value), 2) for value in dt.solve(problem, time_limit=5, log=False).x[:2]]
    [2.0, 1.0]
    """

    def __init__(
        self, predictor: Any = None, output: Any = None, *, centre: Any = 0.0, keep: bool = False
    ) -> None:
        super().__init__(predictor, extra=0, keep=keep)
        self._output = output
        self._centre = numbers("Square: centre", centre, "a finite number, or one for each square")
        self._read = np.zeros(0, dtype=np.int64)

    def _settle(self, known: Description, features: int, outputs: int) -> None:
        chosen = range(outputs) if self._output is None else self._output
        self._read = places("Square: output", chosen, outputs)
        if self._centre.size not in (1, self._read.size):
            raise PredictorError(
                f"Square: centre has {self._centre.size} numbers for {self._read.size} squares; give as many."
            )

    def _made(self, X: Any, Y: Any) -> Any:
        if not self._read.size:  # it is asked before it was described: by its owner
            self.describe(np.zeros((1, X.shape[1])))
        centre = self._centre if isinstance(Y, np.ndarray) else Y.new_tensor(self._centre)
        return (Y[:, self._read] - centre) ** 2

    def _outer(self) -> Outer:
        return Outer(Square(None, centre=self._centre), self._read, np.zeros(0, dtype=np.int64))

    def _recorded(self, recording: Recording, outputs: IntArray) -> IntArray:
        size = self._read.size
        bias = np.broadcast_to(-self._centre, (size,)).copy()
        moved = recording.sums(np.arange(size), outputs[self._read], np.ones(size), bias)
        return recording.functions("square", moved)

    def _functions(self) -> tuple[QuadraticFunction, ...]:
        centre = np.broadcast_to(self._centre, (self._read.size,))
        squares = zip(self._read.tolist(), centre.tolist(), strict=True)
        return tuple(QuadraticFunction.square(place, middle) for place, middle in squares)

    def _named(self, inner: str) -> str:
        return f"square of {inner}"
