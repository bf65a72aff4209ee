"""Gaussian processes: mean and standard deviation against scikit-learn's own, bounds against samples."""

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dovetail as dt
from dovetail.bounds.planes.domain import Boxes
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.predictors.scikit_learn.deviation import MeanAndDeviation
from tests.conftest import FULL

SMOOTH = (
    lambda r: RBF(r.uniform(0.5, 2.0)),
    lambda r: RBF(r.uniform(0.5, 2.0, 3)),
    lambda r: Matern(r.uniform(0.5, 2.0, 3), nu=0.5),
    lambda r: Matern(r.uniform(0.5, 2.0), nu=1.5),
    lambda r: Matern(r.uniform(0.5, 2.0, 3), nu=2.5),
    lambda r: Matern(r.uniform(0.5, 2.0, 3), nu=np.inf),
    lambda r: RationalQuadratic(r.uniform(0.5, 2.0), r.uniform(0.2, 3.0)),
    lambda r: DotProduct(r.uniform(0.1, 2.0)) ** int(r.integers(1, 3)),
)


def trained(seed, size=25):
    """Random kernels: sums and products, with noise, scaled outputs or a scaler."""
    rng = np.random.default_rng(seed)
    one, other = (SMOOTH[int(k)](rng) for k in rng.integers(len(SMOOTH), size=2))
    kernel = ConstantKernel(rng.uniform(0.5, 4.0)) * one
    kernel = [kernel, kernel + other, kernel * other][int(rng.integers(3))] + WhiteKernel(
        rng.uniform(0.01, 0.5)
    )
    X = rng.uniform(-2.0, 2.0, (size, 3))
    Y = np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=size) + 5.0
    Y = np.column_stack([Y, -3.0 * Y + X[:, 0]]) if rng.integers(2) else Y
    process = GaussianProcessRegressor(kernel, normalize_y=bool(rng.integers(2)), optimizer=None)
    return (make_pipeline(StandardScaler(), process) if rng.integers(2) else process).fit(X, Y)


@pytest.mark.parametrize("seed", range(200 if FULL else 20))
def test_mean_and_deviation_are_scikit_learns(seed):
    process, U = trained(seed), np.random.default_rng(seed).uniform(-3.0, 3.0, (40, 3))
    mean, deviation = process.predict(U, return_std=True)
    truth = np.hstack([mean.reshape(40, -1), deviation.reshape(40, -1)])
    predictor = MeanAndDeviation(process)
    assert np.array_equal(predictor.predict(U), truth)
    size = 1.0 + np.abs(truth)
    program = predictor.describe(U).program(3)
    assert np.all(np.abs(program.values(U) - truth) <= 1e-9 * size)
    assert np.all(np.abs(predictor.snapshot("cpu")(torch.tensor(U)).detach().numpy() - truth) <= 1e-9 * size)
    _, _, error = program.errors(program.arithmetic, U, U)
    assert np.all(np.abs(program.values(U) - truth) <= error)
    assert float(error.max()) < 1e-6


def test_without_noise_the_deviation_vanishes_at_training_points():
    X = np.random.default_rng(0).uniform(-2.0, 2.0, (30, 2))
    process = GaussianProcessRegressor(RBF(1.0), optimizer=None).fit(X, np.sin(X).sum(axis=1))
    predictor = MeanAndDeviation(process)
    assert predictor.describe(X).outputs == 2
    assert np.all(predictor.predict(X)[:, 1] < 1e-4)
    U = torch.tensor(X, requires_grad=True)
    predictor.snapshot("cpu")(U).sum().backward()
    assert torch.isfinite(U.grad).all()


def problem_of(process, risk, sense="max", features=3):
    mip = dt.Mip(
        [0.0] * features + [1.0],
        lower=[-2.0] * features + [-1e3],
        upper=[2.0] * features + [1e3],
        sense=sense,
    )
    problem = dt.Problem(mip)
    problem.add_predictor(process, range(features), [features], risk=risk)
    return problem


