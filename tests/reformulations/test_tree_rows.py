"""Trees beside networks and behind each other: points, and bounds that a fine grid does not refute."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import dovetail as dt
from dovetail.reformulations.reformulated import Reformulated, reformulate
from dovetail.reformulations.tree_rows import (
    TreeRows,
    TreeSplits,
    Weights,
    _largest,
    _one_class,
    cells_of,
    may_have_tree_rows,
)
from dovetail.reformulations.writer import Writer
from dovetail.structure.structure import structure_of
from tests.conftest import FULL
from tests.contexts import context_of
from tests.structure.test_tree_problem import trees_of
from tests.tree_problems import random_problem


def weights_of(trees, base):
    """Leaf weights in the first columns; each tree is a list of leaf values, or of rows of them."""
    value = np.concatenate([np.reshape(np.asarray(tree, dtype=float), (len(tree), -1)) for tree in trees])
    starts = np.cumsum([0, *(len(tree) for tree in trees)])[:-1]
    return Weights(np.arange(len(value)), value, np.asarray(base, dtype=float), starts)


def worst(writer, weights, trees, classes_of):
    """By how much the rows are missed at most, over all choices of leaves and the classes these may have."""
    size = int(weights.columns.size)
    mip = writer.extend(dt.Mip(np.zeros(writer.first)))
    missed = 0.0
    for choice in product(*(range(len(tree)) for tree in trees)):
        leaves = weights.starts + np.array(choice)
        for classes in classes_of(weights.base + weights.value[leaves].sum(axis=0)):
            z = np.zeros(mip.n_columns)
            z[leaves] = 1.0
            z[size : size + len(classes)] = classes
            missed = max(missed, float(np.max(mip.row_violation(z), initial=0.0)))
    return missed


@pytest.mark.parametrize(
    "trees",
    [
        [[-1.0, 1.0], [5e-10, 8e-10], [6e-10, 9e-10]],  # all leaves of a tree below what engines keep
        [[-1.0, 1.0], [-8e-10, -5e-10]],
        [[-1.0, 1.0], [-3.0, -1.0 + 5e-10]],  # the largest score is past the cut by next to nothing
        [[-1.0, 1.0], [3.0, 1.0 - 5e-10]],
    ],
)
def test_one_class_cuts_nothing_off(trees):
    weights = weights_of(trees, [0.0])
    writer = Writer(weights.columns.size + 1)
    _one_class(writer, weights, weights.columns.size, (0.0, 0.0), float(weights.unsaid(weights.value)[0]))
    assert worst(writer, weights, trees, lambda score: [[float(score[0] >= 0.0)]]) <= 1e-14


def test_the_largest_of_several_cuts_nothing_off():
    trees = [[[-1.0, 1.0], [1.0, -1.0]], [[2.0, 2.0 - 5e-10]]]
    weights = weights_of(trees, [0.0, 0.0])
    writer = Writer(weights.columns.size + 2)
    _largest(writer, weights, weights.columns.size + np.arange(2), np.zeros(2))
    assert worst(writer, weights, trees, lambda score: [np.eye(2)[int(np.argmax(score))]]) <= 1e-14


def written(problem, trees):
    from dovetail.bounds.box import propagate

    return reformulate(Reformulated.start(problem, propagate(problem.mip)), (TreeSplits(trees),))


@pytest.mark.parametrize("seed", range(16))
def test_points_of_the_problem_are_points_of_the_mip(seed):
    problem = random_problem(seed)
    trees, rng = trees_of(problem), np.random.default_rng(seed)
    form = written(problem, trees)
    mip, first = form.problem.mip, problem.mip.n_columns
    assert not form.problem.blocks
    for _ in range(20):
        cells = rng.integers(trees.cells.counts)
        flat, x = trees.cells.flat(cells), np.zeros(first)
        x[trees.cells.columns] = rng.choice([trees.cells.inner[flat], trees.cells.high[flat]])
        z = form.lift(problem.predict(x))
        own = mip.row_violation(z)[problem.mip.n_rows :]
        assert np.max(own, initial=0.0) <= 1e-9
        assert np.array_equal(cells_of(trees, first, z), cells)


def test_an_output_that_is_no_sum_stays_a_block():
    import dovetail as dt
    from tests.predictors.trees import models

    problem = dt.Problem(dt.Mip(np.zeros(4), lower=-3.0, upper=3.0))
    problem.add_predictor(models.model("xgboost", "XGB poisson"), [0, 1, 2], [3])
    assert written(problem, trees_of(problem)).previous is None


KINDS = ("beside", "class beside", "net into trees", "trees into net", "trees into trees")
SEEDS = range(1, 30) if FULL else range(1, 2)


def problem_of(kind, seed):
    """Two inputs; columns 2 and 3 are outputs."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    X = np.round(rng.uniform(-2.0, 2.0, (80, 2)), 1)
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 0]
    forest = RandomForestRegressor(3, max_depth=2, random_state=seed).fit(X, y)
    classes = RandomForestClassifier(3, max_depth=2, random_state=seed).fit(X, y > 0.0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)).double()
    first, second, read = {
        "beside": (forest, net, [0, 1]),
        "class beside": (classes, net, [0, 1]),
        "net into trees": (net, forest, [2, 1]),
        "trees into net": (forest, net, [2, 1]),
        "trees into trees": (forest, forest, [2, 1]),
    }[kind]
    cost = [0.1, -0.1, 1.0 if "beside" in kind else 0.0, 1.0]
    ends = np.array([2.0, 2.0, np.inf, np.inf])
    problem = dt.Problem(dt.Mip(cost, [[1.0, 1.0, 0.0, 0.0]], -np.inf, 1.0, -ends, ends))
    kind_of_output = "classification" if first is classes else "regression"
    problem.add_predictor(first, [0, 1], [2], output_type=kind_of_output)
    problem.add_predictor(second, read, [3])
    return problem


