"""A product of what trees predict is the trees and a product: the same points, and a bound."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.predictors.trees.scikit_learn import ScikitLearnTrees
from dovetail.reformulations.chained_networks import TakenApart
from dovetail.reformulations.reformulated import Reformulated

rng = np.random.default_rng(0)
X = rng.uniform(1.0, 5.0, (200, 2))
TREES = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, 10.0 - 1.7 * X[:, 0] + X[:, 1])


def problem_of(predictor, inputs, outputs, columns):
    mip = dt.Mip(
        [*np.zeros(columns - 1), 1.0], lower=[1.0, 1.0, *np.full(columns - 2, -99.0)],
        upper=[5.0, 5.0, *np.full(columns - 2, 99.0)], sense="max",
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(predictor, inputs, outputs)
    return problem


def apart(problem):
    return TakenApart().apply(Reformulated.start(problem, propagate(problem.mip.minimised())))


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("kind", ["product", "square"])
def test_points_are_the_same(keep, kind):
    made = (
        dt.Product(TREES, 0, 0, keep=keep) if kind == "product" else dt.Square(TREES, centre=2.0, keep=keep)
    )
    columns = 4 if keep else 3
    problem = problem_of(made, [0, 1], list(range(2, columns)), columns)
    taken = apart(problem)
    assert [block.description.trees is not None for block in taken.problem.blocks] == [True, False]
    for x in rng.uniform(1.0, 5.0, (20, columns)):
        x = problem.predict(x)
        assert taken.problem.predict(taken.lift(x)) == pytest.approx(taken.lift(x))
        assert taken.restrict(taken.lift(x)) == pytest.approx(x)


def test_inputs_that_only_the_product_reads():
    problem = problem_of(dt.Product(TREES, 0, 2, extra=1), [[0, 1, 2]], [[3]], 4)
    taken = apart(problem)
    assert taken.problem.blocks[0].inputs.tolist() == [[0, 1]]
    x = problem.predict(np.array([2.0, 3.0, 4.0, 0.0]))
    assert taken.problem.predict(taken.lift(x))[3] == pytest.approx(x[3])


def test_other_predictors_stay():
    assert apart(problem_of(TREES, [0, 1], [2], 3)) is None
    assert apart(problem_of(dt.Product(lambda X: X[:, :1], 0, 1), [0, 1], [2], 3)) is None


def test_both_ways_to_write_it_are_proved():
    wrapped = problem_of(dt.Product(TREES, 0, 0), [0, 1], [2], 3)
    written = problem_of(TREES, [0, 1], [2], 4)
    written.add_predictor(dt.Product(None, 0, 1), [2, 0], [3])
    one, two = (dt.solve(problem, log=False, time_limit=600.0) for problem in (wrapped, written))
    prices = np.linspace(1.0, 5.0, 4001)
    cuts = np.unique(TREES.tree_.threshold[TREES.tree_.feature == 1])
    rivals = np.concatenate([[1.0, 5.0], cuts - 1e-6, cuts + 1e-6]).clip(1.0, 5.0)
    grid = np.array(np.meshgrid(prices, rivals)).reshape(2, -1).T
    best = (grid[:, 0] * TREES.predict(grid)).max()
    for result in (one, two):
        assert result.status == "optimal"
        assert result.objective >= best - 1e-3 * best and result.objective <= best * (1.0 + 2e-3)


def test_the_trees_are_read_a_few_times_however_many_parts_ask(monkeypatch):
    reads, read = [], ScikitLearnTrees.read
    monkeypatch.setattr(ScikitLearnTrees, "read", lambda self: reads.append(1) or read(self))
    problem = problem_of(dt.Product(TREES, 0, 0), [0, 1], [2], 3)
    reads.clear()
    dt.solve(problem, log=False)
    assert 1 <= len(reads) <= 4  # 7 before the first answer was kept
