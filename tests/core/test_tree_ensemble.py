"""The flat form: values, damage, and what rounding may do to a sum."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import dovetail as dt
from dovetail.core.errors import PredictorError
from dovetail.core.tree_ensemble import TreeEnsemble


def stump(**changes):
    """x <= 1 -> 5, else 7."""
    parts = {
        "features": 1,
        "feature": np.zeros(3, dtype=np.int64),
        "threshold": np.array([1.0, np.inf, np.inf]),
        "left": np.array([1, 1, 2]),
        "right": np.array([2, 1, 2]),
        "value": np.array([[0.0], [5.0], [7.0]]),
        "roots": np.array([0]),
        "base": np.array([0.5]),
    }
    return TreeEnsemble(**{**parts, **changes})


def random_ensemble(rng, trees=30, **changes):
    one, count = stump(), trees
    shift = 3 * np.arange(count)[:, None]
    return replace(
        one,
        feature=np.zeros(3 * count, dtype=np.int64),
        threshold=np.stack([rng.normal(size=count), *np.full((2, count), np.inf)], axis=1).ravel(),
        left=(one.left + shift).ravel(),
        right=(one.right + shift).ravel(),
        value=np.stack([np.zeros(count), *rng.normal(size=(2, count))], axis=1).reshape(-1, 1),
        roots=shift[:, 0],
        **changes,
    )


def test_the_threshold_itself_goes_left():
    X = np.array([[1.0], [np.nextafter(1.0, 2.0)]])
    assert stump().values(X).ravel().tolist() == [5.5, 7.5]


def test_links():
    scores = np.array([[0.3, -1.0]])
    one = stump(link="both classes")
    assert np.allclose(one.linked(scores[:, :1]).sum(), 1.0)
    assert one.outputs == 2
    assert np.allclose(stump(link="softmax").linked(scores).sum(), 1.0)
    assert np.allclose(stump(link="exp").linked(scores), np.exp(scores))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"left": np.array([1, 1, 9])}, "a child is no node"),
        ({"left": np.array([2, 1, 2])}, "two parents"),
        ({"left": np.array([0, 1, 2])}, "no tree"),
        ({"threshold": np.array([np.nan, np.inf, np.inf])}, "NaN for a threshold"),
        ({"value": np.array([[0.0], [np.inf], [7.0]])}, "leaf's value"),
        ({"feature": np.array([3, 0, 0])}, "reads no feature"),
    ],
)
def test_damaged_trees_are_refused(changes, words):
    with pytest.raises(PredictorError, match=words):
        stump(**changes)


@pytest.mark.parametrize("in_order", [True, False])
def test_no_float32_sum_is_farther_off_than_said(in_order):
    rng = np.random.default_rng(0)
    ensemble = random_ensemble(rng, dtype="float32", in_order=in_order)
    ensemble = replace(ensemble, value=ensemble.value.astype(np.float32).astype(np.float64))
    X = rng.normal(size=(500, 1))
    exact = replace(ensemble, in_order=False, dtype="float64").scores(X)
    parts = ensemble.value[ensemble.leaves(X)].astype(np.float32)
    for order in (np.arange(30), rng.permutation(30)) if not in_order else (np.arange(30),):
        terms = np.concatenate([np.full((500, 1, 1), 0.5, np.float32), parts[:, order]], axis=1)
        summed = np.cumsum(terms, axis=1, dtype=np.float32)[:, -1]
        assert np.all(np.abs(summed - exact) <= ensemble.score_error)
    if in_order:
        assert np.array_equal(ensemble.scores(X), summed)


@pytest.mark.parametrize("link", ["identity", "sigmoid", "exp"])
def test_ranges_hold_every_value_between(link):
    rng = np.random.default_rng(1)
    ensemble = random_ensemble(rng, link=link)
    low, high = np.array([[-1.0]]), np.array([[0.5]])
    least, most = ensemble.output_range(low, high)
    between = ensemble.linked(rng.uniform(-1.0, 0.5, (100, 1)))
    assert np.all((between >= least) & (between <= most))


def test_a_softmax_s_range_holds_every_value_between():
    rng = np.random.default_rng(2)
    ensemble = stump(link="softmax", value=rng.normal(size=(3, 3)) * [[0], [1], [1]], base=np.zeros(3))
    low, high = rng.normal(size=(1, 3)) - 1.0, rng.normal(size=(1, 3)) + 1.0
    least, most = ensemble.output_range(low, high)
    between = ensemble.linked(rng.uniform(low, high, (500, 3)))
    assert np.all((between >= least) & (between <= most))


@pytest.mark.parametrize(("depth", "most"), [(1, 2), (5, 31), (5, 32), (None, 64), (None, 200)])
def test_leaves_by_bits_are_those_from_level_to_level(depth, most):
    """At thresholds, right beside them and at infinity; trees with more than 64 leaves are walked."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3)).round(2)
    trees = RandomForestRegressor(6, max_depth=depth, max_leaf_nodes=most, random_state=0).fit(
        X, X[:, 0] ** 2
    )
    problem = dt.Problem(dt.Mip(np.zeros(4), lower=-5.0, upper=5.0))
    ensemble = problem.add_predictor(trees, [0, 1, 2], [3]).description.trees()
    at = np.concatenate(ensemble.cuts)
    rows = np.concatenate([X, rng.choice([*at, *np.nextafter(at, np.inf), np.inf, -np.inf], (900, 3))])
    np.testing.assert_array_equal(ensemble.leaves(rows), ensemble._walked(rows))
    assert (ensemble._exits is None) == (most > 64)
