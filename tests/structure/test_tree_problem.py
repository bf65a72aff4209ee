"""Cells, leaf boxes and problems in cells, against the trees themselves."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.core.sparse import joined_ranges
from dovetail.structure.trees import InputCells, in_cells
from tests.predictors.trees import models
from tests.tree_problems import random_problem


def trees_of(problem):
    return in_cells(
        problem, {block.name: block.description.trees() for block in problem.blocks}, propagate(problem.mip)
    )


def test_whole_cells_are_closed_and_others_open_below():
    cells = InputCells.of(
        np.array([4, 7]),
        [np.array([0.5, 2.0, 9.0]), np.array([0.5, 0.7, 2.0])],
        np.zeros(2),
        np.full(2, 3.0),
        np.array([True, False]),
    )
    assert cells.low.tolist() == [0.0, 1.0, 3.0, 0.0, 0.5, 0.7, 2.0]
    assert cells.high.tolist() == [0.0, 2.0, 3.0, 0.5, 0.7, 2.0, 3.0]
    assert np.all(cells.inner[4:] > cells.low[4:]) and np.all(cells.inner[4:] < cells.low[4:] + 1e-6)
    assert cells.inner[:4].tolist() == cells.low[:4].tolist()
    assert cells.cuts == 5
    x = np.zeros(9)
    x[4], x[7] = 2.0, np.nextafter(0.5, 1.0)
    assert cells.of_point(x).tolist() == [1, 1]


@pytest.mark.parametrize("seed", range(8))
def test_a_cell_says_what_the_predictor_says_anywhere_in_it(seed):
    problem = random_problem(seed)
    trees, rng = trees_of(problem), np.random.default_rng(seed)
    close = 1e-12 if problem.blocks[0].description.trees().dtype == "float64" else 1e-6
    for _ in range(20):
        cells = rng.integers(trees.cells.counts)
        flat, x = trees.cells.flat(cells), np.zeros(problem.mip.n_columns)
        for at in (trees.cells.inner[flat], trees.cells.high[flat]):
            x[trees.cells.columns] = at
            assert np.array_equal(trees.cells.of_point(x), cells)
            truth = problem.predict(x)[problem.outputs]
            assert np.allclose(trees.outputs_at(cells)[problem.outputs], truth, rtol=close, atol=close)


@pytest.mark.parametrize("seed", range(4))
def test_reachable_leaves_are_those_of_the_points_inside(seed):
    trees, rng = trees_of(random_problem(seed)), np.random.default_rng(seed)
    for sample in trees.samples:
        one, other = rng.integers(trees.cells.counts, size=(2, trees.cells.columns.size))
        low, high = np.minimum(one, other), np.maximum(one, other)
        reach = sample.boxes.reachable(low[None], high[None])[0]
        met = np.zeros(sample.boxes.leaves, dtype=bool)
        for _ in range(100):
            active = sample.boxes.active(rng.integers(low, high + 1))
            assert np.all(reach[active])
            met[active] = True
        demands = joined_ranges(*sample.boxes.demands_from(np.flatnonzero(reach)))
        place = sample.boxes.column[demands]
        assert np.all((sample.boxes.low[demands] <= high[place]) & (sample.boxes.high[demands] >= low[place]))
        assert met.sum() > 0


def test_ranges_of_outputs_hold_what_the_live_predictor_says():
    """Of float32 sums too: the least leaf of every tree, added up in the library's own order."""
    rng = np.random.default_rng(0)
    for library, name in (("xgboost", "XGBRegressor"), ("xgboost", "XGB dart"), ("lightgbm", "LGBM poisson")):
        problem = dt.Problem(dt.Mip(np.zeros(4), lower=-3.0, upper=[3.0] * 3 + [np.inf]))
        problem.add_predictor(models.model(library, name), [0, 1, 2], [3])
        trees = trees_of(problem)
        (sample,) = trees.samples
        for _ in range(20):
            cells = rng.integers(trees.cells.counts)
            scores = sample.boxes.scores(cells)
            least, most = sample.decoded_range(scores, scores)
            said = problem.blocks[0].predictor.predict(sample.boxes.row(cells)[None])[0]
            assert np.all((least <= said) & (said <= most))
