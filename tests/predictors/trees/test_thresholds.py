"""The largest float64 that goes left, found by asking."""

import numpy as np

from dovetail.predictors.trees.assembly import float32_at_most, float32_below, largest_going_left


def test_it_is_the_last_number_answered_with_yes():
    rng = np.random.default_rng(0)
    cuts = np.concatenate(
        [rng.normal(size=200) * 10.0 ** rng.integers(-40, 38, 200), [0.0, -0.0, 1.0, -1.0, 0.1]]
    )
    for found, goes_left in (
        (float32_at_most(cuts), lambda x: x.astype(np.float32) <= cuts),
        (float32_below(cuts), lambda x: x.astype(np.float32) < cuts),
        (largest_going_left(lambda x: x <= cuts, cuts.size), lambda x: x <= cuts),
    ):
        with np.errstate(over="ignore"):
            assert np.all(goes_left(found))
            assert not np.any(goes_left(np.nextafter(found, np.inf)))
    assert np.array_equal(largest_going_left(lambda x: x <= cuts, cuts.size), cuts)


def test_the_plain_comparison_would_be_wrong():
    """What the cast rounds to the threshold goes left as well."""
    assert float32_at_most(np.array([1.0]))[0] > 1.0
    assert float32_below(np.array([1.0]))[0] < np.nextafter(1.0, 0.0)


def test_questions_that_have_one_answer_only():
    assert np.isneginf(largest_going_left(lambda x: np.zeros(x.size, dtype=bool), 1)[0])
    assert np.isposinf(largest_going_left(lambda x: np.ones(x.size, dtype=bool), 1)[0])