def best_on_a_grid(problem):
    """An upper bound of the optimum: the predictors' own answers, a hundredth apart and off all cuts."""
    ends = np.linspace(-2.0, 2.0, 401)
    at = np.concatenate([ends, np.arange(-1.95, 2.0, 0.05) + 1e-6])
    Z = np.zeros((at.size**2, 4))
    Z[:, :2] = np.stack(np.meshgrid(at, at), axis=-1).reshape(-1, 2)
    for block in problem.blocks:
        Z[:, block.outputs[0]] = block.decode(block.predictor.predict(Z[:, block.inputs[0]]))
    return float(np.min((Z @ problem.mip.cost)[Z[:, :2].sum(axis=1) <= 1.0]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_points_and_bounds(kind, seed):
    problem = problem_of(kind, seed)
    result = dt.solve(problem, gap=1e-5, log=False)
    best = best_on_a_grid(problem)
    assert dt.check(problem, result.x).within()
    assert result.objective <= best + 1e-4
    assert result.bound_kind == "proven"
    assert result.bound <= min(best, result.objective) + 1e-9
    assert result.objective - result.bound <= 1e-4


def test_the_networks_stay_and_every_point_has_its_cells():
    problem = problem_of("net into trees", 2)
    context = context_of(problem)
    assert may_have_tree_rows(problem)
    given = Reformulated.start(problem, context.once(structure_of).tight_box)
    written = reformulate(given, (TreeRows(context.once(structure_of).loose_rows_box),))
    assert [block.name for block in written.problem.blocks] == [problem.blocks[0].name]
    rng = np.random.default_rng(0)
    for _ in range(50):
        x = np.concatenate([rng.uniform(-2.0, 2.0, 2), [0.0, 0.0]])
        if x.sum() > 1.0:
            continue
        x = problem.predict(x)
        for one in (written, written.for_bounds):
            z = one.lift(x)
            mip = one.problem.mip
            assert np.max(mip.row_violation(z)) <= 1e-6
            assert np.max(mip.bound_violation(z)) <= 1e-9
            assert np.array_equal(one.restrict(z), x)


def test_a_cut_within_the_tolerance_of_a_row_leaves_both_forms_the_same_columns():
    """What bounds are proved of reaches past the cut, points do not."""
    X, y = np.array([[0.0], [0.5], [1.0], [1.0 + 2.0**-20], [2.0]]), np.array([0.0, 1.0, 3.0, 0.0, 5.0])
    tree = DecisionTreeRegressor(random_state=0).fit(X, y)
    assert np.any((tree.tree_.threshold > 1.0) & (tree.tree_.threshold < 1.0 + 1e-6))
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)).double()
    ends = np.array([5.0, np.inf, np.inf])
    problem = dt.Problem(dt.Mip([0.1, 1.0, 1.0], [[1.0, 0.0, 0.0]], -np.inf, 1.0, [0.0, *-ends[1:]], ends))
    problem.add_predictor(tree, [0], [1])
    problem.add_predictor(net, [0], [2])
    context = context_of(problem)
    given = Reformulated.start(problem, context.once(structure_of).tight_box)
    written = reformulate(given, (TreeRows(context.once(structure_of).loose_rows_box),))
    assert written.problem.mip.n_columns == written.for_bounds.problem.mip.n_columns
    assert written.box.lower.size == written.problem.mip.n_columns
    assert dt.solve(problem, time_limit=60.0, log=False).status == "optimal"


