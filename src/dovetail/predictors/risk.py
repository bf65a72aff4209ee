"""One cautious number from several opinions: `risk=`.

A single predictor says nothing of its own error, and an optimiser goes where the error flatters. Several
opinions (the members of an ensemble, the trees of a forest, a mean with its deviation, quantiles) say how far
they disagree. A measure of risk turns them into one number per output:

    MeanSpread(k)    mean - k spread, or mean + k spread if high values are bad
    CVaR(share)      the mean of the worst share of the opinions
    Worst()          the worst opinion

The opinions are a predictor of their own, whose outputs stand side by side. The measure is a small torch
module of these outputs. Values, gradients, bounds and proofs follow from both, as for every predictor.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from scipy import special
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.description import Description
from dovetail.core.errors import PredictorError
from dovetail.core.options import require_choice, require_number
from dovetail.core.predictor import Outer, Predictor, as_predictor
from dovetail.core.quadratic import QuadraticFunction
from dovetail.networks.program import Program, Recording
from dovetail.predictors.derived import DerivedOutputs
from dovetail.predictors.ensemble import Ensemble, refitted
from dovetail.predictors.scikit_learn.estimator import is_a, last_step
from dovetail.predictors.torch.module import TorchPredictor
from dovetail.predictors.torch.operations import largest, named
from dovetail.predictors.torch.traced import Constants, Traced

Bad = Literal["low", "high"]
Form = Literal["deviation", "variance", "log deviation", "log variance"]
FORMS: dict[Form, Callable[[Tensor], Tensor]] = {
    "deviation": lambda said: said,
    "variance": lambda said: named("root", said),
    "log deviation": torch.exp,
    "log variance": lambda said: torch.exp(0.5 * said),
}


@dataclass(frozen=True)
class MeanDeviation:
    """A predictor whose outputs are means, and after them as many measures of spread.

    `form` says what the second half is: "deviation" (standard deviation), "variance", "log deviation" or
    "log variance". A torch module may also return the two as a tuple.

    >>> import numpy as np, dovetail as dt
    >>> said = lambda X: np.column_stack([X[:, 0], 0.1 * X[:, 0] ** 2])
    >>> problem = dt.Problem(dt.Mip([0.0, 1.0], lower=[0.0, -99.0], upper=[9.0, 99.0], sense="max"))
    >>> risk = dt.MeanSpread(1.0, bad="low")
    >>> block = problem.add_predictor(dt.MeanDeviation(said), [0], [1], risk=risk)
    >>> np.round(dt.solve(problem, time_limit=5, log=False).x, 3).tolist()
    [5.0, 2.5]
    """

    predictor: Any
    form: Form = "deviation"

    def __post_init__(self) -> None:
        require_choice("MeanDeviation: form", self.form, tuple(FORMS))

    def opinions(self) -> Opinions:
        """The predictor with tuples joined."""
        given = _Joined(self.predictor) if isinstance(self.predictor, nn.Module) else self.predictor
        return Opinions(as_predictor(given), form=self.form)


@dataclass(frozen=True)
class Quantiles:
    """A predictor whose outputs are quantiles at `levels`, in rising order; of several quantities first all
    of them at the first level. Between two levels quantiles are interpolated, outside constant.

    >>> import numpy as np, dovetail as dt
    >>> net = lambda X: np.column_stack([X[:, 0] - 1.0, X[:, 0], X[:, 0] + 3.0])
    >>> cautious = dt.CVaR(0.25, bad="low").of(dt.Quantiles(net, [0.25, 0.5, 0.75]))
    >>> cautious.predict(np.array([[2.0]])).tolist()
    [[1.0]]
    """

    predictor: Any
    levels: Sequence[float]

    def __post_init__(self) -> None:
        levels = [0.0, *self.levels, 1.0]
        if len(levels) < 3 or not all(low < high for low, high in pairwise(levels)):
            raise PredictorError(
                f"Quantiles: levels is {self.levels!r}; give rising numbers between 0 and 1."
            )

    def opinions(self) -> Opinions:
        """The predictor, weighted by its levels."""
        weights = self.weights(0.0, 1.0)
        return Opinions(as_predictor(self.predictor), weights, weights_between=self.weights)

    def weights(self, first: float, last: float) -> FloatArray:
        """The weight of each quantile in the mean of the distribution between two levels."""
        levels = np.asarray(self.levels, dtype=np.float64)
        at = np.unique([first, last, *levels[(first < levels) & (levels < last)]])
        unit = np.array([np.interp(at, levels, one) for one in np.eye(levels.size)])
        middle = 0.5 * (unit[:, 1:] + unit[:, :-1])
        whole = last - first
        return np.asarray(middle @ np.diff(at) / whole if whole else unit[:, 0])


@dataclass(frozen=True)
class Opinions:
    """A predictor of several opinions, its outputs side by side: opinion by opinion, or means, then
    spreads."""

    predictor: Predictor
    weights: FloatArray | None = None
    """Of the opinions; None for mean and spread."""
    form: Form = "deviation"
    weights_between: Callable[[float, float], FloatArray] | None = None
    """For opinions in rising order: the weights in the mean between two levels."""


def opinions_of(given: Any) -> Opinions:
    """The opinions that an object stands for."""
    if isinstance(given, (MeanDeviation, Quantiles)):
        return given.opinions()
    if isinstance(given, Ensemble) and given.how == "mean":
        return Opinions(Members(given.members, given.weights), given.weights)
    if isinstance(given, (list, tuple)):
        return Opinions(every := Members(given), every.weights)
    if not isinstance(given, Predictor) and is_a(last_step(given), "GaussianProcessRegressor"):
        from dovetail.predictors.scikit_learn.deviation import MeanAndDeviation  # loads scikit-learn

        return Opinions(MeanAndDeviation(given))
    found = None if isinstance(given, Predictor) else _members(given)
    if found is None:
        raise PredictorError(
            f"risk= needs several opinions; {type(given).__name__} gives one. Pass a list of predictors, "
            "a dt.Ensemble by their mean, a forest, bagging or voting regressor or Gaussian process of "
            "scikit-learn's, dt.MeanDeviation(predictor) or dt.Quantiles(predictor, levels)."
        )
    members, weights = found
    return Opinions(every := Members(members, weights), every.weights)


def _members(estimator: Any) -> tuple[list[Any], Any] | None:
    """The members of an ensemble of scikit-learn, each behind the steps of its pipeline; their weights."""
    if is_a(estimator, "Pipeline"):
        inner = _members(estimator.steps[-1][1])
        return inner and ([_behind(estimator, one) for one in inner[0]], inner[1])
    if not is_a(estimator, "ForestRegressor", "BaggingRegressor", "VotingRegressor"):
        return None
    members = getattr(estimator, "estimators_", None)
    if members is None:
        raise PredictorError(f"{type(estimator).__name__} is not trained yet; call its fit first.")
    features = estimator.n_features_in_
    chosen = getattr(estimator, "estimators_features_", None)
    if chosen is not None:
        members = [
            one if np.array_equal(places, np.arange(features)) else Reading(one, places, features)
            for one, places in zip(members, chosen, strict=True)
        ]
    return [*members], getattr(estimator, "_weights_not_none", None)


def _behind(pipeline: Any, member: Any) -> Any:
    """The pipeline with a member of its last step in the place of this step."""
    if isinstance(member, Reading):
        raise PredictorError(
            "risk=: the members of a bagging regressor behind other steps must read all features; train it "
            "with max_features=1.0."
        )
    made = copy.copy(pipeline)
    made.steps = [*pipeline.steps[:-1], ("member", member)]
    return made


class Members(Ensemble):
    """The answers of all predictors side by side."""

    side_by_side = True

    def __init__(self, predictors: Iterable[Any], weights: Any = None) -> None:
        super().__init__(predictors, "mean", weights=weights)

    def predict(self, X: FloatArray) -> FloatArray:
        """The predictors' own answers."""
        return np.concatenate(self._answers(X), axis=1)

    def snapshot(self, device: str) -> Callable[[Any], Any]:
        """The members' differentiable copies."""
        copies = [member.snapshot(device) for member in self.members]
        return lambda U: torch.cat([one(U) for one in copies], dim=1)

    def describe(self, X: FloatArray) -> Description:
        """What all members share."""
        found = super().describe(X)
        name = found.name.removeprefix(f"{self.how} of ")
        return replace(found, name=name, outputs=None, ends_in_sigmoid=None, other_forms=())

    def _joined(self, recording: Recording, outputs: IntArray) -> IntArray:
        return outputs.ravel()

    def _places(self, outputs: int) -> Iterator[FloatArray]:
        every = np.eye(len(self.members) * outputs)
        return iter(np.split(every, len(self.members), axis=1))


