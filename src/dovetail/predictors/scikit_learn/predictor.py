"""scikit-learn's networks, linear models, scalers, and pipelines of them.

`predict` is the estimator's own answer, always from the owner's live object: `predict` of a regressor,
`predict_proba` of a classifier that has it, `decision_function` of one that has not, `transform` of a
scaler. For gradients, and for methods that write networks out, the same map is written once more as a
float64 `nn.Sequential`; before a predictor is accepted the two are compared, so that an estimator that
computes something else (a subclass, a later version) is refused and never misread.

A binary classifier has two forms: one column, the probability of its second class, or two, one for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import NotFittedError
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray
from dovetail.core.description import Description
from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.core.predictor import Predictor
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.networks.arithmetic import FLOAT32, FLOAT64, Arithmetic
from dovetail.networks.layers import Layer, folded
from dovetail.networks.program import Program
from dovetail.predictors.scikit_learn.answer import (
    NearestNumber,
    finds_the_nearest,
    nearest_number,
    own_answer,
)
from dovetail.predictors.scikit_learn.estimator import (
    answering_method,
    changed,
    changed_itself,
    features_of,
    has_binary_probability,
    is_classifier,
    is_multilabel,
    learned_arrays,
    means_logits,
    way_out,
)
from dovetail.predictors.scikit_learn.network import modules_of
from dovetail.predictors.scikit_learn.transformers import categories_read
from dovetail.predictors.scikit_learn.trees_inside import (
    adds_up_in_float32,
    category_features,
    ends_in_trees,
    is_sum_of_trees,
    sum_of_trees,
)
from dovetail.predictors.torch.module import TorchPredictor
from dovetail.predictors.trees.predictor import TreePredictor

AGREEMENT = 1e-6
"""Largest allowed difference between an estimator and its network, relative to max(1, |value|)."""
COARSE_AGREEMENT = 1e-3
"""The same for an estimator that computes in lower precision."""


class ScikitLearnPredictor:
    """A trained estimator, or a pipeline, that maps (n, d) features to (n, q) outputs."""

    def __init__(self, estimator: Any, *, both_classes: bool = False) -> None:
        self._estimator = estimator
        self._both_classes = both_classes
        self.name = type(estimator).__name__
        self._categories: tuple[int, ...] = ()
        """Features that trees inside read as categories, known after `describe`."""
        self.network()  # refuses estimators that are not trained or cannot be written out

    def predict(self, X: FloatArray) -> FloatArray:
        """The estimator's own answer."""
        if len(X) == 0:  # scikit-learn refuses such values
            return TorchPredictor(self.network()).predict(X)
        return self._columns(self._answer(X))

    def refitted(self, fit: Callable[[Any], Any]) -> Predictor:
        """The same for a copy of the estimator that was trained again."""
        return type(self)(fit(self._estimator), both_classes=self._both_classes)

    def snapshot(self, device: str) -> Callable[[Tensor], Tensor]:
        """The network made of the estimator as it is now."""
        return TorchPredictor(self.network()).snapshot(device)

    def describe(self, X: FloatArray) -> Description:
        """The description of the network, after a comparison with the estimator."""
        network = TorchPredictor(self.network())
        features = features_of(self._estimator)
        if features != X.shape[1]:
            return Description(self.name, features=features)
        self._categories = tuple(category_features(self._estimator))
        seen = network.describe(X)
        whole = tuple(sorted({*categories_read(self._estimator), *self._categories}))
        X = X.copy()
        X[:, whole] = np.round(X[:, whole])  # encoders have no answer between categories
        answer = self._answer(X)
        is_float64 = answer.dtype == np.float64 and not adds_up_in_float32(self._estimator)
        self._require_agreement(self._columns(answer), network.predict(X), coarse=not is_float64)
        nearest = answering_method(self._estimator) == "nearness" and answer.shape[1] > 1
        if nearest and not finds_the_nearest(self._estimator, X, answer):
            raise PredictorError(
                f"{self.name} does not find the nearest of its centres (is a method overridden?); "
                f"{way_out(self._estimator)}"
            )
        gives_logits = means_logits(self._estimator)
        gives_shares = not gives_logits and answering_method(self._estimator) in ("predict_proba", "classes")
        reason = self._why_no_trees()
        stepped = self._behind_steps is not None and not reason  # a step function has no layers
        return replace(
            seen,
            name=self.name,
            features=features,
            feature_names=self._feature_names,
            whole_features=whole,
            dtypes=("float64" if is_float64 else "float32",),
            ends_in_sigmoid=True if gives_shares else seen.ends_in_sigmoid,
            is_classifier=is_classifier(self._estimator) and not gives_logits,
            is_multilabel=is_multilabel(self._estimator),
            other_forms=tuple(self._other_forms()),
            layers=None if stepped else self.layers,
            program=None if stepped else self.program,
            trees=self.trees if stepped or is_sum_of_trees(self._estimator) else None,
            why_no_trees=reason,
        )

    def trees(self) -> TreeEnsemble:
        """The estimator as one tree ensemble, if it is a sum of trees, or a pipeline that ends in one behind
        readable steps."""
        if self._behind_steps is not None:
            return self._behind_steps.trees()
        reason = changed_itself(self._estimator)  # trees are compared at every cut
        if reason:
            raise PredictorError(f"{self.name} cannot be read as trees: {reason}.")
        return sum_of_trees(self._estimator, both_classes=self._both_classes)

    def _why_no_trees(self) -> str:
        """Why trees behind other steps cannot be read; empty otherwise."""
        try:
            if self._behind_steps is not None:
                self._behind_steps.trees()
        except PredictorError as reason:
            return str(reason.__cause__ or reason)  # without the advice to pass another object
        return ""

    @cached_property
    def _behind_steps(self) -> TreePredictor | None:
        """A pipeline that ends in trees."""
        if not ends_in_trees(self._estimator):
            return None
        from dovetail.predictors.trees.pipeline import PipelineTrees  # it reads encoders the same way

        return PipelineTrees(self._estimator).with_columns_of(both_classes=self._both_classes)

    def network(self) -> nn.Sequential:
        """The estimator as it is now, as a float64 network."""
        try:
            modules = [*self._modules()]
        except NotFittedError as reason:
            raise PredictorError(f"{self.name} is not trained yet; call its fit first.") from reason
        if not modules:
            raise PredictorError(f"{self.name} has no step but 'passthrough': it computes nothing.")
        network = nn.Sequential(*modules)
        if not all(bool(torch.isfinite(parameter).all()) for parameter in network.parameters()):
            raise PredictorError(f"{self.name} holds NaN or infinity; train it again.")
        return network

    def _modules(self) -> Iterator[nn.Module]:
        return modules_of(self._estimator, both_classes=self._both_classes)

    def layers(self) -> tuple[Layer, ...]:
        """The network's layers, with a scaler and the dense layer after it combined."""
        self._require_unchanged()
        return folded(TorchPredictor(self.network()).layers())

    def program(self, features: int) -> Program:
        """The program of the network for one row, in the estimator's arithmetic."""
        self._require_unchanged()
        found = TorchPredictor(self.network()).program(features)
        return replace(found, arithmetic=self._arithmetic())

    def _arithmetic(self) -> Arithmetic:
        with np.errstate(all="ignore"):  # only the dtype is used
            answer = self._answer(np.zeros((1, features_of(self._estimator))))
        answers_in_float64 = answer.dtype == np.float64
        coarse = any(array.dtype == np.float32 for array in learned_arrays(self._estimator))
        coarse = coarse or adds_up_in_float32(self._estimator)
        return FLOAT64 if answers_in_float64 and not coarse else FLOAT32

    @property
    def _feature_names(self) -> tuple[str, ...] | None:
        """Names of the features if the estimator was trained on a frame."""
        names = getattr(self._estimator, "feature_names_in_", None)
        return None if names is None else tuple(map(str, names))

    def _other_forms(self) -> Iterator[Predictor]:
        if answering_method(self._estimator) == "nearness":
            yield NearestNumber(self, lambda X: nearest_number(self._estimator, X))
        if has_binary_probability(self._estimator) and not means_logits(self._estimator):
            yield ScikitLearnPredictor(self._estimator, both_classes=not self._both_classes)

    def _require_agreement(self, truth: FloatArray, ours: FloatArray, *, coarse: bool) -> None:
        """Refuse an estimator that its network does not reproduce; infinite values are refused elsewhere."""
        tolerance = COARSE_AGREEMENT if coarse else AGREEMENT
        with np.errstate(invalid="ignore"):
            agree = truth.shape == ours.shape and np.all(
                ~np.isfinite(truth) | (np.abs(truth - ours) <= tolerance * np.maximum(1.0, np.abs(truth)))
            )
        if not agree:
            raise PredictorError(
                f"{self.name} does not compute what dovetail makes of its coefficients (is a method "
                f"overridden?); {way_out(self._estimator)}"
            )

    def _require_unchanged(self) -> None:
        reason = changed(self._estimator)
        if reason:
            raise UnsupportedError(
                f"{self.name} cannot be written out: {reason}, so its function is not known. "
                'method="auto" takes it as it is.'
            )

    def _columns(self, answer: np.ndarray[Any, Any]) -> FloatArray:
        """The answer as (n, q) numbers: for two classes the second one only, unless both are requested."""
        values: FloatArray = answer.astype(np.float64)
        if values.ndim == 1:
            return values[:, None]
        one_of_two = has_binary_probability(self._estimator) and not self._both_classes
        return values[:, 1:] if one_of_two else values

    def _answer(self, X: FloatArray) -> np.ndarray[Any, Any]:
        X = np.array(X, dtype=np.float64)
        X[:, self._categories] = np.round(X[:, self._categories])  # as encoders do
        return own_answer(self._estimator, X)
