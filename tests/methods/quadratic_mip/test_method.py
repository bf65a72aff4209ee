"""Quadratic functions beside rows and networks: what is convex is proved, without SCIP too."""

import gurobipy as gp
import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.methods import facts
from dovetail.methods.facts import AutoOptions, Facts
from dovetail.methods.quadratic_mip import QuadraticMip
from dovetail.methods.quadratic_mip import method as quadratic_mip
from tests.contexts import context_of


@pytest.fixture
def model():
    with gp.Env(params={"OutputFlag": 0}) as env, gp.Model(env=env) as made:
        yield made


@pytest.fixture
def without_scip(monkeypatch):
    monkeypatch.setattr(quadratic_mip, "installed", lambda: ("highs",))


def solved(model, seconds=60.0):
    result = dt.solve(model, time_limit=seconds, log=False)
    assert result.violation.within()
    return result


@pytest.mark.usefixtures("without_scip")
def test_a_convex_cost_is_proved(model):
    x = model.addMVar(4, lb=-5.0, ub=5.0)
    half = np.array([[1.0, 2.0, 0.0, -1.0], [0.0, 1.0, 1.0, 0.0]])
    model.setObjective(x @ (half.T @ half) @ x + np.array([1.0, -2.0, 0.0, 1.0]) @ x)
    model.addConstr(x.sum() == 2.0)
    result = solved(model)
    model.update()
    model.optimize()
    assert result.status == "optimal"
    assert result.objective == pytest.approx(model.ObjVal, rel=1e-6)


@pytest.mark.usefixtures("without_scip")
def test_variables_without_bounds_are_no_matter(model):
    x = model.addMVar(3, lb=-np.inf)
    model.setObjective(((x - np.array([1.0, 2.0, 3.0])) ** 2).sum())
    model.addConstr(x.sum() <= 3.0)
    result = solved(model)
    assert result.status == "optimal" and result.objective == pytest.approx(3.0, rel=1e-6)
    np.testing.assert_allclose(x.X, [0.0, 1.0, 2.0], atol=1e-4)


@pytest.mark.usefixtures("without_scip")
def test_integers_by_outer_approximation(model):
    x = model.addMVar(3, ub=40.0, vtype="I")
    y = model.addMVar(2, ub=40.0)
    centre = np.array([7.4, 3.3, 5.8])
    model.setObjective(((x - centre) ** 2).sum() + ((y - 2.5) ** 2).sum() + (y[0] - x[0]) * (y[0] - x[0]))
    model.addConstr(x.sum() + y.sum() <= 18.5)
    result = solved(model)
    model.update()
    model.Params.MIPGap = 0.0
    model.optimize()
    assert result.status == "optimal" and result.objective == pytest.approx(model.ObjVal, rel=1e-6)


@pytest.mark.usefixtures("without_scip")
def test_a_round_row_is_kept_by_tangents(model):
    x = model.addMVar(2, lb=-9.0, ub=9.0)
    model.setObjective(x[0] + 2.0 * x[1])
    model.addConstr(x @ x <= 4.0)
    result = solved(model)
    assert result.status == "optimal" and result.objective == pytest.approx(-2.0 * np.sqrt(5.0), abs=1e-5)


def test_what_is_hollow_is_left_to_scip(model):
    x = model.addMVar(6, ub=3.0)
    y = model.addMVar(6, ub=3.0)
    model.setObjective((x * y).sum() - x.sum(), gp.GRB.MAXIMIZE)
    model.addConstr(x.sum() + y.sum() <= 9.0)
    result = solved(model)
    assert result.status == "optimal"
    model.update()
    model.Params.NonConvex = 2
    model.optimize()
    assert result.objective == pytest.approx(model.ObjVal, rel=1e-5)


def flip_model(model, net, target):
    """Least squared distance from a point such that the class changes."""
    x = model.addMVar(target.size, lb=0.0, ub=1.0, name="x")
    score = model.addMVar(2, lb=-np.inf, name="score")
    dt.add_predictor_constr(model, net, x, score)
    model.addConstr(score[1] >= score[0] + 0.1)
    model.setObjective(((x - target) ** 2).sum())
    return x, score


def test_the_nearest_point_of_another_class(model):
    torch.manual_seed(2)
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)).double()
    X = np.random.default_rng(0).random((4000, 4))
    with torch.no_grad():
        net[2].bias -= net(torch.from_numpy(X)).median(dim=0).values  # each class has its half
        scores = net(torch.from_numpy(X)).numpy()
    other = scores[:, 1] >= scores[:, 0] + 0.1
    target = X[np.argmax(scores[:, 0] - scores[:, 1])]
    x, score = flip_model(model, net, target)
    result = solved(model)
    assert result.status == "optimal"
    assert 0.0 < result.objective <= ((X[other] - target) ** 2).sum(axis=1).min()
    assert score.X[1] >= score.X[0] + 0.1 - 1e-6
    assert model.ObjVal == pytest.approx(((x.X - target) ** 2).sum(), abs=1e-9)


def test_an_optimistic_guess_of_a_surrogate():
    """Bayesian optimisation: the most of mean + 2 deviation, where the variance is quadratic in x."""
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    model.x = pyo.Var([0, 1], bounds=(-1, 1))
    model.mean = pyo.Var()
    model.sigma = pyo.Var(bounds=(0, 2))
    model.spread = pyo.Constraint(
        expr=model.sigma**2 <= 1 - 0.5 * (model.x[0] - 0.2) ** 2 - 0.25 * model.x[1] ** 2
    )
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 1)).double()
    dt.add_predictor_constr(model, net, [model.x[0], model.x[1]], [model.mean])
    model.best = pyo.Objective(expr=model.mean + 2 * model.sigma, sense=pyo.maximize)
    result = dt.solve(model, time_limit=60.0, log=False)
    X = np.stack(np.meshgrid(*[np.linspace(-1, 1, 201)] * 2), -1).reshape(-1, 2)
    variance = 1 - 0.5 * (X[:, 0] - 0.2) ** 2 - 0.25 * X[:, 1] ** 2
    guess = net(torch.from_numpy(X)).detach().numpy()[:, 0] + 2 * np.sqrt(variance)
    assert result.status == "optimal"
    assert guess.max() - 1e-6 <= result.objective <= guess.max() + 1e-2
    assert pyo.value(model.best) == pytest.approx(result.objective)


