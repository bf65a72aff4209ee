"""The least value of linear functions over boxes with one row, against scipy's LPs."""

import numpy as np
import pytest
from scipy.optimize import linprog

from dovetail.certificates.checker.region import Region


@pytest.mark.parametrize("seed", range(20))
def test_least_is_the_lps(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7))
    lower = rng.normal(size=(3, d))
    upper = lower + rng.uniform(0, 2, (3, d))
    row = rng.normal(size=d) * (rng.random(d) < 0.8)
    side = float(np.where(row > 0, row * lower, row * upper).sum(1).max() + rng.uniform(0, 2))
    slopes, offset = rng.normal(size=(3, 4, d)), rng.normal(size=(3, 4))
    least = float(np.where(row > 0, row * upper, row * lower).sum(1).min() - rng.uniform(0, 2))
    least = least if seed % 2 else -np.inf
    if least > side:
        least = side  # an equation
    found = Region(lower, upper, row, side, least).least(slopes, offset)
    for k in range(3):
        for s in range(4):
            bounds = list(zip(lower[k], upper[k], strict=True))
            rows, sides = (row[None], [side]) if seed % 2 == 0 else (np.array([row, -row]), [side, -least])
            true = linprog(slopes[k, s], rows, sides, bounds=bounds).fun + offset[k, s]
            assert found[k, s] <= true + 1e-12
            assert found[k, s] >= true - 1e-8


def test_what_costs_nothing_leaves_the_row_to_others():
    """Slopes of exactly 0, on either side of a row that the others would break."""
    lower, upper = np.zeros((1, 4)), np.full((1, 4), 2.0)
    row, slopes = np.array([1.0, 1.0, -1.0, 0.0]), np.array([[[-1.0, 0.0, 0.0, 1.0]]])
    found = Region(lower, upper, row, -1.0).least(slopes, np.zeros((1, 1)))
    assert found[0, 0] == pytest.approx(-1.0, abs=1e-9)
    assert found[0, 0] <= -1.0


def test_without_a_row_it_is_a_corner():
    region = Region(np.array([[-1.0, 0.0]]), np.array([[2.0, 3.0]]))
    assert region.least(np.array([[[1.0, -2.0]]]), np.array([[0.5]])) == pytest.approx(-6.5)
