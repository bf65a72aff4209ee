"""Doses: whole doses of several drugs for one patient, the most benefit that is not too toxic.

    max  benefit - 0.05 sum of doses
    s.t. benefit = f(doses, age, weight),   toxicity = g(doses, age, weight) <= ceiling
         volume of the doses <= what can be infused,   a dose only of a drug that is given,   few drugs

Feasible: the ceiling is the toxicity of a standard regimen, one dose of each of the first drugs.
"""

from __future__ import annotations

import numpy as np

import dovetail as dt
from dovetail_study.problems.host import Host
from dovetail_study.zoo.learners import Learner, by_size, network, values

MOST = 5
"""The largest number of doses of one drug."""


def doses(size: int, seed: int, learner: Learner = network) -> dt.Problem:
    """One patient, drawn like those of the data."""
    rng = np.random.default_rng(seed)
    drugs, given = by_size(size, (4, 3), (8, 4), (14, 6))
    patient = np.array([rng.uniform(30.0, 80.0), rng.uniform(50.0, 100.0)])
    benefit, toxicity = _trained(drugs, rng, size, seed, learner)
    volume = rng.uniform(0.5, 1.5, drugs)
    standard = np.repeat([1.0, 0.0], [given, drugs - given])
    ceiling = values(toxicity, np.r_[standard, patient][None, :])[0] + 0.2

    host = Host("max")
    dose = [host.variable(f"dose[{d}]", 0, MOST, cost=-0.05, integer=True) for d in range(drugs)]
    use = [host.binary(f"use[{d}]") for d in range(drugs)]
    for d in range(drugs):
        host.row(f"used[{d}]", [(1.0, dose[d]), (-float(MOST), use[d])], upper=0.0)
    host.row("drugs", [(1.0, j) for j in use], upper=given)
    host.row("volume", zip(volume, dose, strict=True), upper=2.5 * volume[:given].sum())
    inputs = [*dose, host.known("age", patient[0]), host.known("weight", patient[1])]
    gain = host.output("benefit", cost=1.0)
    harm = host.output("toxicity", upper=ceiling)
    problem = host.problem()
    problem.add_predictor(benefit, inputs, [gain], name="benefit")
    problem.add_predictor(toxicity, inputs, [harm], name="toxicity")
    return problem


def _trained(
    drugs: int, rng: np.random.Generator, size: int, seed: int, learner: Learner
) -> tuple[object, object]:
    """Benefit levels off with the dose, and two drugs help each other; toxicity adds up faster and faster."""
    n = 400
    dose = rng.integers(0, MOST + 1, (n, drugs)) * (rng.random((n, drugs)) < 0.6)
    age, weight = rng.uniform(30.0, 80.0, n), rng.uniform(50.0, 100.0, n)
    strength, harm = rng.uniform(0.5, 2.0, drugs), rng.uniform(0.1, 0.4, drugs)
    light = 75.0 / weight
    benefit = (1.0 - np.exp(-0.5 * dose * light[:, None])) @ (2.0 * strength) + 0.15 * dose[:, 0] * dose[:, 1]
    toxicity = dose @ harm * light + 0.04 * (dose @ harm) ** 2 + 0.01 * (age - 30.0)
    X = np.column_stack([dose, age, weight])
    return (
        learner(X, benefit + rng.normal(0.0, 0.1, n), size, seed),
        learner(X, toxicity + rng.normal(0.0, 0.05, n), size, seed + 1),
    )
