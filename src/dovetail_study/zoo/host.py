"""The host of a problem as a user writes it down: variables one after the other, then constraints by name.

Networks that are trained on a few hundred rows in some hundredths of a second.

A learner takes rows, targets, a size and a seed, and gives a trained predictor: `network` here, `forest` and
`boosting`. A family of problems takes its learner as an argument, so that the same decision can
be made with networks or with trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

import dovetail as dt
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import OptionError
from dovetail.core.predictor import as_predictor
from dovetail_study.problems.networks import Scale, build, fold

Learner = Callable[[FloatArray, FloatArray, int, int], Any]
"""(rows, targets, size, seed) -> a trained predictor."""

STEPS = 40
"""Of L-BFGS over all rows at once: a tenth of a second, after which R2 is 0.95 or so."""
DECAY = 1e-4
"""Of the weights, so that noise is not learnt by heart."""


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
    """What a trained predictor of one output says of each row."""
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


Term = tuple[float, int]
"""A coefficient and the variable that it stands before."""


Value = TypeVar("Value")

SIZES = (1, 2, 3)


class Host:
    """Collects variables and linear constraints, and makes a `Mip` of them."""

    def __init__(self, sense: Literal["min", "max"] = "min") -> None:
        self._sense = sense
        self._names: list[str] = []
        self._lower: list[float] = []
        self._upper: list[float] = []
        self._cost: list[float] = []
        self._integer: list[bool] = []
        self._rows: list[tuple[str, list[Term], float, float]] = []

    def variable(
        self,
        name: str,
        lower: float = 0.0,
        upper: float = np.inf,
        *,
        cost: float = 0.0,
        integer: bool = False,
    ) -> int:
        """A new variable, with its coefficient in the objective; its column."""
        self._names.append(name)
        self._lower.append(float(lower))
        self._upper.append(float(upper))
        self._cost.append(float(cost))
        self._integer.append(integer)
        return len(self._names) - 1

    def binary(self, name: str, *, cost: float = 0.0) -> int:
        """A new variable that is 0 or 1."""
        return self.variable(name, 0.0, 1.0, cost=cost, integer=True)

    def output(self, name: str, lower: float = -np.inf, upper: float = np.inf, *, cost: float = 0.0) -> int:
        """A new variable that a predictor computes: it has no bounds unless the user wants some."""
        return self.variable(name, lower, upper, cost=cost)

    def known(self, name: str, value: float) -> int:
        """A variable with one value: something that a predictor reads and nobody decides."""
        return self.variable(name, value, value)

    def choice(self, name: str, options: int, *, cost: Sequence[float] | None = None) -> IntArray:
        """Binaries of which exactly one is 1."""
        costs = [0.0] * options if cost is None else cost
        chosen = [self.binary(f"{name}[{k}]", cost=costs[k]) for k in range(options)]
        self.row(name, [(1.0, binary) for binary in chosen], 1.0, 1.0)
        return np.array(chosen)

    def row(self, name: str, terms: Iterable[Term], lower: float = -np.inf, upper: float = np.inf) -> None:
        """lower <= sum of the terms <= upper."""
        self._rows.append((name, list(terms), float(lower), float(upper)))

    def equal(self, name: str, column: int, terms: Iterable[Term], constant: float = 0.0) -> None:
        """column = sum of the terms + constant."""
        self.row(name, [(1.0, column), *((-factor, j) for factor, j in terms)], constant, constant)

    def problem(self) -> dt.Problem:
        """The problem, still without predictors."""
        rows = len(self._rows)
        entries = [(i, j, factor) for i, (_, terms, _, _) in enumerate(self._rows) for factor, j in terms]
        place_i, place_j, factors = zip(*entries, strict=True) if entries else ((), (), ())
        A = sp.coo_array((factors, (place_i, place_j)), shape=(rows, len(self._names)))
        mip = dt.Mip(
            cost=self._cost,
            A=A if rows else None,
            row_lower=[lower for _, _, lower, _ in self._rows],
            row_upper=[upper for _, _, _, upper in self._rows],
            lower=self._lower,
            upper=self._upper,
            integer=self._integer,
            sense=self._sense,
            names=self._names,
            row_names=[name for name, _, _, _ in self._rows],
        )
        return dt.Problem(mip)


def by_size(size: int, small: Value, middle: Value, large: Value) -> Value:
    """The one of three values that belongs to `size`."""
    if size not in SIZES:
        raise OptionError(f"size is {size!r}; give 1 (small), 2 (middle) or 3 (large).")
    return (small, middle, large)[size - 1]
