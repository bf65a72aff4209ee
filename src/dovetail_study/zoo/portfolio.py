"""Portfolio: the most return that a risk network allows, with few assets.

    max  return of the weights - fees
    s.t. weights sum to 1,   w_i <= most z_i,   w_i >= least z_i,   sum of z_i <= so many
         exposure_k = sum of loadings times weights,   risk = f(exposures) <= ceiling

Feasible: equal weights of the first assets; the ceiling is the risk of that portfolio.
"""

from __future__ import annotations

import numpy as np

import dovetail as dt
from dovetail_study.problems.host import Host
from dovetail_study.zoo.learners import by_size, network, values

LEAST, MOST = 0.05, 0.6
"""Limits of the weight of an asset that is held."""


def portfolio(size: int, seed: int) -> dt.Problem:
    """Assets with loadings on a few factors."""
    rng = np.random.default_rng(seed)
    assets, held, factors = by_size(size, (8, 3, 3), (25, 6, 5), (80, 12, 8))
    loading = rng.normal(0.3, 0.5, (assets, factors))
    gain = 2.0 + 3.0 * np.abs(loading).mean(axis=1) + rng.normal(0.0, 0.5, assets)
    X = rng.normal(0.3, 0.6, (300, factors))
    swing = rng.uniform(0.5, 1.5, factors)
    measured = np.sqrt(0.2 + (X**2) @ swing) + 0.3 * np.maximum(X[:, 0] + X[:, 1], 0.0)
    model = network(X, measured + rng.normal(0.0, 0.03, len(X)), size, seed)
    ceiling = values(model, loading[:held].mean(axis=0)[None, :])[0] + 0.05

    host = Host("max")
    weight = [host.variable(f"weight[{i}]", 0.0, MOST, cost=gain[i]) for i in range(assets)]
    hold = [host.binary(f"hold[{i}]", cost=-0.1) for i in range(assets)]
    host.row("all of it", [(1.0, j) for j in weight], 1.0, 1.0)
    for i in range(assets):
        host.row(f"most[{i}]", [(1.0, weight[i]), (-MOST, hold[i])], upper=0.0)
        host.row(f"least[{i}]", [(1.0, weight[i]), (-LEAST, hold[i])], lower=0.0)
    host.row("few assets", [(1.0, j) for j in hold], upper=held)
    exposure = [
        host.variable(f"exposure[{k}]", loading[:, k].min(), loading[:, k].max()) for k in range(factors)
    ]
    for k in range(factors):
        host.equal(f"exposure[{k}]", exposure[k], zip(loading[:, k], weight, strict=True))
    risk = host.output("risk", upper=ceiling)
    problem = host.problem()
    problem.add_predictor(model, exposure, [risk], name="risk")
    return problem
