"""Pipelines that end in trees: each split is moved back through the earlier steps by evaluating these steps.

- A feature that passes unchanged, or an imputer's feature without missing values, keeps its cut.
- Behind scalers the numbers that go left of a cut are again all numbers up to a largest one, which is found
  by bisection on the live scalers (`assembly.py`).
- Behind an encoder each category goes left or right of a cut; no other value is evaluated.

The live steps are always evaluated: no formula of theirs is repeated here, so that their rounding is
included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.predictor import as_predictor
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.predictors import SCALERS
from dovetail.predictors.scikit_learn.answer import as_read, own_answer
from dovetail.predictors.scikit_learn.estimator import changed_itself, features_of, is_a, steps_of
from dovetail.predictors.scikit_learn.transformers import (
    ENCODERS,
    categories_read,
    category_numbers,
    is_numeric,
)
from dovetail.predictors.silence import NAMES, silenced
from dovetail.predictors.trees.assembly import (
    LinePieces,
    assembled,
    category_pieces,
    largest_going_left,
    threshold_piece,
    trees_of,
)
from dovetail.predictors.trees.predictor import TreePredictor
from dovetail.predictors.trees.scikit_learn import ScikitLearnTrees


class PipelineTrees(ScikitLearnTrees):
    """The pipeline's answers come from the whole; its steps are read one by one."""

    def __init__(self, pipeline: Any) -> None:
        super().__init__(pipeline)
        self._found: FloatArray = np.empty(0)
        """The cuts when they were last moved back: whether they are still valid is quickly tested."""

    def answer(self, X: FloatArray) -> FloatArray:
        """The pipeline's own; a row that holds no category has none."""
        if not categories_read(self._model):
            return super().answer(X)
        return np.asarray(own_answer(self._model, X), dtype=np.float64)

    def answerable(self, X: FloatArray) -> FloatArray:
        """The nearest category for a number that is none, if that would be an error."""
        X = X.copy()
        for feature, (categories, strict) in categories_read(self._model).items():
            if strict:
                numbers = np.sort(_numbers(categories))
                X[:, feature] = numbers[np.abs(X[:, [feature]] - numbers).argmin(axis=1)]
        return X

    def read(self) -> TreeEnsemble:
        """The trees of the last step, over the inputs of the first step."""
        *steps, last = steps_of(self._model)
        ensemble = _tree_predictor(last).read()
        features = features_of(self._model)
        sources = sources_through(steps, features)
        if len(sources) != ensemble.features:
            raise UnsupportedError(
                f"{self.name}: its trees read {ensemble.features} columns, of which {len(sources)} are known."
            )
        scaled = [k for k in ensemble.categories if sources[k].kind is ColumnKind.RISING]
        if scaled:
            raise UnsupportedError(
                f"{self.name}: feature {sources[scaled[0]].feature} is a category to its trees, and scaled "
                "before them; let it pass (a ColumnTransformer with remainder='passthrough')."
            )
        moved = _MovedSplits(self._model, steps, ensemble, sources, features, self._found)
        read = moved.ensemble()
        self._found = moved.found
        return read


