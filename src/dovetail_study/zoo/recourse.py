"""Recourse: the least change of a refused application with which a classifier approves it.

    min sum of change_i / scale_i s.t. change_i >= |x_i - applicant_i|, change_i <= range_i moved_i, sum of
    moved_i <= most class(x) = approved, some x_i whole, the first x_i as they are

Feasible: the applicant takes over the values of an approved one, feature by feature, until the classifier
approves with a margin; as many features may move as that took.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import dovetail as dt
from dovetail.core.arrays import FloatArray
from dovetail_study.problems.host import Host
from dovetail_study.zoo.learners import Learner, by_size, classifier, values

KEPT = 1
"""The first features, which cannot change (age, for example)."""


def recourse(size: int, seed: int, learner: Learner = classifier, sure: float = 0.3) -> dt.Problem:
    """One applicant. `sure` is the classifier's output (a logit, a probability) for a clearly approved
    applicant."""
    rng = np.random.default_rng(seed)
    features = by_size(size, 6, 12, 24)
    whole = np.arange(features) % 3 == 1
    X, approved = _history(whole, rng)
    model = learner(X, approved, size, seed)
    applicant, moves = _applicant(model, X, sure)
    low, high, scale = X.min(axis=0), X.max(axis=0), X.std(axis=0)

    host = Host()
    x = [host.known(f"kept[{i}]", applicant[i]) for i in range(KEPT)]
    moved = []
    for i in range(KEPT, features):
        x.append(host.variable(f"feature[{i}]", low[i], high[i], integer=bool(whole[i])))
        change = host.variable(f"change[{i}]", 0.0, high[i] - low[i], cost=1.0 / scale[i])
        moved.append(host.binary(f"moved[{i}]", cost=0.05))
        host.row(f"up[{i}]", [(1.0, change), (-1.0, x[i])], lower=-applicant[i])
        host.row(f"down[{i}]", [(1.0, change), (1.0, x[i])], lower=applicant[i])
        host.row(f"moved[{i}]", [(1.0, change), (low[i] - high[i], moved[-1])], upper=0.0)
    host.row("few moves", [(1.0, j) for j in moved], upper=moves)
    label = host.variable("approved", 1.0, 1.0, integer=True)
    problem = host.problem()
    problem.add_predictor(model, x, [label], output_type="classification", name="approval")
    return problem


def _applicant(model: Any, X: FloatArray, sure: float) -> tuple[FloatArray, int]:
    """The clearest refusal, and the number of features of the clearest approval that make it approved."""
    said = values(model, X)
    applicant, example = X[np.argmin(said)], X[np.argmax(said)]
    mixed = np.array(
        [np.r_[applicant[:KEPT], example[KEPT:k], applicant[k:]] for k in range(KEPT, len(example) + 1)]
    )
    approved = np.flatnonzero(values(model, mixed) >= sure)
    assert approved.size, "the features that can change do not decide"
    return applicant, int(approved[0])


def _history(whole: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Applications, and whether they were approved: a score with a bend, and some noise."""
    n, features = 500, whole.size
    X = np.where(whole, rng.integers(0, 8, (n, features)), rng.normal(3.0, 1.5, (n, features)))
    weight = rng.uniform(0.3, 1.0, features) * np.where(np.arange(features) % 2, 1.0, -1.0)
    score = (X - 3.0) @ weight + 0.3 * np.maximum(X[:, 1] - 3.0, 0.0) * (X[:, 2] - 3.0)
    return X, (score + rng.normal(0.0, 0.5, n) > np.quantile(score, 0.6)).astype(np.float64)