class Reading:
    """A predictor of some of the features."""

    def __init__(self, predictor: Any, places: Any, features: int) -> None:
        self._inner, self._features = as_predictor(predictor), features
        self._places = np.asarray(places, dtype=np.int64)

    def predict(self, X: FloatArray) -> FloatArray:
        """The predictor's own answer."""
        return self._inner.predict(X[:, self._places])

    def snapshot(self, device: str) -> Callable[[Any], Any]:
        """The predictor's differentiable copy."""
        forward = self._inner.snapshot(device)
        return lambda U: forward(U[:, self._places])

    def describe(self, X: FloatArray) -> Description:
        """The predictor's description over all features."""
        known = self._inner.describe(X[:, self._places])
        program, trees, places = known.program, known.trees, self._places
        return replace(
            known,
            features=self._features,
            feature_names=None,
            whole_features=tuple(places[[*known.whole_features]].tolist()),
            other_forms=(),
            layers=None,
            program=None
            if program is None
            else lambda features: _of_some(program(places.size), places, features),
            trees=None if trees is None else lambda: trees().reading(places, self._features),
        )


def _of_some(program: Program, places: IntArray, features: int) -> Program:
    """A program of some of the features."""
    recording, size = Recording(features), places.size
    recording.sums(np.arange(size), places, np.ones(size), np.zeros(size))
    moved = [one.moved(lambda numbers: numbers + features) for one in program.operations]
    operations = (*recording.operations, *moved)
    return replace(program, inputs=features, operations=operations, outputs=program.outputs + features)


