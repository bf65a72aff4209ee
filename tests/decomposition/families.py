"""Problems of many equal blocks: with whole numbers and a worth each; with two networks and a floor."""

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

import dovetail as dt


def network(d: int, seed: int, hidden: int = 8) -> nn.Module:
    """A float64 network with values that differ."""
    torch.manual_seed(seed)
    made = nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, 1)).double()
    with torch.no_grad():
        made[2].weight *= 4.0
    return made


def offers(
    n: int, seed: int = 0, *, sides: tuple[float, float] = (-np.inf, 0.3), continuous: bool = False
) -> dt.Problem:
    """Columns f (fixed), d in {0, ..., 3}, t in {0, 1} or [0, 1], y; sum of d / 4 + t within sides n."""
    rng = np.random.default_rng(seed)
    columns = np.arange(4 * n).reshape(n, 4)
    feature = rng.standard_normal((n, 1))
    cost = np.zeros((n, 4))
    cost[:, 3] = rng.uniform(0.5, 2.0, n)
    row = sp.csr_array(
        (np.repeat([0.25, 1.0], n), (np.zeros(2 * n, dtype=int), columns[:, 1:3].T.ravel())), shape=(1, 4 * n)
    )
    mip = dt.Mip(
        cost.ravel(),
        row,
        [sides[0] * n],
        [sides[1] * n],
        np.concatenate([feature, np.zeros((n, 2)), np.full((n, 1), -99.0)], axis=1).ravel(),
        np.concatenate(
            [feature, np.full((n, 1), 3.0), np.ones((n, 1)), np.full((n, 1), 99.0)], axis=1
        ).ravel(),
        np.tile([False, True, not continuous, False], n),
        sense="max",
    )
    problem = dt.Problem(mip)
    problem.add_predictor(network(3, 3), columns[:, :3], columns[:, 3:])
    return problem


def blends(n: int, seed: int = 0) -> dt.Problem:
    """Columns x0, x1, x2 in [-1, 1], quality, yield: quality has a floor of its own, sums of x a limit."""
    rng = np.random.default_rng(seed)
    columns = np.arange(5 * n).reshape(n, 5)
    quality, profit = network(3, 11), network(3, 12)
    with torch.no_grad():
        floor = float(quality(torch.as_tensor(rng.uniform(-1, 1, (500, 3)))).quantile(0.5))
    rows = np.concatenate([np.arange(n), np.repeat(n + np.arange(3), n)])
    touched = np.concatenate([columns[:, 3], columns[:, :3].T.ravel()])
    mip = dt.Mip(
        np.tile([0.0, 0.0, 0.0, 0.0, 1.0], n) * np.repeat(rng.uniform(0.5, 2.0, n), 5),
        sp.csr_array((np.ones(len(rows)), (rows, touched)), shape=(n + 3, 5 * n)),
        np.concatenate([np.full(n, floor), np.full(3, -np.inf)]),
        np.concatenate([np.full(n, np.inf), np.full(3, -0.1 * n)]),
        np.tile([-1.0, -1.0, -1.0, -99.0, -99.0], n),
        np.tile([1.0, 1.0, 1.0, 99.0, 99.0], n),
        sense="max",
    )
    problem = dt.Problem(mip)
    problem.add_predictor(quality, columns[:, :3], columns[:, 3:4])
    problem.add_predictor(profit, columns[:, :3], columns[:, 4:5])
    return problem


def sales(n: int, seed: int = 0) -> dt.Problem:
    """Columns effort in [0, 1], sold, paid: what is paid is a price of the block's own times what is sold."""
    rng = np.random.default_rng(seed)
    columns = np.arange(3 * n).reshape(n, 3)
    rows = np.concatenate([np.repeat(np.arange(n), 2), np.full(n, n)])
    touched = np.concatenate([columns[:, 1:].ravel(), columns[:, 0]])
    entries = np.concatenate([np.stack([-rng.uniform(1.0, 3.0, n), np.ones(n)], axis=1).ravel(), np.ones(n)])
    mip = dt.Mip(
        np.tile([-0.1, 0.0, 1.0], n),
        sp.csr_array((entries, (rows, touched)), shape=(n + 1, 3 * n)),
        np.append(np.zeros(n), -np.inf),
        np.append(np.zeros(n), 0.4 * n),
        np.tile([0.0, -99.0, -999.0], n),
        np.tile([1.0, 99.0, 999.0], n),
        sense="max",
    )
    problem = dt.Problem(mip)
    problem.add_predictor(network(1, 21), columns[:, :1], columns[:, 1:2])
    return problem


def judged(n: int, seed: int = 3) -> dt.Problem:
    """Samples of class 0 with inputs x = w + up - down near w: as many of class 1 as six budgets allow.

    Bounds of x are conditions on moves, so that every block has several conditions.
    """
    torch.manual_seed(seed)
    d, rng = 3, np.random.default_rng(seed)
    layers = [layer for _ in range(4) for layer in (nn.Linear(32, 32), nn.ReLU())]
    made = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), *layers, nn.Linear(32, 1)).double()
    drawn = rng.normal(size=(200, d))
    with torch.no_grad():
        made[-1].bias -= made(torch.as_tensor(drawn)).quantile(0.6)
        samples = drawn[made(torch.as_tensor(drawn))[:, 0].numpy() < 0.0][:n]
    problem = dt.Problem(sense="max")
    template = problem.add_template(
        n,
        {
            "class": dt.Family(upper=1.0, cost=1.0, integer=True),
            "x": dt.Family(samples - 1.5, samples + 1.5),
            "up": dt.Family(upper=2.0, width=d),
            "down": dt.Family(upper=2.0, width=d),
        },
        rows=[dt.FamilyRow({"x": 1.0, "up": -1.0, "down": 1.0}, samples, samples)],
        coupling=[dt.FamilyRow({side: 1.0}, upper=2.0, name=side) for side in ("up", "down")],
    )
    problem.add_predictor(made, template["x"], template["class"], output_type="classification")
    return problem
