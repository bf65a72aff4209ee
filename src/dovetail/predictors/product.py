"""An output of a predictor times one of its inputs: price times demand, amount times probability."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.core.apart import Outer
from dovetail.core.arrays import IntArray
from dovetail.core.description import Description
from dovetail.core.errors import PredictorError
from dovetail.core.quadratic import QuadraticFunction
from dovetail.networks.program import Recording
from dovetail.predictors.derived import DerivedOutputs, places


class Product(DerivedOutputs):
    """A predictor whose outputs are products: output `output` of `predictor` times input `input`.

    Pass it wherever a predictor goes. `input` is the number of an input, or its name where the predictor was
    trained on a frame; `output` likewise a number. Lists give several products, pair by pair. With `keep` the
    predictor's own outputs come first, so that one block gives demand and revenue. `extra` inputs behind
    the predictor's own are not shown to it: amounts it was not trained on can be factors too.

    Values are exact, gradients too; bounds of the product are as sound as those of the predictor, so that
    small problems are proved. Two variables are multiplied without a predictor, ``Product(None, 0, 1)``.

    >>> import dovetail as dt, numpy as np
    >>> demand = lambda X: 10.0 - 2.0 * X[:, 0]
    >>> problem = dt.Problem(dt.Mip([0.0, 0.0, 1.0], upper=[5.0, 10.0, 99.0], sense="max"))
    >>> sold_for = dt.Product(demand, output=0, input=0, keep=True)
    >>> block = problem.add_predictor(sold_for, inputs=[0], outputs=[1, 2])
    >>> result = dt.solve(problem, time_limit=5, log=False)
    >>> np.round(result.x, 3).tolist()
    [2.5, 5.0, 12.5]
    """

    def __init__(
        self, predictor: Any, output: Any = 0, input: Any = 0, *, extra: int = 0, keep: bool = False
    ) -> None:
        super().__init__(predictor, extra=extra, keep=keep)
        self._output, self._input = output, input
        self._left = self._right = np.zeros(0, dtype=np.int64)

    def _settle(self, known: Description, features: int, outputs: int) -> None:
        names = known.feature_names if known.feature_names and not self._extra else None
        left = places("Product: output", self._output, outputs)
        right = places("Product: input", self._input, features, names)
        if left.size != right.size or left.size == 0:
            raise PredictorError(
                f"Product: {left.size} outputs and {right.size} inputs; give one input for each output."
            )
        self._left, self._right = left, right

    def _made(self, X: Any, Y: Any) -> Any:
        if not self._left.size:  # it is asked before it was described: by its owner
            self.describe(np.zeros((1, X.shape[1])))
        return Y[:, self._left] * X[:, self._right]

    def _outer(self) -> Outer:
        count = self._left.size
        return Outer(Product(None, range(count), range(count, 2 * count)), self._left, self._right)

    def _recorded(self, recording: Recording, outputs: IntArray) -> IntArray:
        return recording.products(outputs[self._left], self._right)

    def _functions(self) -> tuple[QuadraticFunction, ...]:
        pairs = zip(self._left.tolist(), self._right.tolist(), strict=True)
        return tuple(QuadraticFunction.product(left, right) for left, right in pairs)

    def _named(self, inner: str) -> str:
        return f"{inner} times an input"
