"""Forecast: advertise and produce, where a network forecasts sales from the advertising of the last weeks.

    max  sum of price sales_t - cost of advertising, batches and stock
    s.t. sales_t = f(a_(t-w+1), ..., a_t),   a_t in {0, ..., 3},   sum of a_t <= budget
         stock_t = stock_(t-1) + lot b_t - sales_t,   0 <= stock_t <= room,   b_t whole batches

The network reads a window of weeks: a convolution along them, or an LSTM that reads one after the other.
Feasible: without advertising, sales are above 0 and below what can be produced, and producing the fewest
batches that keep the stock above 0 keeps it below one lot.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import dovetail as dt
from dovetail.testing.problems import Convolutional, Recurrent
from dovetail_study.problems.host import Host
from dovetail_study.zoo.learners import by_size, minimise

LEVELS = 3
"""The most advertising of a week."""
LOT, BATCHES = 4.0, 6
"""The size of a batch, and the largest number of batches per week: twice the largest sales."""
ROOM, FIRST = 12.0, 3.0
"""The limit of the stock, and its first value."""


def convolution(size: int, seed: int) -> dt.Problem:
    """Sales by a convolution along the weeks."""
    window = by_size(size, 4, 6, 8)
    torch.manual_seed(seed)
    return _plan(size, seed, window, Convolutional(window, 1, by_size(size, 2, 4, 8)))


def lstm(size: int, seed: int) -> dt.Problem:
    """Sales by an LSTM."""
    torch.manual_seed(seed)
    return _plan(size, seed, by_size(size, 4, 6, 8), Recurrent(1, by_size(size, 4, 8, 16)))


def _plan(size: int, seed: int, window: int, net: nn.Module) -> dt.Problem:
    """The plan for a network that is still to be trained."""
    rng = np.random.default_rng(seed)
    weeks = by_size(size, 3, 8, 20)
    _train(net, window, rng)

    host = Host("max")
    past = rng.integers(0, LEVELS, window - 1)
    level = [host.known(f"advertised[{k - window + 1}]", amount) for k, amount in enumerate(past)]
    level += [host.variable(f"advertise[{t}]", 0, LEVELS, cost=-0.9, integer=True) for t in range(weeks)]
    host.row("budget", [(1.0, j) for j in level[window - 1 :]], upper=1.5 * weeks)
    batch = [host.variable(f"batches[{t}]", 0, BATCHES, cost=-2.5, integer=True) for t in range(weeks)]
    stock = [host.variable(f"stock[{t}]", 0.0, ROOM, cost=-0.1) for t in range(weeks)]
    sales = [host.output(f"sales[{t}]", cost=1.5) for t in range(weeks)]
    for t in range(weeks):
        before = [(1.0, stock[t - 1])] if t else []
        flow = [*before, (LOT, batch[t]), (-1.0, sales[t])]
        host.equal(f"stock[{t}]", stock[t], flow, 0.0 if t else FIRST)
    problem = host.problem()
    problem.add_predictor(
        net, [level[t : t + window] for t in range(weeks)], [[column] for column in sales], name="forecast"
    )
    return problem


def _train(net: nn.Module, window: int, rng: np.random.Generator) -> None:
    """Advertising is remembered, less every week, with decreasing returns."""
    X = rng.integers(0, LEVELS + 1, (300, window)).astype(np.float64)
    remembered = X @ (0.55 ** np.arange(window)[::-1])
    sales = 4.0 + 6.0 * (1.0 - np.exp(-0.5 * remembered)) + rng.normal(0.0, 0.1, len(X))
    minimise(net, nn.MSELoss(), X, sales[:, None])
