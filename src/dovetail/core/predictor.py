"""What dovetail needs of a predictor, and the register that turns foreign objects into one.

A *predictor* is a map from rows of features to rows of outputs. `predict` is the
truth: the object as its owner deploys it, in its own dtype. `snapshot` is the same
map for gradients, in float64, with its parameters copied and frozen, so that the
owner's object is never changed by a solve.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from dovetail.core.errors import PredictorError

if TYPE_CHECKING:  # this file is imported with the package: it must not load numpy or torch
    import torch

    from dovetail.core.arrays import FloatArray

    Forward = Callable[[torch.Tensor], torch.Tensor]
    """A differentiable map from (n, d) float64 inputs to (n, q) float64 outputs."""


@runtime_checkable
class Predictor(Protocol):
    """A map from (n, d) inputs to (n, q) outputs whose rows do not influence each other."""

    @property
    def name(self) -> str:
        """How messages call it."""
        ...

    @property
    def device(self) -> str:
        """Where the predictor lives: "cpu", "cuda:0", ..."""
        ...

    @property
    def exact(self) -> bool:
        """True when `predict` computes in float64, so that a float64 copy would say the same."""
        ...

    @property
    def doubles(self) -> bool:
        """True when `snapshot` computes in float64; False for code that insists on a lower precision."""
        ...

    def predict(self, X: FloatArray) -> FloatArray:
        """The owner's own answer for each row of `X`, as float64."""
        ...

    def snapshot(self, device: str) -> Forward:
        """A frozen float64 copy for gradients, on `device`."""
        ...

    def examine(self, X: FloatArray) -> Traits:
        """What kind of map this is, seen by evaluating it at the probe points `X`; asked once, first."""
        ...


@dataclass(frozen=True)
class Traits:
    """Facts about a predictor that change how it is treated."""

    smooth: bool
    """False where second derivatives carry nothing (ReLU networks, black boxes)."""
    ends_in_sigmoid: bool | None
    """True or False where the predictor shows it, None where nothing tells."""


Recogniser = Callable[[object], bool]
Builder = Callable[[Any], Predictor]

_register: list[tuple[Recogniser, Builder]] = []


def register(recognises: Recogniser, build: Builder) -> None:
    """Let `build` make predictors of the objects `recognises` accepts; the newest is asked first."""
    _register.insert(0, (recognises, build))


def as_predictor(foreign: object) -> Predictor:
    """The predictor for a foreign object, by the first registered recogniser that accepts it."""
    if isinstance(foreign, Predictor):
        return foreign
    for recognises, build in _register:
        if recognises(foreign):
            return build(foreign)
    raise PredictorError(
        f"{type(foreign).__module__}.{type(foreign).__qualname__} is not a predictor dovetail knows. "
        "Pass a torch.nn.Module or a callable f(X) -> Y on numpy batches; for a class of your own, "
        "write an object with predict, snapshot and examine (dovetail.core.predictor.Predictor)."
    )
