"""The predictor contract, and the register that turns objects of other libraries into predictors.

A *predictor* maps rows of features to rows of outputs. `predict` is the reference: the object as its owner
deploys it, in its own dtype. `snapshot` is the same map in float64 for gradients, with parameters copied and
frozen, so that a solve never changes the owner's object. `describe` returns its known properties. The methods
may be called in any order, any number of times.

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
from dovetail.core.options import require_methods
from dovetail.core.table import Recogniser

if TYPE_CHECKING:  # this module is imported with the package: it must load neither numpy nor torch
    import torch

    from dovetail.core.arrays import FloatArray, IntArray

    Forward = Callable[[torch.Tensor], torch.Tensor]
    """A differentiable map from (n, d) float64 inputs to (n, q) float64 outputs."""


@runtime_checkable
class Predictor(Protocol):
    """A map from (n, d) inputs to (n, q) outputs whose rows do not influence each other."""

    def predict(self, X: FloatArray) -> FloatArray:
        """The owner's own answer to each row of `X`, as float64."""
        ...

    def snapshot(self, device: str) -> Forward:
        """A frozen float64 copy for gradients, on `device`."""
        ...

    def describe(self, X: FloatArray) -> Description:
        """The current description; the predictor may be evaluated at the probe points `X`."""
        ...


@runtime_checkable
class LimitedPredictor(Protocol):
    """A predictor with a limited number of evaluations (optional)."""

    @property
    def evaluations_left(self) -> int | None:
        """Number of new rows that may still be evaluated; None: unlimited."""
        ...


@runtime_checkable
class OnDevice(Protocol):
    """A predictor that can be called with torch tensors on its own device (optional), so that rows need not
    be moved. It never changes the rows it is given."""

    def predict_tensor(self, U: torch.Tensor) -> torch.Tensor:
        """The answers of `predict` to float64 rows on its own device, as float64 tensors there."""
        ...


@runtime_checkable
class RefittablePredictor(Protocol):
    """A predictor whose owner's object can be trained again (optional)."""

    def refitted(self, fit: Callable[[Any], Any]) -> Predictor:
        """The same predictor of `fit(object)`, a trained copy of the owner's object."""
        ...


class EvaluationsSpentError(PredictorError):
    """Raised by a predictor that has reached its limit on evaluations. The solve then ends."""


Builder = Callable[[Any], object]

_register: list[tuple[Recogniser, Builder]] = []

LONGEST = 8
"""Maximal number of builders that call each other; more count as a circle."""


def register(recognises: Recogniser, build: Builder) -> None:
    """Let `build` make predictors of the objects that `recognises` accepts; the newest is asked first."""
    _register.insert(0, (recognises, build))


def register_predictor(recognises: type | Recogniser, build: Builder) -> None:
    """Make `add_predictor` accept objects of your own class.

    `recognises` is the class, or a function that returns True for its objects and False for all others.
    `build(obj)` returns something that dovetail takes: a `torch.nn.Module`, a function f(X) -> Y of numpy
    batches, an estimator, a path, or a `dovetail.core.predictor.Predictor`. The last registration has
    precedence, also over the predictors that dovetail knows.

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
                f"{_name(build)}, registered for {_class_of(foreign)}, calls itself without end: the "
                f"object that it builds is recognised "
                f"again. Let it return a torch.nn.Module or a function that is not."
            )
        way.append(build)
        built = _built(build, built)
    return built


class Measure(Protocol):
    """A measure of risk (`predictors/risk.py`)."""

    def of(self, predictor: Any) -> Predictor:
        """One cautious predictor from several opinions."""
        ...


def with_risk(predictor: Any, risk: Measure | None) -> Any:
    """The predictor by a measure of risk, if there is one."""
    if risk is None:
        return predictor
    require_methods("risk", risk, ("of",), 'dt.MeanSpread(2, bad="low")')
    return risk.of(predictor)


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
    """A function of a predictor's answers, as a predictor that reads some of the answers, then inputs."""

    predictor: Predictor
    answers: IntArray
    inputs: IntArray


@dataclass(frozen=True, eq=False)
class Composition:
    """The inner and the outer predictor."""

    inner: Predictor
    extra: int
    """Number of inputs at the end that the inner predictor does not read."""
    keep: bool
    """Whether the inner predictor's answers are outputs too, the first ones."""
    outer: Outer


@runtime_checkable
class ComposedPredictor(Protocol):
    """A predictor that is a function of another predictor's answers."""

    def apart(self) -> Composition | None:
        """The inner and the outer predictor; None if there is no inner one."""
        ...
