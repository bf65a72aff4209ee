"""What reduced costs leave out of a box holds nothing better: scipy's LP over it says so."""

import numpy as np
from scipy.optimize import linprog

from dovetail.branching.host import host_rows
from dovetail.branching.model import Model
from dovetail.branching.tree import by_prices
from dovetail.core.mip import Mip
from tests.conftest import FULL


def test_what_is_left_out_costs_more():
    left_out = 0
    for seed in range(40 if FULL else 12):
        rng = np.random.default_rng(seed)
        n, rows = 5, 3
        A, cost = rng.normal(size=(rows, n)), rng.normal(size=n)
        side = A @ rng.uniform(-1.0, 1.0, n) + 0.3
        whole = rng.random(n) < 0.3
        mip = Mip(cost, A, -np.inf, side, np.full(n, -2.0), np.full(n, 2.0), whole)
        answer = linprog(cost, A, side, bounds=np.column_stack([mip.lower, mip.upper]))
        reduced, room = cost - answer.ineqlin.marginals @ A, rng.uniform(0.0, 2.0)
        model = Model(host_rows(mip, 0, [], np.empty(0, np.int64)), (), mip.lower.copy(), mip.upper.copy(), n)
        lower, upper = mip.lower.copy(), mip.upper.copy()
        by_prices(model, lower, upper, room, reduced)
        for k in range(n):
            next_one = 1.0 if whole[k] else 0.0
            for low, high in ((-2.0, lower[k] - next_one), (upper[k] + next_one, 2.0)):
                if low >= high:
                    continue
                left_out += 1
                bounds = np.column_stack([mip.lower, mip.upper])
                bounds[k] = low, high
                best = linprog(cost, A, side, bounds=bounds)
                assert best.status == 2 or best.fun >= answer.fun + room - 1e-6, (seed, k)
    assert left_out > 10
