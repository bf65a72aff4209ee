"""Branching and the default against enumeration of all cells."""

import functools
import itertools

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

import dovetail as dt
from dovetail.methods.branching import Branching
from tests.conftest import FULL
from tests.predictors.trees import models
from tests.tree_problems import enumerated, random_problem, several_ensembles

METHODS = {"boxes": Branching(), "auto": "auto"}
COUNTS = {"boxes": 1000, "auto": 300} if FULL else {"boxes": 12, "auto": 4}
NEARLY = 2e-6
"""Relative to 1 + |optimum|: cells are closed there, and points a margin inside."""


@functools.cache
def optimum(seed):
    return enumerated(random_problem(seed))


@pytest.mark.parametrize("name", METHODS)
def test_no_status_or_bound_is_wrong_and_optima_are_found(name):
    found = proved = feasible = 0
    for seed in range(COUNTS[name]):
        problem = random_problem(seed)
        best, sign = optimum(seed), problem.mip.sign
        result = dt.solve(problem, METHODS[name], log=False)
        if best is None:
            assert result.x is None, seed
            continue
        room = NEARLY * (1.0 + abs(best))
        assert result.x is not None, seed
        assert dt.check(problem, result.x).within(), seed
        assert result.status.value in ("optimal", "feasible"), seed
        assert result.bound is None or sign * result.bound <= sign * best + room, seed
        assert sign * result.objective >= sign * best - room, seed
        feasible += 1
        found += abs(result.objective - best) <= room
        proved += result.status.value == "optimal"
    assert found >= 0.99 * feasible
    assert proved >= 0.9 * feasible  # small objectives beside rows that are held to 1e-6 are not


def test_several_ensembles_classes_links_chains_and_bounds_on_thresholds():
    proved = feasible = 0
    for seed in range(600 if FULL else 12):
        problem = several_ensembles(seed)
        best, sign = enumerated(problem), problem.mip.sign
        result = dt.solve(problem, Branching(), log=False)
        if best is None:
            assert result.x is None, seed
            continue
        room = NEARLY * (1.0 + abs(best))
        assert result.status.value in ("optimal", "feasible"), seed
        assert dt.check(problem, result.x).within(), seed
        assert result.bound is None or sign * result.bound <= sign * best + room, seed
        assert sign * result.objective >= sign * best - room, seed
        feasible += 1
        proved += result.status.value == "optimal"
    assert proved >= 0.95 * feasible


@pytest.mark.parametrize("method", [Branching(), "auto"])
def test_that_no_cell_holds_a_point_is_infeasible_as_far_as_the_check_goes(method):
    """Two samples are 2 together at most; a limit that 2 misses by less than the check says is met."""
    model = dt.RuleList([([(0, "<=", 0.5)], 1.0)], 0.5, 1)
    for least, status in ((2.1, "infeasible"), (2.0 + 5e-7, "optimal")):
        mip = dt.Mip(
            [0.0, 0.0, 1.0, 1.0], [[0.0, 0.0, 1.0, 1.0]], least, 9.0, [0.0] * 4, [1.0, 1.0, 9.0, 9.0]
        )
        problem = dt.Problem(mip)
        problem.add_predictor(model, [[0], [1]], [[2], [3]])
        result = dt.solve(problem, method, log=False)
        assert result.status == status
        assert (result.x is None) == (status == "infeasible")


def test_a_class_that_is_a_tie_is_the_predictor_s_own():
    """Two trees of a forest that disagree give exactly one half."""
    from sklearn.ensemble import RandomForestClassifier

    X = np.arange(12.0)[:, None]
    model = RandomForestClassifier(2, max_depth=1, random_state=3).fit(X, X[:, 0] > 5.5)
    mip = dt.Mip([0.1, -1.0], lower=[0.0, 0.0], upper=[11.0, 1.0])
    problem = dt.Problem(mip)
    problem.add_predictor(model, [0], [1], output_type="classification")
    result = dt.solve(problem, Branching(), log=False)
    truth = [0.1 * x - float(model.predict([[x]])[0]) for x in np.linspace(0.0, 11.0, 111)]
    assert result.status.value == "optimal"
    assert result.objective <= min(truth) + 1e-6


