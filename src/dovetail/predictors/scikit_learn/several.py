"""Estimators made of estimators: one for each output, in a chain, averaged, stacked.

Each is written by what is inside it; `write` is `network.modules_of`, handed in so that it can come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError
from dovetail.predictors.scikit_learn.estimator import (
    answering_method,
    features_of,
    has_binary_probability,
    is_classifier,
    last_step,
    way_out,
)
from dovetail.predictors.scikit_learn.modules import Steps, dense, joined


class Write(Protocol):
    """An estimator as torch modules, first to last."""

    def __call__(self, estimator: Any, *, both_classes: bool = False) -> Iterator[nn.Module]:
        """With `both_classes`, two columns where there are two classes."""
        ...


def one_for_each_output(estimator: Any, write: Write) -> Iterator[nn.Module]:
    """MultiOutputRegressor and MultiOutputClassifier: all read the same features."""
    every = np.arange(features_of(estimator))
    yield from joined([(every, [*write(one)]) for one in estimator.estimators_], every.size)


def chain(estimator: Any, write: Write) -> Iterator[nn.Module]:
    """RegressorChain: each reads the features and what came before it."""
    yield Chain([nn.Sequential(*write(one)) for one in estimator.estimators_], estimator.order_)


class Chain(nn.Module):
    """Each link reads the features and the answers so far; answers are put back in their own order."""

    def __init__(self, links: Sequence[nn.Module], order: Sequence[int]) -> None:
        super().__init__()
        self._links = nn.ModuleList(links)
        self.register_buffer("_back", torch.tensor(np.argsort(order)))
        self._back: Tensor

    def forward(self, values: Tensor) -> Tensor:
        """One row per sample."""
        seen = values
        for link in self._links:
            seen = torch.cat([seen, link(seen)], dim=1)
        return seen[:, values.shape[1] :][:, self._back]


def averaged(estimator: Any, write: Write) -> Iterator[nn.Module]:
    """VotingRegressor, and VotingClassifier by probabilities."""
    members, every = estimator.estimators_, np.arange(features_of(estimator))
    for one in members:
        _require_probabilities(estimator, one)
    branches = [(every, [*write(one, both_classes=True)]) for one in members]
    yield from joined(branches, every.size)
    yield from _mean(estimator, len(members), estimator._weights_not_none)


def bagged(estimator: Any, write: Write) -> Iterator[nn.Module]:
    """Bagging: equal shares, each reads some of the features."""
    members, chosen = estimator.estimators_, estimator.estimators_features_
    for one in members:
        _require_probabilities(estimator, one)
        if is_classifier(estimator) and len(last_step(one).classes_) != len(estimator.classes_):
            raise PredictorError(
                f"{type(estimator).__name__}: one of its estimators has not seen all classes; "
                f"{way_out(estimator)}"
            )
    branches = [
        (places, [*write(one, both_classes=True)]) for one, places in zip(members, chosen, strict=True)
    ]
    yield from joined(branches, features_of(estimator))
    yield from _mean(estimator, len(members), None)


def _mean(estimator: Any, members: int, weights: Any) -> Iterator[nn.Module]:
    """Of each output; of two classes, the second's alone."""
    share = np.ones(members) if weights is None else np.asarray(weights, dtype=np.float64)
    width = len(estimator.classes_) if is_classifier(estimator) else 1
    kept = np.eye(width)[1:] if is_classifier(estimator) and width == 2 else np.eye(width)
    yield dense(np.kron(share / share.sum(), kept), 0.0)


def _require_probabilities(estimator: Any, one: Any) -> None:
    if is_classifier(estimator) and answering_method(one) != "predict_proba":
        raise PredictorError(
            f"{type(estimator).__name__} of {type(one).__name__} cannot be written as a network: "
            f"probabilities of it are not known; {way_out(estimator)}"
        )


def most_votes(estimator: Any, write: Write) -> Iterator[nn.Module]:
    """VotingClassifier by classes: each estimator has a vote, and the first of equal classes wins."""
    members, every = estimator.estimators_, np.arange(features_of(estimator))
    widths = [_columns(one) for one in members]
    yield from joined([(every, [*write(one)]) for one in members], every.size)
    weights = estimator._weights_not_none
    shares = [1.0] * len(members) if weights is None else [float(weight) for weight in weights]
    centres = [0.5 if has_binary_probability(one) else 0.0 for one in members]
    ballots = [*zip(widths, shares, centres, strict=True)]
    yield Steps(_Ballot(ballots, len(estimator.classes_)))


class _Ballot:
    """The one-hot of the class with the most votes; of two classes, whether it is the second."""

    def __init__(self, ballots: list[tuple[int, float, float]], classes: int) -> None:
        self._ballots, self._classes = ballots, classes

    def __call__(self, values: FloatArray) -> FloatArray:
        """One row per sample."""
        votes, begin, rows = np.zeros((len(values), self._classes)), 0, np.arange(len(values))
        for width, share, centre in self._ballots:
            said = values[:, begin : begin + width]
            chosen = (said[:, 0] > centre).astype(np.int64) if width == 1 else said.argmax(axis=1)
            votes[rows, chosen] += share
            begin += width
        winners = np.eye(self._classes)[votes.argmax(axis=1)]
        return np.asarray(winners[:, 1:] if self._classes == 2 else winners)


def _columns(one: Any) -> int:
    """How many a classifier gives: of two classes one, unless they are centres."""
    classes = len(last_step(one).classes_)
    return 1 if classes == 2 and answering_method(one) != "nearness" else classes


def stacked(estimator: Any, write: Write) -> Iterator[nn.Module]:
    """Answers of the first estimators, and with `passthrough` the features, are features of the last."""
    features = features_of(estimator)
    every = np.arange(features)
    branches = []
    for one, method in zip(estimator.estimators_, estimator.stack_method_, strict=True):
        if method != answering_method(one):
            raise PredictorError(
                f"{type(estimator).__name__} reads {method} of {type(one).__name__}, which cannot be written "
                f"as a network; {way_out(estimator)}"
            )
        branches.append((every, [*write(one)]))
    if estimator.passthrough:
        branches.append((every, []))
    yield from joined(branches, features)
    yield from write(estimator.final_estimator_)
