"""Trees as rows: every point of the problem is one of the MIP, and a cell's binaries mean that cell."""

import numpy as np
import pytest

from dovetail.reformulations.reformulated import Reformulated, reformulate
from dovetail.reformulations.tree_splits import TreeSplits, cells_of
from tests.structure.test_tree_problem import trees_of
from tests.tree_problems import random_problem


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
