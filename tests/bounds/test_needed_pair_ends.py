"""Pairs of columns that make up for each other get bounds, and no problem loses its optimum by it."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from dovetail.bounds.box import needed_pair_ends

INF = np.inf


def bounded(A, low, high, cost, lower, upper):
    lower, upper = np.array(lower, dtype=float), np.array(upper, dtype=float)
    sides = np.array(low, dtype=float), np.array(high, dtype=float)
    free = np.ones(lower.size, dtype=bool)
    made = needed_pair_ends(sp.csr_array(np.array(A)), sides, np.array(cost), free, lower, upper)
    return made, lower, upper


def test_the_parts_of_a_difference_are_as_large_as_the_difference():
    """x - w = p - q with x and w from 0 to 1, 2: p is 1 at most and q is 2."""
    made, _, upper = bounded(
        [[1.0, -1.0, -1.0, 1.0], [0.0, 0.0, 1.0, 1.0]], [0.0, -INF], [0.0, 9.0], [0.0, 0.0, 1.0, 1.0],
        [0.0] * 4, [1.0, 2.0, INF, INF],
    )  # fmt: skip
    assert made and upper[2:].tolist() == pytest.approx([1.0, 2.0], abs=1e-6)


@pytest.mark.parametrize(
    ("cost", "second", "sides"),
    [
        ([0.0, 0.0, 1.0, -2.0], [0.0, 0.0, 1.0, 1.0], (-INF, 9.0)),  # more of both earns something
        ([0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0], (3.0, INF)),  # a row asks for more of both
        ([0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 2.0], (-9.0, 9.0)),
    ],
)
def test_parts_of_which_more_may_be_better_stay_without_an_end(cost, second, sides):
    made, _, _ = bounded(
        [[1.0, -1.0, -1.0, 1.0], second], [0.0, sides[0]], [0.0, sides[1]], cost, [0.0] * 4,
        [1.0, 2.0, INF, INF],
    )  # fmt: skip
    assert not made


@pytest.mark.parametrize("seed", range(60))
def test_a_linear_program_keeps_its_optimum(seed):
    rng = np.random.default_rng(seed)
    pairs, n = 2, 7
    lower, upper = np.r_[rng.uniform(-2, 0, 3), rng.uniform(-1, 1, 4)], np.r_[rng.uniform(0, 2, 3), [INF] * 4]
    turned = np.flatnonzero(rng.random(n) < 0.3)
    turned = turned[turned >= 3]
    lower[turned], upper[turned] = -INF, rng.uniform(-1, 1, turned.size)
    A = np.zeros((pairs + 2, n))
    A[:pairs, :3] = rng.normal(size=(pairs, 3))
    A[0, 3:5], A[1, 5:7] = rng.choice([-2.0, -1.0, 1.0, 0.5], (2, 2))
    A[pairs:] = rng.choice([-1.0, 0.0, 1.0, 2.0], (2, n))
    low = np.r_[rng.normal(size=pairs), -INF, -INF]
    high = np.r_[low[:pairs], rng.uniform(0, 4, 2)]
    cost = rng.choice([-1.0, 0.0, 0.5, 1.0], n)
    _, new_lower, new_upper = bounded(A, low, high, cost, lower, upper)

    def value(lower, upper):
        found = linprog(
            cost, A[pairs:], high[pairs:], A[:pairs], high[:pairs], np.c_[lower, upper], method="highs"
        )
        return found.status, found.fun

    before, after = value(lower, upper), value(new_lower, new_upper)
    if before[0] == 0:
        assert after[0] == 0 and after[1] == pytest.approx(before[1], abs=1e-6)
    if before[0] == 2:
        assert after[0] == 2
