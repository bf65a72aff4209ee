"""Rows part by part: what they come to, without a matrix."""

import numpy as np
import pytest

from dovetail.core.pieces import NUMBERS
from dovetail.core.stated_program import CHUNK, column_sums
from tests.structure.stated_problems import campaign, floors, treatments


@pytest.mark.parametrize("numbers", [NUMBERS, 4])
def test_each_part_is_its_rows_of_the_matrix(numbers, monkeypatch):
    monkeypatch.setattr("dovetail.core.pieces.NUMBERS", numbers)
    for problem in (treatments(5), campaign(5), floors(5)):
        A, first = problem.mip.A.toarray(), 0
        sides = problem.mip.row_lower, problem.mip.row_upper
        x = np.random.default_rng(0).standard_normal(A.shape[1])
        for part in problem.stated.rows:
            mine, first = A[first : first + part.size], first + part.size
            assert np.allclose(part.activity(x), mine @ x, atol=1e-12)
            assert np.allclose(part.activity(x, sizes=True), np.abs(mine) @ x, atol=1e-12)
            lower, upper = (side[first - part.size : first] for side in sides)
            assert np.allclose(part.beyond(x), np.maximum(lower - mine @ x, mine @ x - upper), atol=1e-12)
            amount, at = part.farthest(x)
            beyond = np.append(part.beyond(x), -np.inf if part.size == 0 else [])
            assert np.isclose(amount, beyond.max()) and np.isclose(amount, beyond[at])
            assert part.nonzeros == np.count_nonzero(mine)
            numbers = {abs(n) for entry in part.entries() for n in entry.ravel().tolist()}
            assert numbers - {0.0} == {abs(n) for n in mine.ravel().tolist()} - {0.0}
        assert first == len(A)


def test_sums_of_many():
    values = np.random.default_rng(1).uniform(0.0, 1.0, (2 * CHUNK + 17, 2))
    assert np.allclose(column_sums(values), values.sum(axis=0), rtol=1e-14)
