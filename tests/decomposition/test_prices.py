"""Prices against the LP over the same columns."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from dovetail.decomposition import prices as module
from dovetail.decomposition.prices import best_prices, exact_value, smoothed


class Columns:
    """What prices look at: costs and uses."""

    def __init__(self, n: int, places: int, rows: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.use = torch.as_tensor(rng.random((n, places, rows)))
        self.use[:, 0] = 0.0
        self.cost = torch.as_tensor(-rng.random((n, places)))
        self.cost[:, 0] = 0.0
        self.cost[n // 2, 2:] = torch.inf

    def priced(self, price):
        return self.cost + self.use @ price


def lp(pool: Columns, limit: np.ndarray) -> float:
    n, places, rows = pool.use.shape
    known = torch.isfinite(pool.cost).ravel().numpy()
    one_each = np.kron(np.eye(n), np.ones(places))[:, known]
    answer = linprog(
        pool.cost.numpy().ravel()[known],
        A_ub=pool.use.numpy().reshape(-1, rows).T[:, known],
        b_ub=limit,
        A_eq=one_each,
        b_eq=np.ones(n),
    )
    return answer.fun


@pytest.mark.parametrize("many_rows", [False, True])
@pytest.mark.parametrize("first", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_dual_s_value_is_the_linear_program_s(seed, first, many_rows, monkeypatch):
    """Never above it (weak duality), and hardly below it; by Newton and by first order."""
    if many_rows:
        monkeypatch.setattr(module, "MANY_ROWS", 0)
    pool, limit, start = Columns(120, 5, 4, seed), np.full(4, 15.0), np.full(4, first)
    found = best_prices(
        lambda p, tau, second: smoothed(pool, p, tau, second=second), limit, start, 1.0, np.ones(4)
    )
    assert np.all(found >= 0.0)
    value = exact_value(pool, torch.as_tensor(found).numpy()) - found @ limit
    truth = lp(pool, limit)
    assert value <= truth + 1e-9
    assert value >= truth - 0.01 * abs(truth)


def test_derivatives_of_the_smoothed_sum():
    pool, at = Columns(30, 4, 3, 0), np.array([0.3, 0.1, 0.7])
    here = smoothed(pool, at, 0.05, second=True)
    for j in range(3):
        step = np.eye(3)[j] * 1e-5
        above = smoothed(pool, at + step, 0.05, second=True)
        below = smoothed(pool, at - step, 0.05, second=True)
        assert (above.value - below.value) / 2e-5 == pytest.approx(here.use[j], rel=1e-5)
        assert -(above.use - below.use) / 2e-5 == pytest.approx(here.spread[j], rel=1e-4, abs=1e-6)
