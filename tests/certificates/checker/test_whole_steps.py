"""The next objective that is possible, against all that are."""

import itertools
import math

import numpy as np
import pytest

from dovetail.certificates.checker.verification import next_whole


@pytest.mark.parametrize("seed", range(8))
def test_the_next_one_is_the_least_at_or_above(seed):
    rng = np.random.default_rng(seed)
    cost = rng.choice([1.0, 2.0, -3.0, 0.5, 0.75, 0.0], size=3)
    cost[0], offset = 0.25, float(rng.choice([0.0, 0.125, -7.375]))
    possible = sorted({offset + float(np.dot(cost, x)) for x in itertools.product(range(-6, 7), repeat=3)})
    middle = [one for one in possible if abs(one - offset) < 2.0]
    for value in (*rng.uniform(offset - 1.5, offset + 1.5, 20).tolist(), *middle):
        found = next_whole(value, cost, offset, np.ones(3, dtype=bool))
        least = min(one for one in possible if one >= value - 1e-12)
        assert value <= found <= least + 1e-12
        assert found <= next(one for one in possible if one >= value)


def test_no_steps_without_whole_columns_alone():
    cost, whole = np.array([1.0, 0.5]), np.array([True, False])
    assert next_whole(0.3, cost, 0.0, whole) == 0.3
    assert next_whole(0.3, np.array([1.0, 0.0]), 0.0, whole) == math.nextafter(1.0, 0.0)
    assert next_whole(0.3, np.zeros(2), 0.0, whole) == 0.3
    assert next_whole(-math.inf, cost, 0.0, whole) == -math.inf
