"""Function approximation: an equality through a network, met by bisection that knows nothing of solvers."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail_study.problems.function import function, quadratics


@pytest.fixture(scope="module")
def instance():
    return function(3, "2x8", rows=600, seed=1, epochs=40)


def value(net, point):
    with torch.no_grad():
        return float(net(torch.tensor(point[None, :]))[0, 0])


def a_point(instance, seed=0):
    """A point of the surface g = median, by bisection between a point below it and a point above."""
    rng = np.random.default_rng(seed)
    g, median = instance.networks[1], instance.median
    points = rng.uniform(-10.0, 10.0, (200, instance.x.size))
    levels = np.array([value(g, point) for point in points])
    below, above = points[levels < median][0], points[levels > median][0]
    for _ in range(100):
        middle = 0.5 * (below + above)
        below, above = (middle, above) if value(g, middle) < median else (below, middle)
    x = np.empty(instance.x.size + 2)
    x[instance.x] = below
    x[instance.outputs] = value(instance.networks[0], below), median
    return x


def test_a_point_of_the_surface_is_feasible_and_one_beside_it_is_not(instance):
    x = a_point(instance)
    assert dt.check(instance.problem, x).within()
    assert instance.problem.mip.objective(x) == x[instance.outputs[0]]
    x[0] += 0.5
    assert dt.check(instance.problem, x).prediction.amount > 1e-3


def test_it_is_the_model_of_the_docstring(instance):
    mip = instance.problem.mip
    _, targets = quadratics(3, 600, 1)
    assert mip.n_rows == 0 and mip.n_columns == 5 and mip.sense == "min"
    assert mip.lower[4] == mip.upper[4] == instance.median == np.median(targets[1])
    assert mip.lower[:3].tolist() == [-20.0] * 3 and mip.upper[:3].tolist() == [20.0] * 3
    assert np.isinf([mip.lower[3], mip.upper[3]]).all()
    assert [block.inputs.tolist() for block in instance.problem.blocks] == [[[0, 1, 2]]] * 2


def test_a_solve_is_as_good_as_the_best_of_many_points(instance):
    best = min(a_point(instance, seed)[instance.outputs[0]] for seed in range(10))
    result = dt.solve(instance.problem, target=best, log=False)
    assert dt.check(instance.problem, result.x).within()
    assert result.objective <= best + 1e-6


def test_quadratics_are_quadratic():
    """Third differences along a line vanish; the two targets differ."""
    X, targets = quadratics(4, 30, 7)
    assert X.shape == (30, 4) and targets.shape == (2, 30) and np.abs(X).max() <= 10
    rng = np.random.default_rng(7)
    Q = rng.uniform(-5.0, 5.0, (2, 4, 4))
    a, c = rng.uniform(-1.0, 1.0, (2, 4)), rng.uniform(-1.0, 1.0, 2)
    expected = [[x @ Q[m] @ x + a[m] @ x + c[m] for x in X] for m in range(2)]
    assert targets == pytest.approx(np.array(expected))


def test_reach_and_bad_sizes():
    near = function(2, "1x4", rows=50, reach=10.0, epochs=1, allow_constant=True)
    assert near.problem.mip.upper[0] == 10.0
    for wrong in ({"features": 0}, {"rows": 5}, {"reach": 0.0}, {"reach": np.inf}):
        with pytest.raises(dt.OptionError, match="give at least 1 feature"):
            function(**wrong)