class _Joined(nn.Module):
    """A module whose outputs may be a tuple of tables."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, values: Tensor) -> Tensor:
        """The tables side by side."""
        said = self.module(values)
        if isinstance(said, Tensor):
            return said
        return torch.cat([part[:, None] if part.ndim == 1 else part for part in said], dim=1)


@dataclass(frozen=True)
class Risk:
    """A measure of risk. `bad` says which values are bad: "low" or "high", or one of the two per output."""

    _: KW_ONLY
    bad: Bad | Sequence[Bad]

    def __post_init__(self) -> None:
        for one in [self.bad] if isinstance(self.bad, str) else self.bad:
            require_choice(f"{type(self).__name__}: bad", one, ("low", "high"))

    @property
    def signs(self) -> FloatArray:
        """1 for each output whose high values are bad, -1 for the others."""
        return np.where(np.atleast_1d(np.asarray(self.bad)) == "high", 1.0, -1.0)

    def of(self, predictor: Any) -> Predictor:
        """The cautious predictor, for places that have no `risk=` (a `dt.Product` of a cautious demand)."""
        return Cautious(predictor, self)

    def spreads_of_normal(self) -> float:
        """The number of deviations from the mean of a normal distribution."""
        raise PredictorError(
            f"{type(self).__name__} has no meaning for a mean and a deviation: a normal distribution has no "
            "worst value. Take dt.MeanSpread or dt.CVaR."
        )

    def worst(self) -> float | None:
        """The share of the opinions that counts; None if all count, by mean and spread."""
        return None


@dataclass(frozen=True)
class MeanSpread(Risk):
    """The mean, and so many spreads (standard deviations of the opinions) to the bad side.

    >>> import numpy as np, dovetail as dt
    >>> models = [lambda X: X[:, 0], lambda X: 3.0 * X[:, 0]]
    >>> dt.MeanSpread(2.0, bad="high").of(models).predict(np.array([[1.0]])).tolist()
    [[4.0]]
    """

    spreads: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("MeanSpread: spreads", self.spreads, at_least=0.0)

    def spreads_of_normal(self) -> float:
        """As stated."""
        return float(self.spreads)


@dataclass(frozen=True)
class CVaR(Risk):
    """The mean of the worst share of the opinions (conditional value at risk).

    >>> import numpy as np, dovetail as dt
    >>> models = [lambda X, k=k: k + X[:, 0] for k in range(10)]
    >>> dt.CVaR(0.2, bad="low").of(models).predict(np.array([[1.0]])).tolist()
    [[1.5]]
    """

    share: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("CVaR: share", self.share, above=0.0, below=float(np.nextafter(1.0, 2.0)))

    def spreads_of_normal(self) -> float:
        """The mean of the worst share of a normal distribution."""
        quantile = float(special.ndtri(self.share))
        return float(np.exp(-0.5 * quantile**2) / np.sqrt(2.0 * np.pi) / self.share)

    def worst(self) -> float:
        """As stated."""
        return float(self.share)


@dataclass(frozen=True)
class Worst(Risk):
    """The worst opinion.

    >>> import numpy as np, dovetail as dt
    >>> models = [lambda X: X[:, 0], lambda X: 3.0 * X[:, 0]]
    >>> dt.Worst(bad="low").of(models).predict(np.array([[1.0]])).tolist()
    [[1.0]]
    """

    def worst(self) -> float:
        """Less than the share of any opinion."""
        return 0.0


class Measured(nn.Module):
    """A measure of risk as a function of the opinions."""

    def __init__(self, risk: Risk, opinions: Opinions) -> None:
        super().__init__()
        self._form, self._weights, worst = opinions.form, opinions.weights, risk.worst()
        self._signs = risk.signs
        self._spreads = risk.spreads_of_normal() if opinions.weights is None or worst is None else 0.0
        self._shares = self._between = None
        if opinions.weights is not None and worst is not None:
            if opinions.weights_between is not None:  # quantiles are in order
                ends = {-1.0: (0.0, worst), 1.0: (1.0 - worst, 1.0)}
                self._between = np.array([opinions.weights_between(*ends[sign]) for sign in risk.signs])
            else:
                self._shares = shares_of_worst(worst, opinions.weights)

    def outputs(self, columns: int) -> int:
        """The number of outputs for so many columns of opinions; an error if the numbers do not fit."""
        parts = 2 if self._weights is None else len(self._weights)
        found = columns // parts
        if found * parts != columns or self._signs.size not in (1, found):
            raise PredictorError(
                f"risk=: {columns} columns of opinions are not {parts} for each output"
                if found * parts != columns
                else f"risk=: bad= has {self._signs.size} entries for {found} outputs; give one for each."
            )
        return found

    def forward(self, Y: Tensor) -> Tensor:
        """One row per sample."""
        outputs, signs = self.outputs(Y.shape[1]), _like(Y, self._signs)
        if self._weights is None:
            return Y[:, :outputs] + self._spreads * signs * FORMS[self._form](Y[:, outputs:])
        each = Y.reshape(len(Y), -1, outputs).transpose(1, 2)  # (n, outputs, opinions)
        if self._shares is not None:
            return signs * largest(each * signs[:, None], self._shares)
        if self._between is not None:
            return (each * _like(Y, self._between)).sum(dim=2)
        weights = _like(Y, self._weights)
        mean = (each * weights).sum(dim=2)
        variance = (torch.square(each - mean[:, :, None]) * weights).sum(dim=2)
        return mean + self._spreads * signs * named("root", variance)


def _like(values: Tensor, array: FloatArray) -> Tensor:
    return torch.as_tensor(array, dtype=values.dtype, device=values.device)


def shares_of_worst(share: float, weights: FloatArray) -> FloatArray:
    """The share of the worst opinion, of the second worst and so on, in the mean of the worst `share`."""
    if share > 0.0 and np.ptp(weights) > 0.0:
        raise PredictorError("CVaR needs opinions of equal weight; leave the weights of the ensemble out.")
    count = share * weights.size
    if count <= 1.0:
        return np.ones(1)
    return np.asarray(np.clip(count - np.arange(int(np.ceil(count - 1e-9))), 0.0, 1.0) / count)


class Cautious(DerivedOutputs):
    """A measure of risk of a predictor with several opinions."""

    def __init__(self, predictor: Any, risk: Risk) -> None:
        opinions = opinions_of(predictor)
        super().__init__(opinions.predictor, extra=0, keep=False)
        self.given, self.risk = predictor, risk
        self._measured, self._columns = Measured(risk, opinions), 0

    def describe(self, X: FloatArray) -> Description:
        """The description of the opinions with the measure behind it, which has kinks."""
        return replace(super().describe(X), smooth=False)

    def refitted(self, fit: Callable[[Any], Any]) -> Predictor:
        """The same measure of the opinions, trained again."""
        given = self.given
        if isinstance(given, (MeanDeviation, Quantiles)):
            return self.risk.of(replace(given, predictor=refitted(as_predictor(given.predictor), fit)))
        if isinstance(given, (list, tuple)):
            return self.risk.of([refitted(as_predictor(one), fit) for one in given])
        return self.risk.of(given.refitted(fit) if isinstance(given, Ensemble) else fit(given))

    def _new_columns(self, X: Any, Y: Any) -> Any:
        if isinstance(Y, Tensor):
            return self._measured(Y)
        with torch.no_grad():
            return np.asarray(self._measured(torch.tensor(Y)))

    def _recorded(self, recording: Recording, outputs: IntArray) -> IntArray:
        row = Traced(torch.from_numpy(outputs)[None], recording, torch.float64, torch.device("cpu"))
        with torch.no_grad(), Constants(row):
            found: Traced = self._measured(row)
        return np.asarray(found.flat.copy())

    def _functions(self) -> tuple[QuadraticFunction, ...]:
        return ()

    def _message_name(self, inner: str) -> str:
        return f"{type(self.risk).__name__} of {inner}"

    def _settle(self, known: Description, features: int, outputs: int) -> None:
        self._measured.outputs(outputs)
        self._columns = outputs

    def _outer(self) -> Outer:
        return Outer(TorchPredictor(self._measured), np.arange(self._columns), np.zeros(0, dtype=np.int64))