def test_a_range_that_nobody_knows_leaves_trees_as_functions():
    """A plain function's output has no bound to cut the tree's input by."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (40, 1))
    forest = RandomForestRegressor(2, max_depth=2, random_state=0).fit(X, X[:, 0] ** 2)
    problem = dt.Problem(dt.Mip([0.1, 0.0, 1.0], lower=[-1.0, -np.inf, -np.inf], upper=[1.0, np.inf, np.inf]))
    problem.add_predictor(lambda X: np.tanh(2.0 * X), [0], [1])
    problem.add_predictor(forest, [1], [2])
    context = context_of(problem)
    given = Reformulated.start(problem, context.once(structure_of).tight_box)
    assert TreeRows(context.once(structure_of).loose_rows_box).apply(given) is None
    result = dt.solve(problem, dt.Auto(effort=1), log=False)
    assert result.x is not None


def test_trees_alone_are_left_to_cells():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (40, 1))
    forest = RandomForestRegressor(2, max_depth=2, random_state=0).fit(X, X[:, 0] ** 2)
    problem = dt.Problem(dt.Mip([0.1, 1.0], lower=[-1.0, -np.inf], upper=[1.0, np.inf]))
    problem.add_predictor(forest, [0], [1])
    assert not may_have_tree_rows(problem)


def test_a_point_at_the_upper_end_of_its_cell_is_put_inside():
    """Where the engine's hair more is another leaf of the first tree, and of the second a far worse one."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200, 2))
    y = X[:, 0] ** 2 + X[:, 1]
    first = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)
    second = DecisionTreeRegressor(max_depth=4, random_state=0).fit(y[:, None], np.sin(3.0 * y))
    leaves = np.unique(first.tree_.value[first.tree_.children_left < 0])
    problem = dt.Problem(dt.Mip([0.0, 0.0, 0.1, 1.0], lower=[-1, -1, -9, -9], upper=[1, 1, 9, 9]))
    problem.add_predictor(first, [0, 1], [2])
    problem.add_predictor(second, [2], [3])
    result = dt.solve(problem, log=False)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(np.min(0.1 * leaves + second.predict(leaves[:, None])))


def test_a_tree_without_a_split_is_a_number():
    problem = dt.Problem(dt.Mip([1.0, 0.0, 1.0], lower=[-1.0, -np.inf, -np.inf], upper=[1.0, np.inf, np.inf]))
    problem.add_predictor(torch.nn.Linear(1, 1).double(), [0], [1])
    problem.add_predictor(DecisionTreeRegressor().fit([[0.0], [1.0]], [2.5, 2.5]), [1], [2])
    assert dt.solve(problem, time_limit=20.0, log=False).objective == pytest.approx(1.5)