def test_squares_of_users_take_the_same_way():
    problem = dt.Problem(dt.Mip([0.0, 0.0, 1.0, 1.0], [[1.0, 1.0, 0.0, 0.0]], 3.0, 3.0, -50.0, 5000.0))
    problem.add_predictor(dt.Square(None, centre=[1.0, 3.0]), [0, 1], [2, 3])
    result = dt.solve(problem, gap=1e-7, time_limit=60.0, log=False)
    assert result.status == "optimal" and result.objective == pytest.approx(0.5, rel=1e-6)


def test_trees_beside_squares(model):
    from sklearn.tree import DecisionTreeRegressor

    grid = np.stack(np.meshgrid(*[np.linspace(0.0, 3.0, 13)] * 2), -1).reshape(-1, 2)
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(grid, np.sin(2 * grid).sum(axis=1))
    x = model.addMVar(2, ub=3.0)
    y = model.addMVar(1, lb=-np.inf)
    dt.add_predictor_constr(model, tree, x, y)
    target = np.array([1.6, 0.4])
    model.setObjective(((x - target) ** 2).sum() - 2.0 * y.sum())
    result = solved(model)
    assert result.status == "optimal"
    fine = np.stack(np.meshgrid(*[np.linspace(0.0, 3.0, 301)] * 2), -1).reshape(-1, 2)
    best = (((fine - target) ** 2).sum(axis=1) - 2.0 * tree.predict(fine)).min()
    assert best - 0.1 <= result.objective <= best + 1e-4
    assert tree.predict(x.X[None])[0] == y.X[0]


@pytest.mark.usefixtures("without_scip")
@pytest.mark.parametrize("fixed", [False, True])
def test_squares_of_a_sample_need_no_bounds(fixed):
    """(a - 1)^2 + (b - 3)^2 over a + b = 3, in one sample; a is fixed, or nothing has a bound."""
    a = 2.0 if fixed else None
    lower = [-np.inf if a is None else a, -np.inf, -np.inf, -np.inf]
    upper = [np.inf if a is None else a, np.inf, np.inf, np.inf]
    problem = dt.Problem(dt.Mip([0.0, 0.0, 1.0, 1.0], [[1.0, 1.0, 0.0, 0.0]], 3.0, 3.0, lower, upper))
    problem.add_predictor(dt.Square(None, centre=[1.0, 3.0]), [0, 1], [2, 3])
    result = dt.solve(problem, QuadraticMip(), time_limit=60.0, log=False)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(5.0 if fixed else 0.5, rel=1e-6)


@pytest.mark.usefixtures("without_scip")
def test_a_product_of_fixed_columns_is_no_square():
    """-1 * 1 + (t - 0.5)^2, from a poor start: nothing above -1 may be claimed."""
    ends = [-1.0, 1.0, -2.0, -9.0, -9.0], [-1.0, 1.0, 2.0, 9.0, 9.0]
    problem = dt.Problem(dt.Mip([0.0, 0.0, 0.0, 1.0, 1.0], lower=ends[0], upper=ends[1]))
    problem.add_predictor(dt.Product(None, 0, 1), [0, 1], [3])
    problem.add_predictor(dt.Square(centre=0.5), [2], [4])
    start = np.array([-1.0, 1.0, 2.0, -1.0, 2.25])
    result = dt.solve(problem, QuadraticMip(), start=start, gap=1e-7, time_limit=60.0, log=False)
    assert result.bound <= -1.0 + 1e-9
    assert result.status == "optimal" and result.objective == pytest.approx(-1.0, abs=1e-6)


def test_scip_is_done_though_a_square_had_no_bound():
    """The row holds w^2, which has no bound of its own, and costs nothing."""
    row = [1.0, 1.0, 0.0, 0.0, 1.0]
    ends = [0.0, 0.0, -np.inf, -np.inf, -np.inf], [1.0, 1.0, np.inf, np.inf, np.inf]
    problem = dt.Problem(dt.Mip([0.0, 0.0, 0.1, -1.0, 0.0], [row], -np.inf, 1.5, *ends))
    problem.add_predictor(dt.Product(None, 0, 1), [0, 1], [3])
    problem.add_predictor(dt.Square(), [2], [4])
    result = dt.solve(problem, QuadraticMip(), time_limit=60.0, log=False)
    assert result.status == "optimal"
    best = min(0.1 * w - ((1.5 - w * w) / 2.0) ** 2 for w in np.linspace(-1.0, 1.0, 2001))
    assert result.objective == pytest.approx(best, abs=1e-5)


def test_more_curves_than_can_be_looked_at_are_left_alone(monkeypatch):
    problem = dt.Problem(dt.Mip([0.0, 0.0, 1.0, 1.0], lower=-5.0, upper=50.0))
    problem.add_predictor(dt.Square(None), [[0], [1]], [[2], [3]])
    assert Facts((context_of(problem), AutoOptions())).curves == 2
    monkeypatch.setattr(facts, "MOST_CURVES", 1)
    assert Facts((context_of(problem), AutoOptions())).curves == 0
