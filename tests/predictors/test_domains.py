"""Domains: their members found by an LP, by all distances, by scikit-learn."""

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.ensemble import IsolationForest
from sklearn.svm import OneClassSVM

import dovetail as dt
from dovetail.core.block import TrainingData
from dovetail.predictors.domain_scores import Gauge, Whitened


def points(kind, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "grid":
        return np.unique(rng.integers(0, 4, (60, 5)).astype(float), axis=0)
    if kind == "flat":
        free = rng.normal(size=(40, 5))
        return np.column_stack([free, free.sum(axis=1), np.full(40, 3.0)])
    return rng.normal(size=(40, {"line": 1, "plane": 2, "six": 6}[kind])) * 10.0 ** rng.integers(-3, 4)


def region(domain, data, samples=1):
    return domain.region(TrainingData.of("data", data, data.shape[1]), data.shape[1], samples)


def inside(found, X):
    """By the region's own parts, as the check sees them."""
    at = X @ found.A.T
    if found.fill is not None:
        weights = found.fill(X)
        assert weights.min() >= 0.0
        at = at + weights @ found.weights.T
    fine = np.all((at >= found.lower - 1e-6) & (at <= found.upper + 1e-6), axis=1)
    if found.score is not None:
        values = found.score.predict(X)[:, 0]
        fine &= (values >= found.least - 1e-6) & (values <= found.most + 1e-6)
    return fine


def is_mean(data, x):
    A = np.vstack([data.T, np.ones(len(data))])
    return linprog(np.zeros(len(data)), A_eq=A, b_eq=[*x, 1.0], bounds=(0, None)).status == 0


@pytest.mark.parametrize("kind", ["line", "plane", "six", "grid", "flat"])
@pytest.mark.parametrize("samples", [1, 100_000])
def test_the_hull_is_that_of_an_lp(kind, samples):
    data, rng = points(kind), np.random.default_rng(1)
    found = region(dt.Hull(data), data, samples)
    corner, weights = data[rng.integers(0, len(data), 30)], rng.uniform(0.3, 1.8, (30, 1))
    X = data.mean(axis=0) + weights * (corner - data.mean(axis=0))
    X[::5, 0] += 0.5 * np.ptp(data[:, 0])
    truth = np.array([is_mean(data, x) for x in X])
    assert 3 < truth.sum() < 27
    np.testing.assert_array_equal(inside(found, X), truth)
    assert inside(found, data).all()


def test_a_hull_is_facets_or_weights_or_a_gauge():
    data = points("plane")
    assert region(dt.Hull(), data).score is None
    assert region(dt.Hull(), data, samples=100_000).score is not None
    assert region(dt.Hull(), points("six")).weights.shape == (13, 40)
    assert region(dt.Hull(), points("six"), samples=1000).score is not None


@pytest.mark.parametrize("kind", ["six", "grid"])
def test_the_gauge_is_the_optimum_of_an_lp_and_its_slopes_are_differences(kind):
    data, rng = points(kind), np.random.default_rng(2)
    gauge = Gauge(Whitened(data), np.arange(data.shape[1]), data.shape[1])
    X = data.mean(axis=0) + rng.normal(size=(20, data.shape[1])) * data.std(axis=0)
    values, slopes = gauge.values_and_slopes(X)
    centred = data - data.mean(axis=0)
    for x, value in zip(X, values, strict=True):
        least = linprog(np.ones(len(data)), A_eq=centred.T, b_eq=x - data.mean(axis=0), bounds=(0, None))
        assert value == pytest.approx(least.fun, rel=1e-7)
    step = 1e-6 * data.std(axis=0)
    for k in range(data.shape[1]):
        ahead = gauge.predict(X + step * np.eye(len(step))[k])[:, 0]
        behind = gauge.predict(X - step * np.eye(len(step))[k])[:, 0]
        measured = (ahead - behind) / (2.0 * step[k])
        straight = np.isclose(measured, slopes[:, k], rtol=1e-3, atol=1e-5 / data.std(axis=0)[k])
        assert straight.mean() > 0.9  # few inputs lie on an edge between two facets


def test_an_lp_helps_the_gauge_out(monkeypatch):
    data = points("six")
    gauge = Gauge(Whitened(data), np.arange(6), 6)
    X = data[:5] * 1.3
    z = (X - gauge._white.centre) @ gauge._white.matrix
    by_lp = [gauge._by_lp(one) @ one for one in z]
    np.testing.assert_allclose(gauge.predict(X)[:, 0], by_lp, rtol=1e-7)


@pytest.mark.parametrize("neighbours", [1, 3])
def test_near_is_all_distances_sorted(neighbours):
    data, rng = points("six"), np.random.default_rng(3)
    X = data[rng.integers(0, len(data), 50)] + rng.normal(size=(50, 6)) * data.std(axis=0) * 0.7
    found = region(dt.Near(distance=1.8, neighbours=neighbours), data)
    apart = np.linalg.norm((X[:, None] - data) / data.std(axis=0), axis=2)
    truth = np.sort(apart, axis=1)[:, neighbours - 1]
    np.testing.assert_allclose(found.score.predict(X)[:, 0], truth)
    np.testing.assert_array_equal(inside(found, X), truth <= 1.8)
    assert 2 < (truth <= 1.8).sum() < 48
    own = np.sort(np.linalg.norm((data[:, None] - data) / data.std(axis=0), axis=2), axis=1)[:, neighbours]
    kept = region(dt.Near(neighbours=neighbours, keep=0.5), data).most
    assert kept == pytest.approx(np.quantile(own, 0.5))


def test_a_score_keeps_its_share_of_the_data():
    data = points("six")
    forest = IsolationForest(n_estimators=20, random_state=0).fit(data)
    found = region(dt.Score(forest, keep=0.8), data)
    assert found.least == pytest.approx(np.quantile(forest.score_samples(data), 0.2))
    assert (found.least, found.most) != region(dt.Score(forest, at_most=-0.4), data)
    machine = region(dt.Score(OneClassSVM().fit(data), at_least=0.0), data)
    assert (machine.least, machine.most) == (0.0, np.inf)


def test_margins_and_missing_values():
    data = np.array([[0.0, 5.0], [2.0, np.nan], [1.0, 7.0]])
    box = region(dt.Box(margin=0.5), data)
    assert (box.lower.tolist(), box.upper.tolist()) == ([-1.0, 4.0], [3.0, 8.0])
    triangle = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    wider = region(dt.Hull(margin=0.5), triangle)
    corner = triangle.mean(axis=0) + 1.499 * (triangle[1] - triangle.mean(axis=0))
    assert inside(wider, corner[None]).all() and not inside(region(dt.Hull(), triangle), corner[None]).any()


def test_categories_have_a_range_and_no_distance():
    data, X = points("six"), points("six", seed=5)[:1]
    data[:, 2] = np.arange(len(data)) % 3
    known = TrainingData.of("data", data, 6, categories=[2])
    for domain in (dt.Near(distance=1e9), dt.Hull(margin=1e6), dt.Box(margin=1e6)):
        found = domain.region(known, 6, 1)
        for category, fits in ((0.0, True), (2.0, True), (3.0, False)):
            X[:, 2] = category
            assert inside(found, X).all() == fits


def test_single_points_are_hulls_too():
    found = region(dt.Hull(), np.array([[1.0, 2.0], [1.0, 2.0]]))
    assert inside(found, np.array([[1.0, 2.0], [1.0, 2.1]])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: dt.Box(margin=-1.0), "margin is -1.0"),
        (lambda: dt.Near(distance=0.0), "distance is 0.0"),
        (lambda: dt.Near(neighbours=0), "neighbours is 0"),
        (lambda: dt.Score(abs, keep=1.5), "keep is 1.5"),
        (lambda: dt.Score(abs, at_least="high"), "at_least is 'high'"),
    ],
)
def test_options_are_checked(make, told):
    with pytest.raises(dt.DovetailError, match=told):
        make()
