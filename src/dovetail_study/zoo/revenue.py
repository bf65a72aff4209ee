"""Revenue: prices times the demand that a predictor expects of them, a bilinear objective.

    max  sum of price_p sold_p - unit cost sold_p - cost of promotions
    s.t. sold_p = f_p(price_p, price of the rival product, promoted_p) >= 0
         hours of the sold <= capacity,   few promotions

Feasible: the highest prices without promotions; the capacity is more than what they sell.
"""

from __future__ import annotations

import numpy as np

import dovetail as dt
from dovetail.core.arrays import FloatArray
from dovetail_study.problems.host import Host
from dovetail_study.zoo.learners import Learner, by_size, network, values

PRICE = (3.0, 9.0)


def revenue(size: int, seed: int, learner: Learner = network) -> dt.Problem:
    """Products in a ring: the rival of each is the next one. `dt.Product` multiplies price and demand."""
    rng = np.random.default_rng(seed)
    products, promotions = by_size(size, (2, 1), (5, 2), (12, 4))
    models = [learner(*_sales(rng), size, seed + p) for p in range(products)]
    hours, unit_cost = rng.uniform(0.5, 1.5, products), rng.uniform(1.0, 2.5, products)
    dear = np.array([[PRICE[1], PRICE[1], 0.0]])
    least = sum(h * values(model, dear)[0] for h, model in zip(hours, models, strict=True))
    capacity = least + 3.0 * hours.sum()

    host = Host("max")
    price = [host.variable(f"price[{p}]", *PRICE) for p in range(products)]
    promoted = [host.binary(f"promoted[{p}]", cost=-2.0) for p in range(products)]
    sold = [host.output(f"sold[{p}]", 0.0, 50.0, cost=-unit_cost[p]) for p in range(products)]
    earned = [host.output(f"revenue[{p}]", cost=1.0) for p in range(products)]
    host.row("promotions", [(1.0, j) for j in promoted], upper=promotions)
    host.row("hours", zip(hours, sold, strict=True), upper=capacity)
    problem = host.problem()
    for p, model in enumerate(models):
        problem.add_predictor(
            dt.Product(model, output=0, input=0, keep=True),
            [price[p], price[(p + 1) % products], promoted[p]],
            [sold[p], earned[p]],
            name=f"demand[{p}]",
        )
    return problem


def _sales(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Demand falls with the own price, rises with the rival's, and a promotion lifts it."""
    n = 300
    own, rival, promoted = rng.uniform(*PRICE, n), rng.uniform(*PRICE, n), rng.integers(0, 2, n)
    market = rng.uniform(15.0, 25.0)
    sold = market / (1.0 + np.exp(0.8 * (own - 5.0) - 0.3 * (rival - 5.0) - 0.7 * promoted)) + 1.0
    return np.column_stack([own, rival, promoted]), sold + rng.normal(0.0, 0.3, n)
