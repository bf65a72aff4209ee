"""What is excluded has no point, by an LP of scipy's; much of what has none is excluded."""

import numpy as np
import pytest
from scipy.optimize import linprog

import dovetail as dt
from dovetail.run.completion import RepairBounds


@pytest.mark.parametrize("seed", range(40))
def test_what_is_excluded_has_no_point(seed):
    rng = np.random.default_rng(seed)
    n, m = 6, 5
    A = rng.choice([0.0, 0.0, 1.0, -1.0, 2.5], (m, n))
    lower, upper = np.where(rng.random(n) < 0.3, -np.inf, -rng.random(n)), rng.random(n)
    upper[rng.random(n) < 0.3] = np.inf
    row_lower = np.where(rng.random(m) < 0.4, -np.inf, rng.normal(size=m))
    row_upper = np.where(
        np.isfinite(row_lower) & (rng.random(m) < 0.5), row_lower, row_lower.clip(-1.0) + 2.0
    )
    mip = dt.Mip(np.zeros(n), A, row_lower, row_upper, lower, upper)
    kept, x = rng.random(n) < 0.5, rng.normal(size=n)
    excluded = RepairBounds(mip, kept).exclude(x)
    low, high = np.where(kept, x, lower), np.where(kept, x, upper)
    sides = np.concatenate([row_upper, -row_lower])
    known = np.isfinite(sides)
    answer = linprog(
        np.zeros(n), np.vstack([A, -A])[known], sides[known], bounds=np.stack([low, high], axis=1)
    )
    assert not (excluded and answer.status == 0)


def test_amounts_that_equations_ask_for():
    """x - up + down = w with x given: what it takes to be there is more than there is."""
    mip = dt.Mip(
        np.zeros(3), [[1.0, -1.0, 1.0], [0.0, 1.0, 0.0]], [2.0, -np.inf], [2.0, 0.5], [-9.0, 0.0, 0.0],
        [9.0, np.inf, np.inf],
    )  # fmt: skip
    bounds = RepairBounds(mip, np.array([True, False, False]))
    assert bounds.exclude(np.array([2.6, 0.0, 0.0]))
    assert not bounds.exclude(np.array([2.4, 0.0, 0.0]))
    assert not bounds.exclude(np.array([1.0, 0.0, 0.0]))
