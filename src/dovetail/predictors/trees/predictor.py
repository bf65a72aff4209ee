"""A trained tree ensemble as a predictor: the owner's live object predicts, and a flat form describes the
trees.

`predict` always returns the library's own answer. The flat form serves methods and the snapshot. The model is
read again at each request, because owners retrain, and handed out only after it agrees with the live object
at every split. A tree ensemble is a step function: its gradient is 0.

Agreement: for every threshold of every feature a row is made that reaches a split with the threshold. The
row is evaluated three times: with the threshold itself, with the next float64 below and with the next above.
The comparison finds a wrong < for <=, a missing cast, and a misread learning rate or base score, before
anything depends on them.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
from torch import Tensor

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.description import Description
from dovetail.core.errors import DovetailError, PredictorError, UnsupportedError
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.predictors.function import ByNumpy

WAY_OUT = (
    "Pass its own predict method as a plain function instead (predictor=model.predict, or "
    "lambda X: model.predict_proba(X)[:, 1])."
)


class TreePredictor(ABC):
    """A tree ensemble; each library has a class that says how its models are evaluated and read."""

    both_classes = False
    """Whether the model gives two columns if there are two classes."""
    agreed: TreeEnsemble | None = None
    """The reading that was compared last."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.name = type(model).__name__

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Feature names, if the model was trained on a frame."""
        return None

    @property
    @abstractmethod
    def is_classifier(self) -> bool:
        """Whether the model is a classifier; its answer is then probabilities."""

    @abstractmethod
    def answer(self, X: FloatArray) -> FloatArray:
        """(n, q) the owner's own answer; of two classes, both."""

    @abstractmethod
    def read(self) -> TreeEnsemble:
        """The current trees; for two classes both, or the score of the second."""

    def answerable(self, X: FloatArray) -> FloatArray:
        """Valid rows near these: a number that is no category may have no answer."""
        return X

    def with_columns_of(self, *, both_classes: bool) -> Self:
        """The same for two classes in two columns, or in one."""
        made = copy.copy(self)
        made.both_classes, made.agreed = both_classes, None
        return made

    def refitted(self, fit: Callable[[Any], Any]) -> TreePredictor:
        """The same for a copy of the model that was trained again."""
        made = copy.copy(self)
        made._model, made.agreed = fit(self._model), None
        return made

    def predict(self, X: FloatArray) -> FloatArray:
        """The owner's own answer."""
        if len(X) == 0:  # scikit-learn refuses such values
            return np.empty((0, self.trees().outputs))
        known = self.agreed or self.trees()
        return self._columns(self.answer(at_categories(known, np.array(X, dtype=np.float64))))

    def snapshot(self, device: str) -> Callable[[Tensor], Tensor]:
        """The values of the current flat form, added up in float64."""
        ensemble = replace(self.trees(), in_order=False)

        def forward(inputs: Tensor) -> Tensor:
            values: Tensor = ByNumpy.apply(inputs, ensemble.values, None)  # type: ignore[no-untyped-call]
            return values

        return forward

    def describe(self, X: FloatArray) -> Description:
        """Read from the flat form."""
        ensemble = self.trees()
        return Description(
            self.name,
            features=ensemble.features,
            outputs=ensemble.outputs,
            feature_names=self.feature_names,
            whole_features=ensemble.categories,
            dtypes=(ensemble.dtype,),
            ends_in_sigmoid=self.is_classifier,
            is_classifier=self.is_classifier,
            other_forms=self._other_forms(),
            trees=self.trees,
        )

    def trees(self) -> TreeEnsemble:
        """The flat form of the current trees, after it was compared with the owner's answers."""
        try:
            ensemble = self._form(self.read())
            if self.agreed is None or not _equal_bits(ensemble, self.agreed):
                self.agreed = agreeing(
                    self.name, ensemble, lambda X: self._columns(self.answer(X)), self.answerable
                )
        except UnsupportedError as reason:
            raise PredictorError(f"{reason} {WAY_OUT}") from reason
        except (KeyError, ValueError, IndexError, AttributeError, TypeError) as reason:
            if isinstance(reason, DovetailError):
                raise
            why = f"{type(reason).__name__}: {reason}"
            raise PredictorError(f"{self.name} cannot be read as trees ({why}). {WAY_OUT}") from reason
        return self.agreed

    def _form(self, ensemble: TreeEnsemble) -> TreeEnsemble:
        if not self.is_classifier:
            return ensemble
        if self.both_classes and ensemble.link == "sigmoid" and ensemble.base.size == 1:
            return ensemble.with_values(ensemble.value, ensemble.base, "both classes")
        if not self.both_classes and ensemble.link == "identity" and ensemble.base.size == 2:
            return ensemble.with_values(ensemble.value[:, 1:].copy(), ensemble.base[1:].copy())
        return ensemble

    def _columns(self, answer: Any) -> FloatArray:
        values = np.asarray(answer, dtype=np.float64)
        values = values[:, None] if values.ndim == 1 else values
        one_of_two = self.is_classifier and values.shape[1] == 2 and not self.both_classes
        return values[:, 1:] if one_of_two else values

    def _both_shares(self, said: FloatArray) -> FloatArray:
        """For two classes both, if the library gives the second's share alone."""
        one = self.is_classifier and said.size == len(said)
        return np.column_stack([1.0 - said, said]) if one else said

    def _other_forms(self) -> tuple[object, ...]:
        assert self.agreed is not None
        if not self.is_classifier or self.agreed.outputs > 2:
            return ()
        return (self.with_columns_of(both_classes=not self.both_classes),)


