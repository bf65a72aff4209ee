"""Leaves and cells that are ruled out by the bounds of an output: every cell of small boxes is asked."""

import itertools

import numpy as np
import pytest
import xgboost
from sklearn.ensemble import RandomForestRegressor

import dovetail as dt
from dovetail.bounds.box import Box
from dovetail.branching.tree_ensembles import LeafBounds
from dovetail.structure.trees import in_cells
from tests.conftest import FULL


def in_small_cells(model, seed):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(80, 3)), 1)
    model.fit(X, np.round(X @ rng.normal(size=3) + np.sin(3.0 * X[:, 0]), 2))
    problem = dt.Problem(dt.Mip(np.ones(4), lower=[-3.0] * 3 + [-99.0], upper=[3.0] * 3 + [99.0]))
    block = problem.add_predictor(model, [0, 1, 2], [3])
    return in_cells(
        problem, {block.name: block.description.trees()}, Box(problem.mip.lower, problem.mip.upper)
    )


@pytest.mark.parametrize(
    "model",
    [
        RandomForestRegressor(4, max_depth=3, random_state=0),
        xgboost.XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1),
    ],
)
def test_no_cell_is_lost_whose_output_is_within_the_bounds(model):
    lost_leaves = lost_cells = emptied = inside = 0
    seeds = range(12 if FULL else 4)
    for seed in seeds:
        trees = in_small_cells(model, seed)
        (sample,), counts = trees.samples, trees.cells.counts
        rng, bounds = np.random.default_rng(seed), LeafBounds(trees.samples[0])
        low = np.array([rng.integers(0, max(1, count - 4)) for count in counts])
        high = np.minimum(low + 4, counts - 1)
        reach = sample.boxes.reachable(low[None], high[None])
        cells = [np.array(at) for at in itertools.product(*map(range, low, high + 1))]
        said = np.array(
            [trees.problem.blocks[0].predictor.predict(sample.boxes.row(at)[None])[0, 0] for at in cells]
        )
        for least, most in ((np.quantile(said, 0.9), 99.0), (-99.0, np.quantile(said, 0.1)), (90.0, 99.0)):
            left, begin, end = bounds.left(
                reach, low[None], high[None], np.array([[least]]), np.array([[most]])
            )
            lost_leaves += int(reach.sum() - left.sum())
            lost_cells += int((high - low).sum() - (end - begin).sum())
            emptied += bool(np.any(begin > end))
            for at, value in zip(cells, said, strict=True):
                if least <= value <= most:
                    inside += 1
                    assert np.all(left[0, sample.boxes.active(at)])
                    assert np.all((begin[0] <= at) & (at <= end[0]))
    assert min(lost_leaves, lost_cells, inside) > 10 and emptied >= len(seeds)


def test_classes_are_left_alone():
    from sklearn.ensemble import RandomForestClassifier

    X = np.arange(12.0)[:, None]
    model = RandomForestClassifier(2, max_depth=1, random_state=3).fit(X, X[:, 0] > 5.5)
    problem = dt.Problem(dt.Mip([0.1, -1.0], lower=[0.0, 0.0], upper=[11.0, 1.0]))
    block = problem.add_predictor(model, [0], [1], output_type="classification")
    trees = in_cells(
        problem, {block.name: block.description.trees()}, Box(problem.mip.lower, problem.mip.upper)
    )
    assert not LeafBounds(trees.samples[0]).applies
