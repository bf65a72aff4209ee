"""Problems with tree ensembles, made up, of any number of trees and any depth.

*Diet*: the cheapest 25 foods with a forest's taste above a limit. *Water*: 50 samples, a budget for each
feature, boosted trees; as many drinkable ones as possible, and nearly all can be. *Treatment*: the same in
the features' own units, with budgets of the size that PySCIPOpt-ML's own test of it has; most cannot.
*Plant*: XGBoost over 20 inputs, five of them integer, under four rows; the most. *Wine* and *planting*: the
hosts of the generators, forests in the place of the networks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

import dovetail as dt

Built = tuple[dt.Problem, list[Any]]
"""A problem, and the estimator of each of its blocks."""


def diet(trees: int, depth: int, seed: int) -> Built:
    """Nutrients from below, foods at a price, a taste of at least the better two fifths."""
    from sklearn.ensemble import RandomForestRegressor

    rng, foods, nutrients = np.random.default_rng(seed), 25, 11
    cost = rng.uniform(50.0, 1000.0, foods)
    holds = rng.uniform(0.0, 1.0, (foods, nutrients)) * (rng.random((foods, nutrients)) < 0.5) * 10.0
    needed = holds.T @ rng.uniform(0.5, 1.5, foods)
    X = rng.uniform(0.0, 3.0, (2000, foods))
    weight = rng.uniform(0.0, 1.0, foods)
    taste = 1.0 - np.abs(np.tanh((X * weight).sum(axis=1) / (1.5 * weight.sum()) - 1.0))
    taste += 0.1 * np.sin(X[:, 0] * X[:, 1]) + 0.2 * (X[:, 2] > 1.0)
    taste = (taste - taste.min()) / (taste.max() - taste.min())
    model = RandomForestRegressor(trees, max_depth=depth, random_state=seed).fit(X, taste)
    mip = dt.Mip(
        np.append(cost, 0.0),
        np.column_stack([holds.T, np.zeros(nutrients)]),
        needed,
        np.inf,
        np.append(np.zeros(foods), np.quantile(taste, 0.6)),
        np.append(np.full(foods, 3.0), 1.0),
    )
    problem = dt.Problem(mip)
    problem.add_predictor(model, np.arange(foods), [foods])
    return problem, [model]


SAMPLES = 50
"""Of water."""
BUDGETS = np.array([2.15, 22.5, 215.0, 1.0, 20.0, 20.0, 1.5, 5.25, 1.0])
"""What all samples of a treatment have to share of each feature; a tenth more or less."""


def water(trees: int, depth: int, seed: int, budget: float = 3.0) -> Built:
    """Undrinkable samples in standard deviations, with the same budget for each feature."""
    from dovetail_study.problems.water import look_alike

    X, drinkable = look_alike(seed)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = _boosted(trees, depth, seed, X, drinkable)
    given = X[model.predict(X) == 0][:SAMPLES]
    return _treated(model, given, np.full((2, given.shape[1]), budget))


def treatment(trees: int, depth: int, seed: int) -> Built:
    """Undrinkable samples as they are measured; some are drinkable to the model already."""
    from dovetail_study.problems.water import look_alike

    rng, (X, drinkable) = np.random.default_rng(seed), look_alike(seed)
    given = X[rng.permutation(np.flatnonzero(drinkable == 0))[:SAMPLES]]
    return _treated(
        _boosted(trees, depth, seed, X, drinkable), given, BUDGETS * rng.uniform(0.9, 1.1, (2, 9))
    )


def _boosted(trees: int, depth: int, seed: int, X: np.ndarray, drinkable: np.ndarray) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    model = GradientBoostingClassifier(n_estimators=trees, max_depth=depth, random_state=seed)
    return model.fit(X, drinkable.astype(int))


def _treated(model: Any, given: np.ndarray, budgets: np.ndarray) -> Built:
    """As many drinkable samples as can be, each feature raised or lowered within budgets over all of them."""
    n, d = given.shape
    size, eye, each_feature = n * d, sp.eye_array(n * d), sp.kron(np.ones((1, n)), sp.eye_array(d))
    A = sp.block_array(
        [
            [sp.csr_array((size, n)), eye, -eye, eye],
            [None, None, each_feature, None],
            [None, None, None, each_feature],
        ]
    )
    mip = dt.Mip(
        np.repeat([1.0, 0.0], [n, 3 * size]),
        A,
        np.concatenate([given.ravel(), np.full(2 * d, -np.inf)]),
        np.concatenate([given.ravel(), budgets.ravel()]),
        np.repeat([0.0, -np.inf, 0.0], [n, size, 2 * size]),
        np.repeat([1.0, np.inf], [n, 3 * size]),
        np.repeat([True, False], [n, 3 * size]),
        sense="max",
    )
    problem = dt.Problem(mip)
    treated = n + np.arange(size).reshape(n, d)
    problem.add_predictor(model, treated, np.arange(n)[:, None], output_type="classification")
    return problem, [model]


def plant(trees: int, depth: int, seed: int) -> Built:
    """The largest output less what the inputs cost."""
    import xgboost

    rng, d = np.random.default_rng(seed), 20
    X = rng.uniform(-1.0, 1.0, (4000, d))
    X[:, :5] = np.round(X[:, :5] * 3.0)
    y = 5.0 * np.sin(2.0 * X[:, 5] * X[:, 6]) + X[:, 0] * X[:, 7] + 3.0 * np.cos(3.0 * X[:, 8])
    y += (X[:, 9] > 0.2) * X[:, 10] * 4.0 + X @ rng.normal(size=d) + 0.3 * rng.normal(size=4000)
    model = xgboost.XGBRegressor(n_estimators=trees, max_depth=depth, learning_rate=0.1, n_jobs=1).fit(X, y)
    ends = np.repeat([3.0, 1.0, np.inf], [5, d - 5, 1])
    mip = dt.Mip(
        np.append(-rng.uniform(0.0, 1.0, d), 1.0),
        np.column_stack([rng.normal(size=(4, d)), np.zeros(4)]),
        -np.inf,
        0.5,
        -ends,
        ends,
        np.arange(d + 1) < 5,
        sense="max",
    )
    problem = dt.Problem(mip)
    problem.add_predictor(model, np.arange(d), [d])
    return problem, [model]


def wine(trees: int, depth: int, seed: int) -> Built:
    """The generator's vineyards and blends; a forest says what they are worth."""
    from dovetail_study.problems.wine import look_alike
    from dovetail_study.problems.wine import wine as generated

    host = generated(seed=seed, epochs=1, allow_constant=True).problem
    return _with_forests(host, [look_alike(seed)], trees, depth, seed)


def planting(trees: int, depth: int, seed: int) -> Built:
    """The generator's site and budgets; a forest for each species says how many live."""
    from dovetail_study.problems.tree import look_alike, tree

    host = tree(seed=seed, epochs=1, allow_constant=True).problem
    species, X, survived = look_alike(seed)
    data = [(X[species == k], survived[species == k]) for k in range(len(host.blocks))]
    return _with_forests(host, data, trees, depth, seed)


def _with_forests(host: dt.Problem, data: Sequence[Any], trees: int, depth: int, seed: int) -> Built:
    from sklearn.ensemble import RandomForestRegressor

    problem, models = dt.Problem(host.mip), []
    for block, (X, y) in zip(host.blocks, data, strict=True):
        models.append(RandomForestRegressor(trees, max_depth=depth, random_state=seed).fit(X, y))
        problem.add_predictor(models[-1], block.inputs, block.outputs, name=block.name)
    return problem, models


FAMILIES: dict[str, Callable[[int, int, int], Built]] = {
    "diet": diet,
    "water": water,
    "treatment": treatment,
    "plant": plant,
    "wine": wine,
    "planting": planting,
}