class _MovedSplits:
    """The splits of an ensemble as splits on the pipeline's inputs."""

    def __init__(
        self, pipeline: Any, steps: list[Any], ensemble: TreeEnsemble, sources: list[ColumnSource],
        features: int, found: FloatArray,
    ) -> None:  # fmt: skip
        self.found = found
        """The cuts behind scalers, moved back: the stored ones if they are valid, otherwise new ones."""
        self._pipeline, self._steps, self._ensemble, self._features = pipeline, steps, ensemble, features
        self._feature = np.array([one.feature for one in sources], dtype=np.int64)
        self._encoded = np.array([one.kind is ColumnKind.CATEGORY for one in sources], dtype=bool)
        self._known = categories_read(pipeline)
        passed = {int(self._feature[k]) for k in ensemble.categories}
        self._categories = {*passed, *self._feature[self._encoded].tolist()}
        missing = self._categories - passed - set(self._known)
        if missing:
            raise UnsupportedError(f"feature {missing.pop()} is encoded behind a step that is not known")

    def ensemble(self) -> TreeEnsemble:
        given = self._ensemble
        splits = np.flatnonzero(~given.is_leaf & np.isfinite(given.threshold))
        keys = np.stack([given.feature[splits].astype(np.float64), given.threshold[splits]])
        cuts, which = np.unique(keys, axis=1, return_inverse=True)
        column, limit = cuts[0].astype(np.int64), cuts[1]
        rising = ~self._encoded[column]
        threshold = given.threshold.copy()
        moved = np.full(limit.size, np.nan)
        moved[rising] = self._moved_back(column[rising], limit[rising])
        threshold[splits] = moved[which]
        feature = np.where(given.is_leaf, 0, self._feature[given.feature])
        categories = tuple(sorted(self._categories))
        if rising.all():
            return replace(
                given, features=self._features, feature=feature, threshold=threshold, categories=categories
            )
        pieces = [*self._category_pieces(column, limit)]
        by_node = {int(n): pieces[k] for n, k in zip(splits, which.tolist(), strict=True) if not rising[k]}
        threshold[[*by_node]] = 0.0  # never evaluated
        return assembled(
            trees_of(
                replace(given, features=self._features, feature=feature, threshold=threshold), by_node
            ),
            features=self._features, base=given.base, link=given.link, dtype=given.dtype,
            in_order=given.in_order, categories=categories,
        )  # fmt: skip

    def _moved_back(self, column: IntArray, limit: FloatArray) -> FloatArray:
        """The largest value of its feature that is sent left, for cuts behind scalers."""
        place = np.arange(column.size)

        def goes_left(x: FloatArray) -> BoolArray:
            rows = self._neutral_rows(x.size)
            rows[place, self._feature[column]] = x
            return np.asarray(self._through(rows)[place, column] <= limit)

        if not limit.size:
            return np.empty(0)
        if not self._cuts_are_valid(goes_left, limit.size):
            self.found = largest_going_left(goes_left, limit.size)
        return self.found

    def _cuts_are_valid(self, goes_left: Callable[[FloatArray], BoolArray], count: int) -> bool:
        """Whether the stored cuts are valid: two evaluations each, where bisection takes 64."""
        if self.found.size != count or not np.all(np.isfinite(self.found)):
            return False
        return bool(goes_left(self.found).all() and not goes_left(np.nextafter(self.found, np.inf)).any())

    def _category_pieces(self, column: IntArray, limit: FloatArray) -> Iterator[LinePieces]:
        """For every cut; a cut that belongs to no category gets an ordinary split at infinity, which is not
        used."""
        values: dict[int, tuple[FloatArray, FloatArray]] = {}
        for k, cut in zip(column.tolist(), limit.tolist(), strict=True):
            if not self._encoded[k]:
                yield threshold_piece(np.inf)
                continue
            feature = int(self._feature[k])
            if feature not in values:
                numbers = self._numbers(feature)
                rows = self._neutral_rows(numbers.size)
                rows[:, feature] = numbers
                values[feature] = numbers, self._through(rows)
            numbers, behind = values[feature]
            left = behind[:, k] <= cut
            others_left = bool(left[-1])  # the last entry is no category: where all other numbers go
            yield category_pieces(numbers[left != others_left].tolist(), goes_left=not others_left)

    def _numbers(self, feature: int) -> FloatArray:
        """The answers for the categories; the last entry is for no category or, if that is an error, repeats
        the last category."""
        categories, strict = self._known[feature]
        numbers = _numbers(categories)
        return np.append(numbers, numbers[-1] if strict else numbers.max() + 1.0)

    def _neutral_rows(self, count: int) -> FloatArray:
        """Rows that every step takes: zeros, and the first category of each encoded feature."""
        rows = np.zeros((count, self._features))
        for feature in self._known:
            rows[:, feature] = self._numbers(feature)[0]
        return rows

    def _through(self, rows: FloatArray) -> FloatArray:
        with silenced(NAMES):  # the first step may have been trained on a frame
            table = as_read(self._pipeline, rows)
            for step in self._steps:
                table = step.transform(table)
        dense = table.toarray() if hasattr(table, "toarray") else table
        return np.asarray(dense, dtype=np.float64)