@pytest.mark.parametrize("name", ["XGBClassifier", "XGB dart", "XGB poisson"])
def test_what_float32_rounds_does_not_stand_in_the_way_of_a_proof(name):
    """Where every tree is down to one leaf, the predictor itself says what it gives."""
    problem = dt.Problem(dt.Mip([0.03, -0.02, 0.01, 1.0], lower=-2.0, upper=[2.0] * 3 + [np.inf]))
    problem.add_predictor(models.model("xgboost", name), [0, 1, 2], [3])
    result = dt.solve(problem, Branching(), log=False)
    best = enumerated(problem)
    assert result.status.value == "optimal"
    assert abs(result.objective - best) <= NEARLY * (1.0 + abs(best))
    assert result.bound <= best + NEARLY * (1.0 + abs(best))


def test_a_phase_that_was_cut_short_proves_nothing_wrong():
    problem = random_problem(3)
    best, sign = enumerated(problem), problem.mip.sign
    bounds = 0
    for seconds in (1e-3, 0.03, 0.1, 30.0):
        result = dt.solve(problem, Branching(), log=False, time_limit=seconds)
        bounds += result.bound is not None
        assert result.bound is None or sign * result.bound <= sign * best + 1e-6 * (1.0 + abs(best))
    assert bounds


def two_samples(seed):
    """Two samples on a grid of whole numbers, each beside an integer of its own, and rows that they share."""
    rng = np.random.default_rng(seed)
    grid = np.array([(i, j) for i in range(5) for j in range(5)], dtype=float)
    value = rng.normal(size=25)
    rules = [([(0, "<=", i + 0.5), (1, "<=", j + 0.5)], v) for (i, j), v in zip(grid, value, strict=True)]
    lower, upper = np.tile([0.0, 0.0, -9.0, 0.0, 0.0], 2), np.tile([4.0, 4.0, 9.0, 7.0, 4.0], 2)
    cost = np.tile([*0.2 * rng.normal(size=2), 1.0, -0.37, -0.5], 2)
    A = np.zeros((4, 10))
    A[0, [0, 3, 4]] = A[1, [5, 8, 9]] = 1.0, 2.0, 1.5
    A[2, 3::5], A[2, 4::5], A[3, 2::5] = 1.0, 0.7, 1.0
    limits = rng.uniform([1.0, 1.0, 1.0], [6.0, 6.0, 4.0])
    low, high = np.array([-np.inf] * 3 + [-0.5]), np.append(limits, np.inf)
    problem = dt.Problem(dt.Mip(cost, A, low, high, lower, upper, np.tile([1, 1, 0, 1, 0], 2).astype(bool)))
    problem.add_predictor(dt.RuleList(rules, 0.0, 2), [[0, 1], [5, 6]], [[2], [7]])
    return problem, grid, value


def least_of(problem, grid, value):
    """By every choice of the inputs; the other integers one by one, what is left by an LP."""
    mip, best = problem.mip, np.inf
    for a, b in itertools.product(range(25), repeat=2):
        lower, upper = mip.lower.copy(), mip.upper.copy()
        for at, k in ((0, a), (5, b)):
            lower[at : at + 3] = upper[at : at + 3] = [*grid[k], value[k]]
        rows = LinearConstraint(mip.A, mip.row_lower, mip.row_upper)
        found = milp(mip.cost, integrality=mip.integer, bounds=Bounds(lower, upper), constraints=rows)
        best = min(best, found.fun if found.success else np.inf)
    return best


@pytest.mark.parametrize("seed", range(30) if FULL else [1])
def test_boxes_close_where_integers_stand_beside_the_trees(seed):
    """Prices leave cells out, and then integers are cut: the outputs are those of the last cells all the
    same."""
    problem, grid, value = two_samples(seed)
    result = dt.solve(problem, Branching(), time_limit=600.0, gap=1e-6, log=False)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(least_of(problem, grid, value), abs=1e-5)
