"""The default against enumeration of all cells: trees of every kind, with categories and missing values too.

With DOVETAIL_FULL a thousand problems (`python -m benchmarks.trees_volume` is the same over many cores): no
wrong status or bound, and the optimum on 99 of a hundred of those that a hundred random points do not solve.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import dovetail as dt
from tests.conftest import FULL
from tests.tree_problems import enumerated, random_problem

COUNT = 1000 if FULL else 4
POINTS = 100
NEARLY = 2e-6
"""Relative to 1 + |optimum|: cells are closed there, and points a margin inside."""
CODES = 6


def _data(rng, features):
    """The first feature is a category."""
    X = np.round(2.0 * rng.normal(size=(80, features)), 1)
    X[:, 0] = rng.integers(0, CODES, 80)
    effect = rng.normal(size=CODES)
    return X, np.round(2.0 * effect[X[:, 0].astype(int)] + X[:, 1:] @ rng.normal(size=features - 1), 2)


def _xgboost(X, y, **options):
    import xgboost

    few = {"n_estimators": 2, "max_depth": 2, "n_jobs": 1, "max_cat_to_onehot": 1}
    return xgboost.XGBRegressor(**few, **options).fit(X, y)


def _categories_of_xgboost(X, y):
    kinds = ["c"] + ["q"] * (X.shape[1] - 1)
    return _xgboost(X, y, feature_types=kinds, enable_categorical=True)


def _lightgbm(X, y, categories, **options):
    import lightgbm

    few = {"n_estimators": 2, "num_leaves": 4, "n_jobs": 1, "verbose": -1, "min_child_samples": 3}
    sets = {"min_data_per_group": 1, "cat_smooth": 0.0, "max_cat_to_onehot": 1}
    return lightgbm.LGBMRegressor(**few, **sets, **options).fit(X, y, categorical_feature=categories)


def _histogram(X, y):
    from sklearn.ensemble import HistGradientBoostingRegressor

    few = {"max_iter": 2, "max_depth": 2, "min_samples_leaf": 3}
    return HistGradientBoostingRegressor(**few, categorical_features=[0]).fit(X, y)


def _rules(X, y):
    last = X.shape[1] - 1
    return dt.RuleList(
        [
            ([(0, "!=", 2), (last, ">", float(X[0, last]))], float(y[0])),
            ([(last, "<=", float(X[1, last])), (0, ">=", 3)], float(y[1])),
        ],
        float(y[2]),
        X.shape[1],
    )


def _mean(X, y):
    from sklearn.tree import DecisionTreeRegressor

    tree = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y)
    return dt.Ensemble([tree, _categories_of_xgboost(X, y)], weights=[1.0, 2.0])


KINDS = (
    _categories_of_xgboost,
    lambda X, y: _lightgbm(X, y, [0]),
    _histogram,
    _rules,
    lambda X, y: _xgboost(X, y, missing=0.0),
    lambda X, y: _lightgbm(X, y, [], zero_as_missing=True),
    _mean,
)


def problem_with_categories(seed):
    """One sample of two or three inputs, a category first, up to two rows, either sense."""
    rng = np.random.default_rng(seed)
    features = int(rng.integers(2, 4))
    X, y = _data(rng, features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KINDS[seed % len(KINDS)](X, y)
    columns, rows = features + 1 + int(rng.integers(0, 2)), int(rng.integers(0, 3))
    lower, upper = np.full(columns, -3.0), np.full(columns, 3.0)
    lower[0], upper[0] = 0.0, CODES - 1.0
    lower[features], upper[features] = -np.inf, np.inf
    if rng.random() < 0.3:
        lower[features] = np.quantile(y, 0.6)
    integer = rng.random(columns) < 0.3
    integer[0], integer[features] = True, False
    cost = np.round(rng.normal(size=columns), 2)
    cost[features] *= 2.0
    A = np.round(rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.7), 1)
    mip = dt.Mip(
        cost, A, np.full(rows, -np.inf), rng.uniform(1.0, 4.0, rows), lower, upper, integer,
        sense=str(rng.choice(["min", "max"])),
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(model, range(features), [features])
    return problem


def solved_by_chance(problem, best, room):
    """Whether one of some random points is as good."""
    rng, mip = np.random.default_rng(0), problem.mip
    low, high = (np.clip(ends, -3.0, CODES) for ends in (mip.lower, mip.upper))
    X = rng.uniform(low, high, (POINTS, mip.n_columns))
    X[:, mip.integer] = np.round(X[:, mip.integer])
    for x in X:
        x[problem.outputs] = problem.predict(x)[problem.outputs]
        if dt.check(problem, x).within() and mip.sign * mip.objective(x) <= mip.sign * best + room:
            return True
    return False


@dataclass(frozen=True)
class Judged:
    """What came of one problem."""

    seed: int
    wrong: str = ""
    """What the solve claimed, and enumeration says otherwise."""
    empty: bool = False
    """Whether no cell holds a point."""
    hard: bool = False
    """Whether a hundred random points do not solve it."""
    found: bool = False
    proved: bool = False
    """Whether the optimum was found; proved, or that there is no point."""


def judged(seed):
    """Problems of numbers and of categories, in turn."""
    problem = problem_with_categories(seed // 2) if seed % 2 else random_problem(seed // 2)
    best, sign = enumerated(problem), problem.mip.sign
    result = dt.solve(problem, log=False, time_limit=60.0)
    status = result.status.value
    if best is None:
        wrong = "" if result.x is None and status in ("infeasible", "no_solution") else f"{status}: no point"
        return Judged(seed, wrong, empty=True, proved=status == "infeasible")
    room = NEARLY * (1.0 + abs(best))
    says = {
        "no point": result.x is None,
        "not checked": result.x is not None and not dt.check(problem, result.x).within(),
        status: status not in ("optimal", "feasible"),
        f"bound {result.bound}": result.bound is not None and sign * result.bound > sign * best + room,
        f"objective {result.objective}": result.x is not None
        and sign * result.objective < sign * best - room,
        f"optimal {result.objective}": status == "optimal" and abs(result.objective - best) > room,
    }
    wrong = "; ".join(f"{what}, optimum {best}" for what, wrong in says.items() if wrong)
    hard = not solved_by_chance(problem, best, room)
    found = result.x is not None and abs(result.objective - best) <= room
    return Judged(seed, wrong, hard=hard, found=found, proved=status == "optimal")


@pytest.mark.timeout(7200)
def test_no_status_or_bound_is_wrong_and_optima_are_found(record_property):
    every = [judged(seed) for seed in range(COUNT)]
    assert not [one for one in every if one.wrong]
    hard = [one for one in every if one.hard]
    for name in ("found", "proved"):
        record_property(name, sum(getattr(one, name) for one in hard))
    assert len(hard) >= COUNT // 2
    assert sum(one.found for one in hard) >= 0.99 * len(hard)