def _equal_bits(one: TreeEnsemble, other: TreeEnsemble) -> bool:
    """To the last bit, in whichever order the library adds up."""
    names = [part.name for part in fields(TreeEnsemble) if part.name != "in_order"]
    return one is other or all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


CHUNK = 4096
"""Number of cuts whose rows are made and evaluated together."""
RANDOM = 256
"""Number of additional rows, anywhere between the outermost cuts."""


Answer = Callable[[FloatArray], FloatArray]
Answerable = Callable[[FloatArray], FloatArray]
"""Valid rows near given ones."""


def agreeing(
    name: str, ensemble: TreeEnsemble, answer: Answer, answerable: Answerable = lambda rows: rows
) -> TreeEnsemble:
    """The ensemble, if it agrees with `answer`; the order in which a library adds up may differ."""
    try:
        _require_agreement(name, ensemble, answer, answerable)
    except UnsupportedError:
        if not ensemble.in_order:
            raise
        ensemble = replace(ensemble, in_order=False)
        _require_agreement(name, ensemble, answer, answerable)
    return ensemble


def _require_agreement(
    name: str, ensemble: TreeEnsemble, answer: Answer, answerable: Answerable, seed: int = 0
) -> None:
    """Refuse an ensemble that differs from `answer` by more than the library's rounding."""
    for rows in map(answerable, probe_rows(ensemble, np.random.default_rng(seed))):
        scores = ensemble.scores(rows)
        least, most = ensemble.output_range(scores, scores)
        said = answer(rows)
        if said.shape != least.shape:
            raise UnsupportedError(
                f"{name} gives {said.shape[1]} outputs, its trees {least.shape[1]}: they cannot be read."
            )
        with np.errstate(invalid="ignore"):
            endless = np.isinf(said) & (said == ensemble.linked(scores))  # a link function that overflows
            wrong = ~((said >= least) & (said <= most) | endless)
        if np.any(wrong):
            i, o = np.argwhere(wrong)[0]
            raise UnsupportedError(
                f"{name} cannot be written out: it "
                f"answers {said[i, o]!r} where its trees, as read by dovetail, "
                f"give {ensemble.linked(scores)[i, o]!r}."
            )


def probe_rows(ensemble: TreeEnsemble, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Rows at all cuts, many at a time; then some anywhere. Numbers of categories are whole."""
    for rows in _rows_anywhere(ensemble, rng):
        yield at_categories(ensemble, rows)


def at_categories(ensemble: TreeEnsemble, rows: FloatArray) -> FloatArray:
    """The rows, each number of a category rounded to the nearest."""
    if not ensemble.categories:
        return rows
    rows = rows.copy()
    rows[:, ensemble.categories] = np.round(rows[:, ensemble.categories])
    return rows


def _rows_anywhere(ensemble: TreeEnsemble, rng: np.random.Generator) -> Iterator[FloatArray]:
    low, high = _outermost_cuts(ensemble)
    is_left = np.zeros(ensemble.feature.size, dtype=bool)
    is_left[ensemble.left[~ensemble.is_leaf]] = True
    splits = np.flatnonzero(~ensemble.is_leaf & np.isfinite(ensemble.threshold))
    keys = np.stack([ensemble.feature[splits].astype(np.float64), ensemble.threshold[splits]])
    nodes = splits[np.unique(keys, axis=1, return_index=True)[1]]  # one for every threshold of every feature
    for begin in range(0, nodes.size, CHUNK):
        chosen = nodes[begin : begin + CHUNK]
        rows = _reaching(ensemble, chosen, is_left, rng.uniform(size=(chosen.size, low.size)), low, high)
        at = np.arange(chosen.size), ensemble.feature[chosen]
        cut = ensemble.threshold[chosen]
        for number in (np.nextafter(cut, -np.inf), cut, np.nextafter(cut, np.inf)):
            asked = rows.copy()
            asked[at] = number
            yield asked
    yield rng.uniform(low, high, (RANDOM, low.size))


def _outermost_cuts(ensemble: TreeEnsemble) -> tuple[FloatArray, FloatArray]:
    """A little beyond the first and the last cut of each feature."""
    low, high = np.array([(cuts[0], cuts[-1]) if cuts.size else (0.0, 0.0) for cuts in ensemble.cuts]).T
    room = 0.1 * (high - low) + np.where(high > low, 0.0, 1.0)
    return low - room, high + room


def _reaching(
    ensemble: TreeEnsemble,
    nodes: IntArray,
    is_left: np.ndarray,
    where: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """A row for each node that arrives there: `where` says at which fraction between its limits each feature
    is."""
    lower, upper = np.tile(low, (nodes.size, 1)), np.tile(high, (nodes.size, 1))
    above = np.full(lower.shape, -np.inf)
    each, node = np.arange(nodes.size), nodes
    for _ in range(ensemble.depth):
        up = ensemble.parent[node]
        inner = up != node
        at = each[inner], ensemble.feature[up[inner]]
        cut, left = ensemble.threshold[up[inner]], is_left[node[inner]]
        upper[at] = np.where(left, np.minimum(upper[at], cut), upper[at])
        above[at] = np.where(left, above[at], np.maximum(above[at], cut))
        node = up
    lower = np.minimum(np.maximum(lower, np.nextafter(above, np.inf)), upper)
    return np.asarray(np.clip(lower + where * (upper - lower), lower, upper))
