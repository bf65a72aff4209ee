"""Blocks on their way to other processes: without samples and clocks, with the same answers."""

import pickle

import numpy as np

from dovetail.decomposition.hiring import travelling
from dovetail.run.budget import Budget
from dovetail.run.guard import Guard
from tests.structure.test_templates import treated


def test_a_block_of_a_solve_can_be_pickled_and_says_the_same():
    guarded = Guard(Budget()).guarded(treated(30)).blocks[0]
    letter = pickle.dumps(travelling(guarded))
    there = pickle.loads(letter)
    X = np.random.default_rng(0).standard_normal((9, 3))
    assert np.array_equal(there.predictor.predict(X), guarded.predictor.predict(X))
    assert len(there.description.layers()) == len(guarded.description.layers())
    assert (there.classifies, there.threshold) == (guarded.classifies, guarded.threshold)
    assert there.samples == 0
    assert len(letter) < 2 * len(pickle.dumps(travelling(treated(2).blocks[0])))