def _numbers(categories: Any) -> FloatArray:
    """The numbers that stand for a feature's categories: the categories themselves, or their positions."""
    if is_numeric(categories):
        return np.asarray(categories, dtype=np.float64)
    return np.arange(float(len(categories)))


def _tree_predictor(model: Any) -> TreePredictor:
    predictor = as_predictor(model)
    assert isinstance(predictor, TreePredictor), "other pipelines are not read here"
    return predictor


class ColumnKind(IntEnum):
    """The value of a column as a function of its feature."""

    AS_IT_IS = 0
    RISING = 1
    CATEGORY = 2


class ColumnSource(NamedTuple):
    """The feature from which a column is computed."""

    feature: int
    kind: ColumnKind


def sources_through(steps: list[Any], features: int) -> list[ColumnSource]:
    """The source of every column behind the steps; columns with several features, or that may decrease, are
    refused."""
    found = [ColumnSource(j, ColumnKind.AS_IT_IS) for j in range(features)]
    for step in steps:
        found = _through(step, found)
    return found


def _through(step: Any, given: list[ColumnSource]) -> list[ColumnSource]:
    if isinstance(step, str) or step is None:
        return [] if step == "drop" else given
    reason = changed_itself(step)
    if reason:
        raise UnsupportedError(f"trees behind {type(step).__name__} cannot be read: {reason}.")
    if is_a(step, "Pipeline"):
        for _, inner in step.steps:
            given = _through(inner, given)
        return given
    if is_a(step, *SCALERS):
        return [ColumnSource(one.feature, max(one.kind, ColumnKind.RISING)) for one in given]
    if is_a(step, *ENCODERS):
        return _encoded(step, given)
    if is_a(step, "ColumnTransformer"):
        return _side_by_side(step, given)
    if is_a(step, "FunctionTransformer") and step.func is None:  # "passthrough" after training
        return given
    if is_a(step, "SimpleImputer") and not step.add_indicator and _keeps_all(step):
        return given
    raise UnsupportedError(
        f"trees behind {type(step).__name__} cannot be read, only behind {', '.join((*SCALERS, *ENCODERS))}, "
        "SimpleImputer and ColumnTransformer of these."
    )


def _encoded(encoder: Any, given: list[ColumnSource]) -> list[ColumnSource]:
    """One-hot: a column for each category that is not dropped."""
    if any(one.kind is not ColumnKind.AS_IT_IS for one in given):
        raise UnsupportedError(f"{type(encoder).__name__} behind another step is not supported before trees.")
    numbers = category_numbers(encoder)
    if is_a(encoder, "OrdinalEncoder"):
        return [ColumnSource(one.feature, ColumnKind.CATEGORY) for one in given]
    dropped = [None] * len(given) if encoder.drop_idx_ is None else encoder.drop_idx_
    counts = [len(each) - (gone is not None) for each, gone in zip(numbers, dropped, strict=True)]
    return [
        ColumnSource(one.feature, ColumnKind.CATEGORY)
        for one, count in zip(given, counts, strict=True)
        for _ in range(count)
    ]


def _side_by_side(transformer: Any, given: list[ColumnSource]) -> list[ColumnSource]:
    if transformer.transformer_weights:
        raise UnsupportedError("ColumnTransformer with transformer_weights is not supported before trees.")
    found: list[ColumnSource] = []
    for name, inner, _ in transformer.transformers_:
        places = transformer._transformer_to_input_indices[name]
        if len(places):
            found += _through(inner, [given[int(place)] for place in places])
    return found


def _keeps_all(imputer: Any) -> bool:
    """Whether there is one output column for every input column."""
    known = [isinstance(value, str) or not np.isnan(value) for value in imputer.statistics_]
    return bool(imputer.keep_empty_features or all(known))