WHOLE = (
    RBF([1.0, 2.0]) + WhiteKernel(0.1),
    Matern(nu=1.5) + WhiteKernel(0.01),
    ConstantKernel(2.0) * Matern([1.0, 2.0], nu=2.5) + WhiteKernel(1e-3),
    RationalQuadratic(1.0, 0.7) + WhiteKernel(0.1) + ConstantKernel(0.3),
    ConstantKernel(3.0) * RBF(2.0),
)
"""Sums of terms of distances have planes as a whole."""


def small(kernel, size=40):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (size, 2))
    process = GaussianProcessRegressor(kernel, alpha=1e-6, normalize_y=True, optimizer=None)
    return process.fit(X, np.sin(2.0 * X[:, 0]) * X[:, 1])


@pytest.mark.parametrize("kernel", [*WHOLE, Matern(nu=0.5) + WhiteKernel(0.1)], ids=str)
@pytest.mark.parametrize("width", [1e-9, 1e-3, 0.05, 0.5, 3.0])
def test_no_sample_is_outside_the_planes_of_its_box(kernel, width):
    predictor, rng = MeanAndDeviation(small(kernel)), np.random.default_rng(1)
    program = predictor.describe(np.zeros((2, 2))).program(2)
    whole = len(program.operations) == 1
    assert whole == ("nu=0.5" not in str(kernel))
    planes = NetworkPlanes(program.graph())
    centre, reach = rng.uniform(-2.0, 2.0, (30, 2)), width * rng.uniform(0.1, 1.0, (30, 2))
    low, high = centre - reach, centre + reach
    domain = Boxes(torch.tensor(low), torch.tensor(high))
    one = torch.cat([torch.eye(2), -torch.eye(2)]).double()
    found = planes.planes(one, planes.ranges(domain))
    _, _, slack = program.errors(program.arithmetic, low, high)
    for k in range(1000 if FULL else 20):  # 150,000 samples of each kernel at full volume
        at = centre + reach * (rng.choice([-1.0, 1.0], (30, 2)) if k % 2 else rng.uniform(-1.0, 1.0, (30, 2)))
        said = predictor.predict(at)
        lines = np.einsum("bsd,bd->bs", found.slopes.numpy(), at) + found.offset.numpy()
        assert np.all(np.hstack([said, -said]) >= lines - np.hstack([slack, slack]))
    if whole and width == 1e-3:  # of second order
        ends = found.offset.numpy() + np.einsum("bsd,bd->bs", found.slopes.numpy(), centre)
        assert np.max(-(ends[:, 0] + ends[:, 2])) < 1e-2


@pytest.mark.parametrize("risk", [None, dt.MeanSpread(2.0, bad="low")], ids=str)
def test_it_is_proved_and_no_sample_beats_the_bound(risk):
    process = small(WHOLE[0])
    problem = problem_of(process, risk, features=2)
    result = dt.solve(problem, gap=1e-3, log=False)
    values = problem.blocks[0].predictor.predict(np.random.default_rng(2).uniform(-2.0, 2.0, (50_000, 2)))
    assert result.status == "optimal"
    assert result.bound >= np.max(values) and result.objective >= np.max(values) - 1e-3


def test_kernels_without_a_formula_are_refused():
    X = np.random.default_rng(0).uniform(size=(9, 3))
    for kernel, words in (
        (ExpSineSquared(), "ExpSineSquared"),
        (Matern(nu=0.7), "nu=0.7"),
        (RBF() ** 1.5, "1.5"),
    ):
        process = GaussianProcessRegressor(kernel, alpha=1.0, optimizer=None).fit(X, X[:, 0])
        with pytest.raises(dt.PredictorError, match=words):
            problem_of(process, None)
    with pytest.raises(dt.PredictorError, match="not trained yet"):
        problem_of(GaussianProcessRegressor(), dt.MeanSpread(1.0, bad="low"))
    process = GaussianProcessRegressor(RBF(), alpha=1.0, optimizer=None).fit(X, X[:, 0])
    with pytest.raises(dt.PredictorError, match="normal distribution has no"):
        dt.Worst(bad="low").of(process)
