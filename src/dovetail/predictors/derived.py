"""Outputs derived from a predictor's outputs: products with its inputs, and squares.

The inner predictor answers in its own dtype; derived outputs are computed in float64. Gradients pass through
both. If the inner predictor is known operation by operation, so are the derived outputs, and bounds and
proofs cover the whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.description import Description
from dovetail.core.errors import PredictorError
from dovetail.core.predictor import Composition, Outer, Predictor, as_predictor
from dovetail.core.quadratic import QuadraticFunction
from dovetail.networks.arithmetic import FLOAT64
from dovetail.networks.program import Program, Recording


class DerivedOutputs(ABC):
    """A predictor with columns that are functions of its outputs and inputs."""

    def __init__(self, predictor: Any, *, extra: int, keep: bool) -> None:
        """`predictor` is anything that `add_predictor` takes, or None for one that passes its inputs
        through."""
        if isinstance(extra, bool) or not isinstance(extra, Integral) or int(extra) < 0:
            raise PredictorError(f"extra is {extra!r}; give the number of inputs the predictor does not see.")
        if not isinstance(keep, bool):
            raise PredictorError(f"keep is {keep!r}; give True or False.")
        self.given: tuple[Any, ...] = () if predictor is None else (predictor,)
        """The predictor as it was passed, if any."""
        self.inner: Predictor | None = None if predictor is None else as_predictor(predictor)
        self._extra: int = int(extra)
        self._keep: bool = keep

    @abstractmethod
    def _new_columns(self, X: Any, Y: Any) -> Any:
        """The new columns, from arrays of numpy or tensors of torch."""

    @abstractmethod
    def _recorded(self, recording: Recording, outputs: IntArray) -> IntArray:
        """The places of the new columns in a recording; the inputs come first."""

    @abstractmethod
    def _functions(self) -> tuple[QuadraticFunction, ...]:
        """The new columns as functions of the inputs alone, if they are."""

    @abstractmethod
    def _message_name(self, inner: str) -> str:
        """The name in messages."""

    @abstractmethod
    def _settle(self, known: Description, features: int, outputs: int) -> None:
        """Resolve names and numbers once the inner predictor is known, or refuse them."""

    @abstractmethod
    def _outer(self) -> Outer:
        """The new columns as a predictor of its own."""

    def apart(self) -> Composition | None:
        """The inner predictor and the function of its answers; None if there is no inner one."""
        return None if self.inner is None else Composition(self.inner, self._extra, self._keep, self._outer())

    def predict(self, X: FloatArray) -> FloatArray:
        """The predictor's answers and the new columns, in float64."""
        Y = X if self.inner is None else self.inner.predict(X[:, : X.shape[1] - self._extra])
        made = self._new_columns(X, Y)
        return np.asarray(np.concatenate([Y, made], axis=1) if self._keep else made)

    def snapshot(self, device: str) -> Callable[[Any], Any]:
        """The predictor's differentiable copy with the new columns."""
        import torch

        forward = (lambda U: U) if self.inner is None else self.inner.snapshot(device)

        def derived(U: Any) -> Any:
            Y = forward(U[:, : U.shape[1] - self._extra])
            made = self._new_columns(U, Y)
            return torch.cat([Y, made], dim=1) if self._keep else made

        return derived

    def describe(self, X: FloatArray) -> Description:
        """The predictor's description with a different last operation."""
        own = X[:, : X.shape[1] - self._extra]
        known = Description("inputs", smooth=True) if self.inner is None else self.inner.describe(own)
        features = None if known.features is None else known.features + self._extra
        name = self._message_name(known.name)
        if features not in (None, X.shape[1]):
            return replace(known, name=name, features=features, other_forms=())
        outputs = own.shape[1] if self.inner is None else self.inner.predict(own[:1]).shape[1]
        self._settle(known, X.shape[1], outputs)
        return replace(
            known,
            name=name,
            features=features,
            outputs=None,
            feature_names=None if self._extra else known.feature_names,
            ends_in_sigmoid=False,
            is_classifier=False,
            is_multilabel=False,
            gives_class_number=False,
            other_forms=(),
            layers=None,
            trees=None,
            program=self._program_of(known),
            quadratic=self._quadratic if self.inner is None else None,
        )

    def _quadratic(self, features: int) -> tuple[QuadraticFunction, ...]:
        own = range(features - self._extra) if self._keep else ()
        return (*(QuadraticFunction.entry(place) for place in own), *self._functions())

    def _program_of(self, known: Description) -> Callable[[int], Program] | None:
        if self.inner is not None and known.program is None:
            return None

        def program(features: int) -> Program:
            own = features - self._extra
            if known.program is None:
                handed_on = np.arange(own)
                inner = Program(own, (), handed_on, frozenset(("float64",)), False, FLOAT64)
            else:
                inner = known.program(own)
            inner = inner.with_more_inputs(self._extra)
            recording = Recording.resumed(inner)
            made = self._recorded(recording, inner.outputs)
            recording.formats.add("float64")
            outputs = np.concatenate([inner.outputs, made]) if self._keep else made
            return replace(recording.program(outputs), arithmetic=inner.arithmetic)

        return program


def places(what: str, given: Any, count: int, names: tuple[str, ...] | None = None) -> IntArray:
    """Columns by number or, if they have names, by name; negative numbers count from the end."""
    listed = list(given) if isinstance(given, (list, tuple, range, np.ndarray)) else [given]
    found = []
    for item in listed:
        if isinstance(item, str) and names is not None and item in names:
            found.append(names.index(item))
        elif isinstance(item, Integral) and not isinstance(item, bool) and -count <= int(item) < count:
            found.append(int(item) % count)
        else:
            known = f" or one of {', '.join(names)}" if names is not None else ""
            raise PredictorError(f"{what} is {item!r}; give a number from 0 to {count - 1}{known}.")
    return np.array(found, dtype=np.int64)


def numbers(what: str, given: Any, wanted: str) -> FloatArray:
    """A finite number, or a vector of finite numbers; an error says which is expected."""
    try:
        found = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        found = np.full(1, np.nan)
    if found.ndim != 1 or not np.all(np.isfinite(found)):
        raise PredictorError(f"{what} is {given!r}; give {wanted}.")
    return found


class Product(DerivedOutputs):
    """A predictor whose outputs are products: output `output` of `predictor` times input `input`.

    Pass it to `add_predictor` or `add_predictor_constr`. `output` and `input` are numbers; `input` may be a
    name if the predictor was trained on a frame. Lists give several products, pair by pair. With `keep` the
    outputs of the predictor itself come first, so that one call gives demand and revenue. `extra` is the
    number of inputs after those of the predictor, which are only factors.

    Values and gradients are exact, and bounds are valid, so that small problems are proved.
    ``Product(None, 0, 1)`` multiplies two variables without a predictor.

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

    def _new_columns(self, X: Any, Y: Any) -> Any:
        if not self._left.size:  # the owner calls this before the predictor is described
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

    def _message_name(self, inner: str) -> str:
        return f"{inner} times an input"


class Square(DerivedOutputs):
    """A predictor whose outputs are squares: (output - centre)^2 for outputs of `predictor`.

    `output` selects one or several outputs by number; without a predictor the inputs are squared. `centre`
    is one number, or one for each square. With `keep` the outputs of the predictor itself come first.

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

    def _new_columns(self, X: Any, Y: Any) -> Any:
        if not self._read.size:  # the owner calls this before the predictor is described
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

    def _message_name(self, inner: str) -> str:
        return f"square of {inner}"
