"""Ensemble: five predictors of one yield, which must agree where the decision is.

    max  m - cost of the settings
    s.t. m = mean of q_k,   d_k >= |q_k - m|,   mean of d_k <= limit       the predictors agree
         q_k = f_k(counts, settings) for k = 1, ..., 5,   a resource that the counts share

Each predictor learns from rows of its own, drawn again from the same measurements. Feasible: the limit is a
little above the disagreement at one measurement that keeps within the resource.
"""

from __future__ import annotations

import numpy as np

import dovetail as dt
from dovetail.core.arrays import FloatArray
from dovetail_study.problems.host import Host
from dovetail_study.zoo.learners import Learner, by_size, network, values

MEMBERS = 5
MOST = 6
"""Largest amount of each additive, in whole portions."""


def ensemble(size: int, seed: int, learner: Learner = network) -> dt.Problem:
    """Half of the inputs are whole portions of additives, half are settings between 0 and 1."""
    rng = np.random.default_rng(seed)
    counts = settings = by_size(size, 2, 4, 7)
    X, measured = _measurements(counts, settings, rng)
    again = rng.integers(0, len(X), (MEMBERS, len(X)))
    models = [learner(X[rows], measured[rows], size, seed + k) for k, rows in enumerate(again)]
    share = rng.uniform(0.5, 1.5, counts)
    resource = 0.5 * MOST * share.sum()
    limit = 1.05 * _disagreement(models, X[X[:, :counts] @ share <= resource])

    host = Host("max")
    inputs = [host.variable(f"portions[{i}]", 0, MOST, cost=-0.1, integer=True) for i in range(counts)]
    host.row("resource", zip(share, inputs, strict=True), upper=resource)
    inputs += [host.variable(f"setting[{i}]", 0.0, 1.0, cost=-0.2) for i in range(settings)]
    mean = host.variable("mean", -np.inf, cost=1.0)
    said = [host.output(f"yield[{k}]") for k in range(MEMBERS)]
    host.equal("mean", mean, [(1.0 / MEMBERS, q) for q in said])
    away = [host.variable(f"away[{k}]") for k in range(MEMBERS)]
    for k in range(MEMBERS):
        host.row(f"above[{k}]", [(1.0, away[k]), (-1.0, said[k]), (1.0, mean)], lower=0.0)
        host.row(f"below[{k}]", [(1.0, away[k]), (1.0, said[k]), (-1.0, mean)], lower=0.0)
    host.row("agreement", [(1.0 / MEMBERS, d) for d in away], upper=limit)
    problem = host.problem()
    for k, model in enumerate(models):
        problem.add_predictor(model, inputs, [said[k]], name=f"member[{k}]")
    return problem


def _measurements(counts: int, settings: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Additives help up to an amount of their own, settings have a best value, and neighbours interact."""
    X = np.column_stack([rng.integers(0, MOST + 1, (300, counts)), rng.uniform(0.0, 1.0, (300, settings))])
    amounts, levels = X[:, :counts], X[:, counts:]
    best, enough = rng.uniform(0.2, 0.8, settings), rng.uniform(2.0, 5.0, counts)
    measured = (np.minimum(amounts, enough) - 0.15 * amounts).sum(axis=1)
    measured -= 4.0 * ((levels - best) ** 2).sum(axis=1)
    measured += 0.5 * amounts[:, 0] * levels[:, 0]
    return X, measured + rng.normal(0.0, 0.2, len(X))


def _disagreement(models: list[object], X: FloatArray) -> float:
    """The mean distance from the mean, at the row where it is the median of all rows."""
    said = np.array([values(model, X) for model in models])
    return float(np.median(np.abs(said - said.mean(axis=0)).mean(axis=0)))
