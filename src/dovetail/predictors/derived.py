"""Outputs made of a predictor's own: what `Product` and `Square` have in common.

The predictor inside answers as ever, in its own dtype; what is made of its answers is computed in float64.
Gradients pass through both. Where the predictor is known operation by operation, so is what is made of it:
bounds and proofs then cover the whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from dovetail.core.apart import Apart, Outer
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.description import Description
from dovetail.core.errors import PredictorError
from dovetail.core.predictor import Predictor, as_predictor
from dovetail.core.quadratic import QuadraticFunction
from dovetail.networks.arithmetic import FLOAT64
from dovetail.networks.program import Program, Recording


class DerivedOutputs(ABC):
    """A predictor, and columns made of its outputs and inputs."""

    def __init__(self, predictor: Any, *, extra: int, keep: bool) -> None:
        """`predictor` is all that `add_predictor` takes, or None for one that hands its inputs on."""
        if isinstance(extra, bool) or not isinstance(extra, Integral) or int(extra) < 0:
            raise PredictorError(f"extra is {extra!r}; give the number of inputs the predictor does not see.")
        if not isinstance(keep, bool):
            raise PredictorError(f"keep is {keep!r}; give True or False.")
        self.inner: Predictor | None = None if predictor is None else as_predictor(predictor)
        self._extra: int = int(extra)
        self._keep: bool = keep

    @abstractmethod
    def _made(self, X: Any, Y: Any) -> Any:
        """The new columns of inputs and outputs, which are arrays of numpy or tensors of torch."""

    @abstractmethod
    def _recorded(self, recording: Recording, outputs: IntArray) -> IntArray:
        """The places of the new columns, once their operations are recorded; the inputs stand first."""

    @abstractmethod
    def _functions(self) -> tuple[QuadraticFunction, ...]:
        """The new columns, where it is the inputs that they are made of."""

    @abstractmethod
    def _named(self, inner: str) -> str:
        """How messages call it."""

    @abstractmethod
    def _settle(self, known: Description, features: int, outputs: int) -> None:
        """Read what can only be read once the predictor inside is known, or refuse it."""

    @abstractmethod
    def _outer(self) -> Outer:
        """The new columns as a predictor of their own."""

    def apart(self) -> Apart | None:
        """The predictor inside and what is made of its answers, as two; None where nothing is inside."""
        return None if self.inner is None else Apart(self.inner, self._extra, self._keep, self._outer())

    def predict(self, X: FloatArray) -> FloatArray:
        """What the predictor says, and what is made of it, in float64."""
        Y = X if self.inner is None else self.inner.predict(X[:, : X.shape[1] - self._extra])
        made = self._made(X, Y)
        return np.asarray(np.concatenate([Y, made], axis=1) if self._keep else made)

    def snapshot(self, device: str) -> Callable[[Any], Any]:
        """The predictor's own copy for gradients, which go on through what is made of it."""
        import torch

        forward = (lambda U: U) if self.inner is None else self.inner.snapshot(device)

        def derived(U: Any) -> Any:
            Y = forward(U[:, : U.shape[1] - self._extra])
            made = self._made(U, Y)
            return torch.cat([Y, made], dim=1) if self._keep else made

        return derived

    def describe(self, X: FloatArray) -> Description:
        """What the predictor says of itself, but for its form: it ends in another operation now."""
        own = X[:, : X.shape[1] - self._extra]
        known = Description("inputs", smooth=True) if self.inner is None else self.inner.describe(own)
        features = None if known.features is None else known.features + self._extra
        name = self._named(known.name)
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
    """Columns by number or, where they have names, by name; negative numbers count from the end."""
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
    """A finite number, or a vector of them; anything else is refused by what is wanted instead."""
    try:
        found = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        found = np.full(1, np.nan)
    if found.ndim != 1 or not np.all(np.isfinite(found)):
        raise PredictorError(f"{what} is {given!r}; give {wanted}.")
    return found
