"""Networks that are trained on a few hundred rows in some hundredths of a second.

A learner takes rows, targets, a size and a seed, and returns a trained predictor: `network` here, `forest`
and `boosting`. A family of problems takes its learner as an argument, so that the same decision can be made
with networks or with trees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import OptionError
from dovetail.core.predictor import as_predictor
from dovetail_study.problems.networks import Scale, build, fold

Learner = Callable[[FloatArray, FloatArray, int, int], Any]
"""(rows, targets, size, seed) -> a trained predictor."""

STEPS = 40
"""L-BFGS iterations over all rows at once: a tenth of a second, after which R2 is about 0.95."""
DECAY = 1e-4
"""Weight decay, so that noise is not learnt."""


def network(X: FloatArray, y: FloatArray, size: int, seed: int) -> nn.Module:
    """A ReLU network of two hidden layers that takes and gives the user's own units, in float64."""
    torch.manual_seed(seed)
    net = build(by_size(size, "2x6", "2x12", "2x24"), X.shape[1])
    into, out = Scale.of(X), Scale.of(y)
    minimise(net, nn.MSELoss(), into.standard(X), out.standard(y)[:, None])
    fold(net, into, out)
    return net


def classifier(X: FloatArray, positive: FloatArray, size: int, seed: int) -> nn.Module:
    """The same with a logit for its output, trained on classes 0 and 1."""
    torch.manual_seed(seed)
    net = build(by_size(size, "2x6", "2x12", "2x24"), X.shape[1])
    into = Scale.of(X)
    minimise(net, nn.BCEWithLogitsLoss(), into.standard(X), positive[:, None])
    fold(net, into, Scale(np.asarray(0.0), np.asarray(1.0)))
    return net


def minimise(net: nn.Module, loss: nn.Module, X: FloatArray, goal: FloatArray) -> None:
    """Train in place, in float64."""
    net.double()
    rows, targets = torch.as_tensor(X), torch.as_tensor(goal)
    optimiser = torch.optim.LBFGS(net.parameters(), max_iter=STEPS, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        weights = nn.utils.parameters_to_vector(net.parameters())
        total = loss(net(rows), targets) + DECAY * (weights @ weights)
        total.backward()
        return total  # type: ignore[no-any-return]

    optimiser.step(closure)  # type: ignore[no-untyped-call]


def values(predictor: Any, X: FloatArray) -> FloatArray:
    """The predictions of a trained predictor with one output."""
    said: FloatArray = as_predictor(predictor).predict(np.asarray(X, dtype=np.float64))[:, 0]
    return said


def forest(X: FloatArray, y: FloatArray, size: int, seed: int) -> Any:
    """A random forest: few deep trees, their mean."""
    from sklearn.ensemble import RandomForestRegressor

    trees, depth = by_size(size, (6, 4), (20, 5), (60, 6))
    return RandomForestRegressor(trees, max_depth=depth, random_state=seed).fit(X, y)


def boosting(X: FloatArray, y: FloatArray, size: int, seed: int) -> Any:
    """Gradient boosting: many shallow trees, their sum."""
    from sklearn.ensemble import GradientBoostingRegressor

    trees, rate = by_size(size, (12, 0.3), (40, 0.15), (120, 0.08))
    return GradientBoostingRegressor(
        n_estimators=trees, learning_rate=rate, max_depth=3, random_state=seed
    ).fit(X, y)


def boosted_classes(X: FloatArray, positive: FloatArray, size: int, seed: int) -> Any:
    """Gradient boosting of two classes, 0 and 1."""
    from sklearn.ensemble import GradientBoostingClassifier

    trees = by_size(size, 12, 40, 100)
    return GradientBoostingClassifier(n_estimators=trees, max_depth=3, random_state=seed).fit(X, positive)


Value = TypeVar("Value")

SIZES = (1, 2, 3)


def by_size(size: int, small: Value, middle: Value, large: Value) -> Value:
    """The one of three values that belongs to `size`."""
    if size not in SIZES:
        raise OptionError(f"size is {size!r}; give 1 (small), 2 (middle) or 3 (large).")
    return (small, middle, large)[size - 1]
