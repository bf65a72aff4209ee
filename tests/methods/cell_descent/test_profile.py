"""The profile of all single moves is what evaluating each of them gives."""

import numpy as np
import pytest

from dovetail.methods.cell_descent.descent import MoveProfile
from tests.structure.test_tree_problem import trees_of
from tests.tree_problems import random_problem


@pytest.mark.parametrize("seed", range(16))
def test_every_move_has_its_own_scores(seed):
    trees, rng = trees_of(random_problem(seed)), np.random.default_rng(seed)
    for sample in trees.samples:
        profile, cells = MoveProfile(sample.boxes, trees.cells), rng.integers(trees.cells.counts)
        scores = profile.scores(cells)
        assert len(scores) == trees.cells.counts[profile.columns].sum()
        for flat, said in zip(profile.flat, scores, strict=True):
            moved = cells.copy()
            j = int(np.searchsorted(trees.cells.first, flat, side="right")) - 1
            moved[j] = flat - trees.cells.first[j]
            assert np.allclose(said, sample.boxes.scores(moved), rtol=1e-6, atol=1e-6)
