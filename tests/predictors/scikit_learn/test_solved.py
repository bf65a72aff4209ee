"""Every kind of scikit-learn's in a problem whose optimum is known by looking at all points."""

import itertools

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.predictor import as_predictor
from tests.conftest import FULL
from tests.predictors.scikit_learn.kinds import CLASSIFIERS, KINDS, SAMPLED, trained

PRICE = np.array([0.3, -0.2, 0.1])
GRID = np.array([*itertools.product(range(4), repeat=3)], dtype=float)


def small(kind):
    """min price'x + weights'y over x in {0..3}^3 with x0 + x1 + x2 >= 3; y is what the estimator says of x.

    Classes are worth something each; where categories have gaps, the last column cannot be all numbers.
    """
    model, _ = trained(kind)
    classifies = kind in CLASSIFIERS
    predictor = as_predictor(model)
    q = predictor.predict(GRID[:2]).shape[1]
    worth = np.linspace(1.0, -1.0, q) if q > 1 else np.ones(1)
    free = np.inf if not classifies else 1.0
    last = [1, 2] if kind == "OrdinalEncoder, gaps" else [0, 3]
    mip = dt.Mip(
        cost=[*PRICE, *worth],
        A=[[1.0, 1.0, 1.0, *[0.0] * q]],
        row_lower=3.0,
        row_upper=np.inf,
        lower=[0.0, 0.0, last[0], *[0.0 if classifies else -np.inf] * q],
        upper=[3.0, 3.0, last[1], *[free] * q],
        integer=[True, True, True, *[False] * q],
    )
    problem = dt.Problem(mip)
    kind_of_output = "classification" if classifies else "regression"
    block = problem.add_predictor(model, [0, 1, 2], range(3, 3 + q), output_type=kind_of_output)
    points = GRID[(GRID.sum(axis=1) >= 3) & (GRID[:, 2] >= last[0]) & (GRID[:, 2] <= last[1])]
    values = points @ PRICE + block.decode(predictor.predict(points)) @ worth
    return problem, float(values.min())


@pytest.mark.parametrize("kind", KINDS if FULL else SAMPLED)
def test_every_kind_is_solved_to_the_enumerated_optimum(kind):
    problem, best = small(kind)
    result = dt.solve(problem, log=False)
    assert result.objective == pytest.approx(best, abs=1e-6)
    assert result.status == "optimal"
    assert dt.check(problem, result.x).within()


@pytest.mark.parametrize("kind", ["SVR rbf", "PLSRegression"])
def test_what_has_bounds_is_proved_over_a_box(kind):
    """No integers: the least of a fine grid is above the proved bound, and hardly below the point found."""
    model, X = trained(kind)
    low, high = X.mean(axis=0) + 0.2, X.mean(axis=0) + 1.2
    mip = dt.Mip(cost=[*PRICE, 1.0], lower=[*low, -np.inf], upper=[*high, np.inf])
    problem = dt.Problem(mip)
    problem.add_predictor(model, [0, 1, 2], [3])
    result = dt.solve(problem, log=False)
    steps = [np.linspace(a, b, 21) for a, b in zip(low, high, strict=True)]
    grid = np.array([*itertools.product(*steps)])
    least = float(np.min(grid @ PRICE + as_predictor(model).predict(grid)[:, 0]))
    assert result.objective <= least + 1e-6
    assert result.bound is not None and result.bound_kind == "proven"
    assert result.bound <= result.objective + 1e-9
