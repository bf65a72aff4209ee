"""A class that takes two moves is turned where its price asks for it."""

import numpy as np

import dovetail as dt
from dovetail.methods.cell_descent.descent import MoveDescent, MoveProfile, turned
from dovetail.run.budget import Budget
from tests.structure.test_tree_problem import trees_of


def both_are_large():
    """Class 1 where both inputs are above 5: no single move from (0, 0) brings it."""
    from sklearn.ensemble import RandomForestClassifier

    X = np.stack(np.meshgrid(np.arange(11.0), np.arange(11.0)), axis=-1).reshape(-1, 2)
    score = (X > 5.0).sum(axis=1)
    few = {"max_depth": 1, "max_features": 1, "random_state": 0, "bootstrap": False}
    model = RandomForestClassifier(8, **few).fit(X, score == 2)
    mip = dt.Mip([0.1, 0.1, -5.0], upper=[10.0, 10.0, 1.0], integer=[False, False, True])
    problem = dt.Problem(mip)
    problem.add_predictor(model, [0, 1], [2], output_type="classification", threshold=0.45)
    return problem


def test_several_moves_of_a_sample_turn_its_class():
    problem = both_are_large()
    trees = trees_of(problem)
    descent, (sample,) = MoveDescent(trees, seed=0, threads=1), trees.samples
    at = descent.point(np.zeros(2, dtype=np.int64), Budget(10.0))
    assert at.outputs[2] == 0.0
    found = turned(trees, sample, MoveProfile(sample.boxes, trees.cells), at)
    assert found is not None and np.all(found[1] > 0)
    assert trees.outputs_at(found[1])[2] == 1.0
    best = descent.descend(np.zeros(2, dtype=np.int64), Budget(10.0))
    assert best.value < -3.0


def test_a_class_that_is_as_wanted_stays():
    problem = both_are_large()
    trees = trees_of(problem)
    descent, (sample,) = MoveDescent(trees, seed=0, threads=1), trees.samples
    at = descent.point(trees.cells.counts - 1, Budget(10.0))
    assert at.outputs[2] == 1.0
    assert turned(trees, sample, MoveProfile(sample.boxes, trees.cells), at) is None
