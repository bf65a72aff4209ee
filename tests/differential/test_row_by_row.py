"""Networks in float32: a point that is returned holds for samples evaluated one by one, or the result says.

Random problems with outputs around 1, 100, 10,000 and 1,000,000, rows and bounds that bite, sums over
samples, equalities, chains of two networks and classes with and without a margin. The judge is the user's own
module: all samples at once, alone, in two halves, and with two threads.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from tests.conftest import FULL

SIZES = (1.0, 1e2, 1e4, 1e6)
SEEDS = range(80) if FULL else (1,)
HAIR = 1e-9


def network(rng, features, outputs, size):
    """A ReLU network in float32 whose outputs are about `size`, on an offset of the same size."""
    torch.manual_seed(int(rng.integers(1 << 30)))
    width = int(rng.integers(8, 33))
    hidden = [nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    net = nn.Sequential(*hidden, nn.Linear(width, outputs))
    with torch.no_grad():
        net[-1].weight.mul_(3.0 * size)
        net[-1].bias.mul_(size)
    return net


def regression(seed, size):
    """n samples of two to four reals in [-1, 1]; outputs limited one by one, in sum and perhaps exactly."""
    rng = np.random.default_rng((seed, int(size)))
    n, d = int(rng.integers(1, 7)), int(rng.integers(2, 5))
    net = network(rng, d, 1, size)
    inputs = np.arange(n * d).reshape(n, d)
    outputs, slack = n * d + np.arange(n), n * d + n
    columns = slack + 1
    with torch.no_grad():
        typical = net(torch.rand(400, d) * 2 - 1).double().numpy()[:, 0]
    low, high = np.quantile(typical, [0.4, 0.7])
    A = np.zeros((3, columns))
    A[0, outputs] = 1.0  # the sum
    A[1, [outputs[0], outputs[-1]]] += [1.0, -1.0]
    A[2, [outputs[0], slack]] = [1.0, -1.0]  # a column that must be equal to an output
    exactly = rng.random() < 0.3
    lower, upper = np.full(columns, -1.0), np.full(columns, 1.0)
    lower[outputs], upper[outputs] = low if rng.random() < 0.5 else -np.inf, high
    lower[slack], upper[slack] = -np.inf, np.inf
    gap = size * rng.uniform(0.0, 0.2)
    mip = dt.Mip(
        cost=np.concatenate([rng.normal(size=n * d), rng.normal(size=n) / size, [0.0]]),
        A=A,
        row_lower=[-np.inf, -gap, 0.0 if exactly else -np.inf],
        row_upper=[n * (low + high) / 2, gap, 0.0 if exactly else np.inf],
        lower=lower,
        upper=upper,
    )
    problem = dt.Problem(mip)
    problem.add_predictor(net, inputs, outputs[:, None], name="net")
    return problem


def chained(seed, size):
    """The output of one network goes into another, whose output is limited."""
    rng = np.random.default_rng((seed, int(size), 1))
    n = int(rng.integers(1, 5))
    first, second = network(rng, 2, 1, 1.0), network(rng, 2, 1, size)
    inputs = np.arange(2 * n).reshape(n, 2)
    middle, last = 2 * n + np.arange(n), 3 * n + np.arange(n)
    free = np.full(n, np.inf)
    mip = dt.Mip(
        cost=np.concatenate([rng.normal(size=2 * n), np.zeros(n), rng.normal(size=n) / size]),
        A=np.concatenate([np.zeros(3 * n), np.ones(n)])[None],
        row_lower=-np.inf,
        row_upper=0.2 * n * size,
        lower=np.concatenate([np.full(2 * n, -1.0), -free, -free]),
        upper=np.concatenate([np.full(2 * n, 1.0), free, np.full(n, 0.3 * size)]),
    )
    problem = dt.Problem(mip)
    problem.add_predictor(first, inputs, middle[:, None], name="first")
    problem.add_predictor(second, np.column_stack([middle, inputs[:, 0]]), last[:, None], name="second")
    return problem


def classes(seed, size):
    """As many samples of class 1 as can be had, each at its least distance from where it began."""
    rng = np.random.default_rng((seed, int(size), 2))
    n, k = int(rng.integers(1, 6)), int(rng.choice([1, 3]))
    net = network(rng, 2, k, size)
    inputs = np.arange(2 * n).reshape(n, 2)
    outputs = 2 * n + np.arange(n * k).reshape(n, k)
    wanted = np.zeros((n, k))
    wanted[:, 0] = -3.0
    columns = 2 * n + n * k
    mip = dt.Mip(
        cost=np.concatenate([rng.normal(size=2 * n), wanted.ravel()]),
        lower=np.concatenate([np.full(2 * n, -1.0), np.zeros(n * k)]),
        upper=np.ones(columns),
        integer=np.arange(columns) >= 2 * n,
    )
    problem = dt.Problem(mip)
    epsilon = (0.0, 1e-4)[(seed + SIZES.index(size)) % 2]
    options = {"output_type": "classification", "epsilon": epsilon, "name": "class"}
    problem.add_predictor(net, inputs, outputs, **options)
    return problem


def batches(n):
    """The ways to cut n samples that are tried."""
    return [[slice(0, n)], [slice(i, i + 1) for i in range(n)], [slice(0, n // 2), slice(n // 2, n)]]


def by_hand(problem, x, route):
    """`x` with its outputs as the modules give them when the samples are cut up like this."""
    x = x.copy()
    for block in problem.blocks:
        net = block.predictor.module
        u = torch.tensor(x[block.inputs], dtype=torch.float32)
        with torch.no_grad():
            parts = [net(u[part]).double().numpy() for part in batches(len(u))[route] if len(u[part])]
        x[block.outputs] = block.decode(np.concatenate(parts))
    return x


def missed(problem, x):
    """By how much rows, bounds and integers are missed, in numpy."""
    mip = problem.mip
    activity = mip.A @ x
    rows = np.maximum(mip.row_lower - activity, activity - mip.row_upper)
    return max(np.max(rows, initial=0.0), np.max(np.maximum(mip.lower - x, x - mip.upper)))


def judge(problem, result):
    """The worst of all routes, and whether a class is another by one of them."""
    worst, turned = 0.0, False
    threads = torch.get_num_threads()
    for count in (1, 2):
        torch.set_num_threads(count)
        for route in range(3):
            x = by_hand(problem, result.x, route)
            worst = max(worst, missed(problem, x))
            for block in problem.blocks:
                turned |= block.classifies and not np.array_equal(x[block.outputs], result.x[block.outputs])
    torch.set_num_threads(threads)
    return worst, turned


@pytest.mark.parametrize("size", SIZES if FULL else SIZES[::3])
@pytest.mark.parametrize("make", [regression, chained, classes], ids=lambda make: make.__name__)
@pytest.mark.parametrize("seed", SEEDS)
def test_it_holds_row_by_row_or_the_result_says(make, size, seed):
    problem = make(seed, size)
    method = "auto" if FULL and seed % 3 == 0 else dt.Auto(effort=2)
    result = dt.solve(problem, method, time_limit=2.0 if FULL else 0.4, log=False)
    if result.x is None:
        return
    worst, turned = judge(problem, result)
    said = result.violation.rounding.amount
    assert result.violation.within()
    assert worst <= 1e-6 + HAIR or worst <= said + HAIR, f"missed by {worst:.1e}, said {said:.1e}"
    assert not turned or said >= 1.0
    assert (said <= 1e-6) == ("rounding" not in result.message)
