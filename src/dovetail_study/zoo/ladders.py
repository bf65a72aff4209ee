"""Price ladders: every product of every store takes one of four prices, and stores share the stock.

    max  sum of profits
    s.t. exactly one level for each store and product,   price = the level's
         profit_s = f(prices of the store, visitors_s),   sold_sp = g_p(prices of the store, visitors_s)
         sum over stores of sold_sp <= stock_p

Feasible: the third level everywhere; the stock is a little more than what it sells.
"""

from __future__ import annotations

import numpy as np

import dovetail as dt
from dovetail.core.arrays import FloatArray
from dovetail_study.problems.host import Host
from dovetail_study.zoo.learners import Learner, by_size, network, values

LEVELS = np.array([4.0, 5.0, 6.5, 8.0])


def ladders(size: int, seed: int, learner: Learner = network) -> dt.Problem:
    """Stores with the same range of products, one network for all stores."""
    rng = np.random.default_rng(seed)
    stores, products = by_size(size, (3, 2), (8, 3), (30, 4))
    profit, units = _trained(products, rng, size, seed, learner)
    visitors = rng.uniform(0.6, 1.4, stores)
    third = np.column_stack([np.full((stores, products), LEVELS[2]), visitors])
    stock = [1.02 * values(sold, third).sum() for sold in units]

    host = Host("max")
    inputs, sold, earned = [], [], []
    for s in range(stores):
        prices = []
        for p in range(products):
            level = host.choice(f"level[{s},{p}]", len(LEVELS))
            prices.append(host.variable(f"price[{s},{p}]", LEVELS[0], LEVELS[-1]))
            host.equal(f"price[{s},{p}]", prices[-1], zip(LEVELS, level, strict=True))
        inputs.append([*prices, host.known(f"visitors[{s}]", visitors[s])])
        sold.append([host.output(f"sold[{s},{p}]") for p in range(products)])
        earned.append([host.output(f"profit[{s}]", cost=1.0)])
    for p in range(products):
        host.row(f"stock[{p}]", [(1.0, store[p]) for store in sold], upper=stock[p])
    problem = host.problem()
    problem.add_predictor(profit, inputs, earned, name="profit")
    for p in range(products):
        problem.add_predictor(units[p], inputs, [[store[p]] for store in sold], name=f"demand[{p}]")
    return problem


def _trained(
    products: int, rng: np.random.Generator, size: int, seed: int, learner: Learner
) -> tuple[object, list[object]]:
    """A high price loses buyers, some of them to the other products."""
    n = 300
    price, visitors = rng.uniform(3.5, 8.5, (n, products)), rng.uniform(0.5, 1.5, n)
    keen = rng.uniform(0.3, 0.5, products)
    X = np.column_stack([price, visitors])
    sold = 20.0 * visitors[:, None] * _buyers(price, keen) + rng.normal(0.0, 0.2, (n, products))
    profit = (sold * (price - 2.5)).sum(axis=1)
    units = [learner(X, sold[:, p], size, seed + 1 + p) for p in range(products)]
    return learner(X, profit, size, seed), units


def _buyers(price: FloatArray, keen: FloatArray) -> FloatArray:
    """The share of visitors that buys each product: cheaper products are bought more."""
    liked = np.exp(-keen * (price - 5.0))
    share: FloatArray = liked / (0.5 + liked.sum(axis=1, keepdims=True))
    return share
