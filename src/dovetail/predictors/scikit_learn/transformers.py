"""scikit-learn's transformers as torch modules.

Scalers and the way back from a scaled target, transformers of rows and of single values, choices of columns,
projections, and products of features, multiplied in scikit-learn's order.

scikit-learn's encoders of categories, over features that are whole numbers.

A feature whose categories are numbers holds the number itself; one whose categories are strings holds the
place of its category in the encoder's own list (`categories_`, sorted unless its owner gave it). At whole
numbers the network is exact. Between whole numbers, where answers have no meaning, the network is
interpolated linearly, so that searches have a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.predictors.function import CallablePredictor
from dovetail.predictors.scikit_learn.estimator import is_a, steps_of, way_out
from dovetail.predictors.scikit_learn.modules import (
    Pointwise,
    Steps,
    clip,
    dense,
    joined,
    picked,
    scale,
    shift,
)
from dovetail.predictors.torch.traced import Traced

ENCODERS = ("OneHotEncoder", "OrdinalEncoder")
Categories = dict[int, tuple[Any, bool]]
"""The categories of a feature, and whether other values are errors."""


def one_hot_encoder(encoder: Any) -> Iterator[nn.Module]:
    """One column for each category: a hat of ReLUs around its number, 0 at all others."""
    numbers, dropped = category_numbers(encoder), encoder.drop_idx_
    kept = []
    for feature, values in enumerate(numbers):
        gone = None if dropped is None else dropped[feature]
        kept += [(feature, value) for place, value in enumerate(values) if place != gone]
    at = np.array([feature for feature, _ in kept])
    centre = np.array([value for _, value in kept])
    size = len(kept)
    spread = np.eye(len(numbers))[at]
    yield dense(np.concatenate([spread] * 3), np.concatenate([1.0 - centre, -centre, -1.0 - centre]))
    yield nn.ReLU()
    yield dense(np.concatenate([np.eye(size), -2.0 * np.eye(size), np.eye(size)], axis=1), 0.0)


def ordinal_encoder(encoder: Any) -> Iterator[nn.Module]:
    """The position of each category, by linear interpolation."""
    numbers = category_numbers(encoder)
    if encoder.handle_unknown != "error":
        raise _unsupported_encoder(encoder, f"handle_unknown={encoder.handle_unknown!r}")
    if all(np.array_equal(np.diff(values), np.ones(values.size - 1)) for values in numbers):
        yield shift(-np.array([values[0] for values in numbers]))
    else:
        branches = [([feature], [*_step_function(values)]) for feature, values in enumerate(numbers)]
        yield from joined(branches, len(numbers))


def _step_function(values: FloatArray) -> Iterator[nn.Module]:
    """0 up to the first value, one more at each further one."""
    slope = 1.0 / np.diff(values) if values.size > 1 else np.zeros(1)
    bends = values[:-1] if values.size > 1 else values
    yield dense(np.ones((bends.size, 1)), -bends)
    yield nn.ReLU()
    yield dense(np.diff(slope, prepend=0.0)[None, :], 0.0)


def category_numbers(encoder: Any) -> list[FloatArray]:
    """By feature, the numbers that stand for its categories: the categories themselves, or their
    positions."""
    if getattr(encoder, "infrequent_categories_", None) is not None and any(
        one is not None for one in encoder.infrequent_categories_
    ):
        raise _unsupported_encoder(encoder, "infrequent categories")
    return [_numbers(encoder, categories) for categories in encoder.categories_]


def _numbers(encoder: Any, categories: Any) -> FloatArray:
    if not is_numeric(categories):
        return np.arange(len(categories), dtype=np.float64)
    values = np.asarray(categories, dtype=np.float64)
    if not np.array_equal(values, np.round(values)):  # NaN and infinity are numbers as well
        raise _unsupported_encoder(encoder, "categories that are no whole numbers")
    return values


def is_numeric(categories: Any) -> bool:
    """Whether a feature holds its categories themselves, not their positions."""
    return bool(np.asarray(categories).dtype.kind in "fiub")


def _unsupported_encoder(encoder: Any, what: str) -> PredictorError:
    return PredictorError(
        f"{type(encoder).__name__} with {what} cannot be written as a network; {way_out(encoder)}"
    )


def categories_read(estimator: Any) -> Categories:
    """The categories of each feature that an encoder reads unchanged."""
    first = (steps_of(estimator) or [None])[0]
    if is_a(first, "ColumnTransformer"):
        found: Categories = {}
        for name, inner, _ in getattr(first, "transformers_", ()):
            if not isinstance(inner, str):
                places = first._transformer_to_input_indices[name]
                found |= {int(places[at]): known for at, known in categories_read(inner).items()}
        return found
    if is_a(first, "SimpleImputer") and len(steps_of(estimator)) > 1:  # there are no missing values
        first = steps_of(estimator)[1]
    if is_a(first, *ENCODERS):
        strict = first.handle_unknown == "error"
        return {at: (categories, strict) for at, categories in enumerate(getattr(first, "categories_", ()))}
    return _histogram_categories(first) if is_a(first, "BaseHistGradientBoosting") else {}


def unread_features(estimator: Any) -> frozenset[int]:
    """The features that a ColumnTransformer in front drops."""
    first = (steps_of(estimator) or [None])[0]
    if not is_a(first, "ColumnTransformer") or not hasattr(first, "transformers_"):
        return frozenset()
    read = {
        int(place)
        for name, inner, _ in first.transformers_
        if not (isinstance(inner, str) and inner == "drop")
        for place in first._transformer_to_input_indices[name]
    }
    return frozenset(range(first.n_features_in_)) - read


def _histogram_categories(estimator: Any) -> Categories:
    """Categories that histogram gradient boosting encodes itself; unknown ones count as missing."""
    chosen = getattr(estimator, "is_categorical_", None)
    if chosen is None:
        return {}
    each = estimator._preprocessor.named_transformers_["encoder"].categories_
    numbers = [np.array([one for one in names if one is not None and one == one]) for names in each]
    return {int(at): (names, False) for at, names in zip(np.flatnonzero(chosen), numbers, strict=True)}


FUNCTIONS: dict[Any, Callable[[Tensor], Tensor]] = {
    np.exp: torch.exp,
    np.expm1: torch.expm1,
    np.square: torch.square,
    np.sqrt: torch.sqrt,
    np.log: torch.log,
    np.log1p: torch.log1p,
    np.abs: torch.abs,
    np.tanh: torch.tanh,
    np.sin: torch.sin,
    np.cos: torch.cos,
    np.negative: torch.neg,
    np.reciprocal: torch.reciprocal,
}
"""numpy functions with a torch equivalent."""


Powers = tuple[int, ...]
"""The exponent of each feature in a monomial."""


def normalizer(estimator: Any) -> Iterator[nn.Module]:
    """Each row divided by its length; rows of zeros are unchanged."""
    yield Pointwise(partial(_unit_rows, estimator.norm))


def _unit_rows(norm: str, values: Tensor) -> Tensor:
    if norm == "l2":
        return values / torch.sqrt(_or_one(torch.square(values).sum(dim=1, keepdim=True)))
    sizes = torch.abs(values)
    return values / _or_one(
        sizes.sum(dim=1, keepdim=True) if norm == "l1" else sizes.amax(dim=1, keepdim=True)
    )


def _or_one(length: Tensor) -> Tensor:
    """A divisor, with 1 in place of 0 for values. A bound that cannot exclude 0 is infinite."""
    return length if isinstance(length, Traced) else torch.where(length == 0.0, 1.0, length)


def binarizer(estimator: Any) -> Iterator[nn.Module]:
    """1 above a threshold, otherwise 0."""
    threshold = float(estimator.threshold)
    yield Steps(lambda values: (values > threshold).astype(np.float64))


def function_transformer(estimator: Any) -> Iterator[nn.Module]:
    """numpy functions as torch functions; others with differences as gradient."""
    options = estimator.kw_args
    if estimator.func in FUNCTIONS and not options:
        yield Pointwise(FUNCTIONS[estimator.func])
    elif estimator.func is not None:
        yield Pointwise(_only_called(partial(estimator.func, **(options or {}))))


def _only_called(function: Callable[[FloatArray], Any]) -> Callable[[Tensor], Tensor]:
    forward = CallablePredictor(function).snapshot("cpu")

    def called(values: Tensor) -> Tensor:
        if isinstance(values, Traced):
            raise UnsupportedError("a function of numpy arrays has no bound")
        return forward(values)

    return called


def projection(estimator: Any) -> Iterator[nn.Module]:
    """PCA and truncated SVD: multiplied before they are centred, as in scikit-learn."""
    components = np.asarray(estimator.components_, dtype=np.float64)
    mean = getattr(estimator, "mean_", None)
    yield dense(components, 0.0 if mean is None else -(components @ mean))
    if getattr(estimator, "whiten", False):
        spread = np.sqrt(estimator.explained_variance_)
        yield scale(1.0 / np.maximum(spread, np.finfo(np.float64).eps))


def selector(estimator: Any) -> Iterator[nn.Module]:
    """Some of the columns."""
    yield picked(estimator.get_support(indices=True), estimator.n_features_in_)


def imputer(estimator: Any) -> Iterator[nn.Module]:
    """Values are never missing here, so only the choice of columns remains."""
    missing = estimator.missing_values
    if estimator.add_indicator or not (isinstance(missing, float) and np.isnan(missing)):
        raise PredictorError(
            "SimpleImputer that looks for anything but NaN, or adds indicators, cannot be written as a "
            f"network; {way_out(estimator)}"
        )
    there = [
        not isinstance(value, (float, np.floating)) or not np.isnan(value) for value in estimator.statistics_
    ]
    kept = np.flatnonzero(there)
    if estimator.keep_empty_features or kept.size == estimator.n_features_in_:
        yield shift(np.zeros(estimator.n_features_in_))
    else:
        yield picked(kept, estimator.n_features_in_)


def polynomial_features(estimator: Any) -> Iterator[nn.Module]:
    """Polynomial features of any degrees; a linear layer if no features are multiplied."""
    powers = np.asarray(estimator.powers_, dtype=np.int64).reshape(-1, estimator.n_features_in_)
    degrees = powers.sum(axis=1)
    if degrees.max(initial=0) <= 1:
        yield dense(powers, (degrees == 0).astype(np.float64))
    else:
        yield Monomials(powers)


class Monomials(nn.Module):
    """Each monomial is its first feature times a monomial of one degree less, with the roundings of
    scikit-learn."""

    def __init__(self, powers: IntArray) -> None:
        super().__init__()
        levels = _levels([tuple(map(int, row)) for row in powers], powers.shape[1])
        self._degree = len(levels)
        for degree, monomials in enumerate(levels[1:], start=2):
            before = {monomial: place for place, monomial in enumerate(levels[degree - 2])}
            first = [_first_feature(monomial) for monomial in monomials]
            rest = [
                before[_without_feature(monomial, at)] for monomial, at in zip(monomials, first, strict=True)
            ]
            self._keep(f"_first{degree}", first)
            self._keep(f"_rest{degree}", rest)
        squares = [_first_feature(monomial) for monomial in levels[1] if max(monomial) == 2]
        self._squares = len(squares)
        """Of degree 2, squares come first: their smallest value is known."""
        order = [(0,) * powers.shape[1], *(monomial for level in levels for monomial in level)]
        place = {monomial: at for at, monomial in enumerate(order)}
        self._keep("_chosen", [place[tuple(map(int, row))] for row in powers])
        self._chosen: Tensor

    def _keep(self, name: str, places: list[int]) -> None:
        self.register_buffer(name, torch.tensor(places, dtype=torch.int64))

    def forward(self, values: Tensor) -> Tensor:
        """One row per sample."""
        levels = [values]
        for degree in range(2, self._degree + 1):
            first, rest = getattr(self, f"_first{degree}"), getattr(self, f"_rest{degree}")
            made = []
            if degree == 2 and self._squares:
                made.append(torch.square(values[:, first[: self._squares]]))
                first, rest = first[self._squares :], rest[self._squares :]
            if len(first):
                made.append(values[:, first] * levels[-1][:, rest])
            levels.append(torch.cat(made, dim=1))
        one = torch.ones_like(values[:, :1])
        return torch.cat([one, *levels], dim=1)[:, self._chosen]


def _levels(wanted: list[Powers], features: int) -> list[list[Powers]]:
    """All monomials that are needed as intermediate results, by degree from 1; squares first."""
    top = max(map(sum, wanted))
    needed: list[set[Powers]] = [set() for _ in range(top + 1)]
    for monomial in wanted:
        needed[sum(monomial)].add(monomial)
    for degree in range(top, 1, -1):
        needed[degree - 1] |= {
            _without_feature(monomial, _first_feature(monomial)) for monomial in needed[degree]
        }
    singles = [tuple(map(int, row)) for row in np.eye(features, dtype=np.int64)]
    return [singles, *(sorted(level, key=lambda one: (-max(one), one)) for level in needed[2:])]


def _first_feature(monomial: Powers) -> int:
    return next(at for at, power in enumerate(monomial) if power)


def _without_feature(monomial: Powers, at: int) -> Powers:
    return tuple(power - (place == at) for place, power in enumerate(monomial))


def standard_scaler(scaler: Any) -> Iterator[nn.Module]:
    """StandardScaler and RobustScaler. Shifted before it is scaled, as in scikit-learn, so that close values
    stay exact."""
    if _centre(scaler) is not None:
        yield shift(-_centre(scaler))
    if scaler.scale_ is not None:
        yield scale(1.0 / scaler.scale_)
    if _centre(scaler) is None and scaler.scale_ is None:
        yield shift(np.zeros(scaler.n_features_in_))


def min_max_scaler(scaler: Any) -> Iterator[nn.Module]:
    """Into a range, clipped if requested."""
    yield dense(np.diag(scaler.scale_), scaler.min_)
    if scaler.clip:
        low, high = scaler.feature_range
        yield from clip(low, high, len(scaler.scale_))


def max_abs_scaler(scaler: Any) -> Iterator[nn.Module]:
    """Into [-1, 1], clipped if requested."""
    yield scale(1.0 / scaler.scale_)
    if getattr(scaler, "clip", False):  # the attribute exists since scikit-learn 1.8
        yield from clip(-1.0, 1.0, len(scaler.scale_))


def inverse(transformer: Any) -> Iterator[nn.Module]:
    """The inverse transform of a target."""
    if is_a(transformer, "MinMaxScaler"):
        yield shift(-transformer.min_)
        yield scale(1.0 / transformer.scale_)
    elif is_a(transformer, "StandardScaler", "RobustScaler", "MaxAbsScaler"):
        if transformer.scale_ is not None:
            yield scale(transformer.scale_)
        if _centre(transformer) is not None:
            yield shift(_centre(transformer))
    elif type(transformer).__name__ == "FunctionTransformer" and transformer.inverse_func in FUNCTIONS:
        yield Pointwise(FUNCTIONS[transformer.inverse_func])
    elif type(transformer).__name__ != "FunctionTransformer" or transformer.inverse_func is not None:
        raise PredictorError(
            f"TransformedTargetRegressor with {type(transformer).__name__} cannot be written as a network; "
            "dovetail takes scalers, and numpy's usual functions as inverse_func. Pass its own predict "
            "method as a plain function instead (predictor=estimator.predict)."
        )


def _centre(scaler: Any) -> Any:
    """What a scaler subtracts, if anything."""
    if is_a(scaler, "StandardScaler"):
        return scaler.mean_ if scaler.with_mean else None
    return getattr(scaler, "center_", None)
