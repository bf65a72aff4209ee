"""Facilities: which sites to open, how large, and whom each serves, with the cost of a site learnt.

    min  sum of costs + transport
    s.t. every customer is served,   load of a site <= modules times their capacity
         modules_f <= most open_f,   cost_f = f(open_f, modules_f, land_f, slope_f)

Feasible: all sites at their largest hold half as much again as all customers want.
"""

from __future__ import annotations

import numpy as np

import dovetail as dt
from dovetail.core.arrays import FloatArray
from dovetail_study.problems.host import Host
from dovetail_study.zoo.learners import Learner, by_size, network

MODULES = 4
"""The size of the largest site."""


def facilities(size: int, seed: int, learner: Learner = network) -> dt.Problem:
    """Sites and customers on a square."""
    rng = np.random.default_rng(seed)
    sites, customers = by_size(size, (4, 6), (8, 20), (20, 80))
    model = learner(*_history(rng), size, seed)
    wanted = rng.uniform(0.5, 2.0, customers)
    capacity = 1.5 * wanted.sum() / (MODULES * sites)
    place, home = rng.uniform(0.0, 1.0, (sites, 2)), rng.uniform(0.0, 1.0, (customers, 2))
    away = np.linalg.norm(place[:, None, :] - home[None, :, :], axis=2)
    land, slope = rng.uniform(1.0, 5.0, sites), rng.uniform(0.0, 1.0, sites)

    host = Host()
    opened = [host.binary(f"open[{f}]") for f in range(sites)]
    modules = [host.variable(f"modules[{f}]", 0, MODULES, integer=True) for f in range(sites)]
    serve = np.array(
        [
            [
                host.variable(f"serve[{f},{c}]", 0.0, 1.0, cost=4.0 * wanted[c] * away[f, c])
                for c in range(customers)
            ]
            for f in range(sites)
        ]
    )
    for f in range(sites):
        host.row(f"size[{f}]", [(1.0, modules[f]), (-float(MODULES), opened[f])], upper=0.0)
        host.row(f"load[{f}]", [*zip(wanted, serve[f], strict=True), (-capacity, modules[f])], upper=0.0)
    for c in range(customers):
        host.row(f"served[{c}]", [(1.0, j) for j in serve[:, c]], 1.0, 1.0)
    facts = [[host.known(f"land[{f}]", land[f]), host.known(f"slope[{f}]", slope[f])] for f in range(sites)]
    cost = [[host.output(f"cost[{f}]", cost=1.0)] for f in range(sites)]
    problem = host.problem()
    problem.add_predictor(
        model, [[opened[f], modules[f], *facts[f]] for f in range(sites)], cost, name="cost"
    )
    return problem


def _history(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Large sites cost less per module; land counts for open sites, and a slope makes all of it more
    expensive."""
    n = 300
    opened = (rng.random(n) < 0.85).astype(np.float64)
    modules = opened * rng.integers(0, MODULES + 1, n)
    land, slope = rng.uniform(1.0, 5.0, n), rng.uniform(0.0, 1.0, n)
    cost = opened * land * 0.8 + 2.0 * modules**0.7 * (1.0 + 0.5 * slope) + rng.normal(0.0, 0.1, n)
    return np.column_stack([opened, modules, land, slope]), cost
