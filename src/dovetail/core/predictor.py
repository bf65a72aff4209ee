"""What dovetail needs of a predictor, and the register that turns foreign objects into one.

A *predictor* is a map from rows of features to rows of outputs, in three methods. `predict` is the truth:
the object as its owner deploys it, in its own dtype. `snapshot` is the same map for gradients, in float64,
with its parameters copied and frozen, so that the owner's object is never changed by a solve. `describe`
says what is known of it. They may be called in any order, any number of times. A whole predictor:

    >>> import numpy as np
    >>> import torch
    >>> import dovetail as dt
    >>> from dovetail.core.description import Description
    >>> class Distance:
    ...     def __init__(self, to):
    ...         self.to = np.array(to)
    ...     def predict(self, X):
    ...         return ((X - self.to) ** 2).sum(axis=1, keepdims=True)
    ...     def snapshot(self, device):
    ...         to = torch.tensor(self.to, device=device)
    ...         return lambda U: ((U - to) ** 2).sum(dim=1, keepdim=True)
    ...     def describe(self, X):
    ...         return Description("distance", smooth=True)
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, 0.0, 1.0], lower=-1.0, upper=9.0))
    >>> block = problem.add_predictor(Distance([0.5, 2.0]), [0, 1], [2])
    >>> dt.solve(problem, log=False, time_limit=5.0).objective < 1e-6
    True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from dovetail.core.description import Description
from dovetail.core.errors import DovetailError, PredictorError
from dovetail.core.table import Recogniser

if TYPE_CHECKING:  # this file is imported with the package: it must not load numpy or torch
    import torch

    from dovetail.core.arrays import FloatArray, IntArray

    Forward = Callable[[torch.Tensor], torch.Tensor]
    """A differentiable map from (n, d) float64 inputs to (n, q) float64 outputs."""


@runtime_checkable
class Predictor(Protocol):
    """A map from (n, d) inputs to (n, q) outputs whose rows do not influence each other."""

    def predict(self, X: FloatArray) -> FloatArray:
        """The owner's own answer for each row of `X`, as float64."""
        ...

    def snapshot(self, device: str) -> Forward:
        """A frozen float64 copy for gradients, on `device`."""
        ...

    def describe(self, X: FloatArray) -> Description:
        """What it is now; it may be evaluated at the probe points `X`, to look at itself."""
        ...


@runtime_checkable
class Limited(Protocol):
    """A predictor that its owner may let be asked only so often. Optional: nobody then asks for what it would
    not answer."""

    @property
    def evaluations_left(self) -> int | None:
        """New rows that it may still be asked about; None: as many as one likes."""
        ...


@runtime_checkable
class OnDevice(Protocol):
    """A predictor that lives where torch's tensors do. Optional: rows that are there need not travel.

    It leaves the rows that it is given alone, these and those of `predict`: nobody copies them before.
    """

    def predict_tensor(self, U: torch.Tensor) -> torch.Tensor:
        """What `predict` says of float64 rows on its own device, in float64, left there."""
        ...


class EvaluationsSpentError(PredictorError):
    """Raised by a predictor that its owner lets be asked only so often, when it was. A solve then ends."""


Builder = Callable[[Any], object]

_register: list[tuple[Recogniser, Builder]] = []

LONGEST = 8
"""Builders may hand on to each other; more steps than this are taken for a circle."""


def register(recognises: Recogniser, build: Builder) -> None:
    """Let `build` make predictors of the objects `recognises` accepts; the newest is asked first."""
    _register.insert(0, (recognises, build))


def register_predictor(recognises: type | Recogniser, build: Builder) -> None:
    """Make `add_predictor` accept objects of your own class.

    `recognises` is the class, or a function that returns True for its objects and False for all others.
    `build(obj)` returns something that dovetail takes: a `torch.nn.Module`, a function f(X) -> Y of numpy
    batches, an estimator, a path, or a `dovetail.core.predictor.Predictor`. The last registration is asked
    first, before the predictors that dovetail knows.

    >>> import dovetail as dt
    >>> class Recipe:
    ...     def cook(self, X):
    ...         return X.sum(axis=1)
    >>> dt.register_predictor(Recipe, lambda recipe: recipe.cook)
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, 1.0, -2.0], upper=[1.0, 1.0, 9.0]))
    >>> problem.add_predictor(Recipe(), inputs=[0, 1], outputs=[2]).name
    'block0'
    """
    if not callable(recognises) or not callable(build):
        raise PredictorError(
            "register_predictor takes a class (or a function that recognises objects) and a function "
            f"build(obj); it was given {_class_of(recognises)} and {_class_of(build)}."
        )
    if isinstance(recognises, type):
        cls = recognises
        register(lambda foreign: isinstance(foreign, cls), build)
    else:
        register(recognises, build)


def as_predictor(foreign: object) -> Predictor:
    """The predictor for a foreign object, by the first registered recogniser that accepts it."""
    built, way = foreign, list[Builder]()
    while not isinstance(built, Predictor):
        build = _builder(built)
        if build is None:
            raise PredictorError(_unknown(built, way))
        if len(way) == LONGEST:
            raise PredictorError(
                f"{_name(build)}, registered for {_class_of(foreign)}, never comes to an end: what it builds "
                "is recognised again. Let it return a torch.nn.Module or a function that is not."
            )
        way.append(build)
        built = _built(build, built)
    return built


def _builder(foreign: object) -> Builder | None:
    for recognises, build in _register:
        try:
            recognised = recognises(foreign)
        except Exception as reason:
            raise PredictorError(
                f"{_name(recognises)}, registered to recognise predictors, failed on {_class_of(foreign)} "
                f"({type(reason).__name__}: {reason}); it must answer True or False to any object."
            ) from reason
        if recognised:
            return build
    return None


def _built(build: Builder, foreign: object) -> object:
    try:
        return build(foreign)
    except (DovetailError, MemoryError):
        raise
    except Exception as reason:
        raise PredictorError(
            f"{_name(build)}, registered for {_class_of(foreign)}, failed: {type(reason).__name__}: {reason}."
        ) from reason


def _unknown(built: object, way: list[Builder]) -> str:
    if way:
        return (
            f"{_name(way[-1])}, registered with register_predictor, returned {_class_of(built)}, which is no "
            "predictor; it must return a torch.nn.Module, a function f(X) -> Y on numpy batches, or "
            "another object dovetail knows."
        )
    return (
        f"{_class_of(built)} is not a predictor dovetail knows. Pass a torch.nn.Module, a scikit-learn "
        "estimator, the path of a file (.onnx, say) or a function f(X) -> Y on numpy batches; or teach "
        "dovetail the class once: "
        f"dovetail.register_predictor({type(built).__qualname__}, build), where build(obj) returns a "
        "torch.nn.Module or such a function that computes what obj does."
    )


def _class_of(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _name(function: object) -> str:
    return getattr(function, "__qualname__", None) or _class_of(function)


@dataclass(frozen=True, eq=False)
class Outer:
    """What is made of a predictor's answers, as a predictor that reads some of the answers, then inputs."""

    predictor: Predictor
    answers: IntArray
    inputs: IntArray


@dataclass(frozen=True, eq=False)
class Apart:
    """The two."""

    inner: Predictor
    extra: int
    """Inputs at the end that the inner one does not see."""
    keep: bool
    """Whether the inner one's own answers are outputs as well, the first ones."""
    outer: Outer


@runtime_checkable
class MadeOfTwo(Protocol):
    """A predictor that can be taken apart."""

    def apart(self) -> Apart | None:
        """The predictor inside and what is made of its answers, as two; None where nothing is inside."""
        ...
