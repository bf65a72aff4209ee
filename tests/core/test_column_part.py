"""Columns part by part: values, limits and costs of hosts and families."""

import numpy as np
import pytest

from dovetail.core.pieces import NUMBERS
from tests.structure.stated_problems import campaign, treatments


def test_parts_are_all_columns_in_their_order():
    for problem in (treatments(5), campaign(5)):
        x = np.arange(float(problem.stated.n_columns))
        parts = problem.stated.columns
        assert np.array_equal(np.concatenate([part.of(x).ravel() for part in parts]), x)
        assert np.shares_memory(parts[-1].of(x), x)


@pytest.mark.parametrize("numbers", [NUMBERS, 2])
def test_the_farthest_column_of_a_part(numbers, monkeypatch):
    monkeypatch.setattr("dovetail.core.pieces.NUMBERS", numbers)
    part = campaign(5).stated.columns[2]  # discount, each block with a limit of its own
    x = np.zeros(campaign(5).stated.n_columns)
    part.of(x)[:, 0] = part.upper[:, 0] - 0.01
    assert part.farthest(x)[0] < 0.0
    part.of(x)[3] += 0.5
    part.of(x)[1] = -0.2
    amount, column = part.farthest(x)
    assert np.isclose(amount, 0.49) and column == part.first + 3
    assert np.isclose(part.outside(x).max(), amount)
    part.of(x)[2] = -0.0
    part.clip(x)
    assert part.farthest(x)[0] <= 0.0
    assert not np.signbit(part.of(x)).any()


def test_a_part_without_limits_is_not_looked_at():
    problem = treatments(5)
    x = np.full(problem.stated.n_columns, 1e30)
    free = next(part for part in problem.stated.columns if np.all(np.isinf(part.upper - part.lower)))
    assert free.farthest(x)[0] == -np.inf
