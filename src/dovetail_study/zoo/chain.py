"""Chain: lots are mixed, one predictor gives the strength of the mix, two others read that strength.

    max  yield - energy - prices of the lots
    s.t. properties = mean of the chosen lots',   exactly so many lots are chosen,   a budget
         strength = f(properties),   yield = g(strength, heat, speed),   energy = h(strength, speed) <= limit

A binary for each lot: the host is combinatorial, the predictors are small and stand one behind the other.
Feasible: the first lots of the list with middle settings; budget and limit are a tenth above what they take.
"""

from __future__ import annotations

import numpy as np

import dovetail as dt
from dovetail_study.problems.host import Host
from dovetail_study.zoo.learners import Learner, by_size, network, values

PROPERTIES = 3
SPEED, HEAT = (1, 8), (0.0, 1.0)
"""Whole steps of speed, and bounds of the heat."""


def chain(size: int, seed: int, learner: Learner = network) -> dt.Problem:
    """A dozen lots, a hundred, or four hundred."""
    rng = np.random.default_rng(seed)
    lots, chosen = by_size(size, (14, 4), (100, 10), (400, 20))
    lot = rng.uniform(0.0, 1.0, (lots, PROPERTIES))
    price = 0.2 + 0.6 * lot.mean(axis=1) + rng.uniform(0.0, 0.3, lots)
    strength, output, energy = _trained(rng, size, seed, learner)

    mix = lot[:chosen].mean(axis=0)
    firm = values(strength, mix[None, :])[0]
    limit = values(energy, np.array([[firm, 4.0]]))[0] + 0.3

    host = Host("max")
    take = [host.binary(f"take[{i}]", cost=-price[i] / chosen) for i in range(lots)]
    host.row("lots", [(1.0, j) for j in take], chosen, chosen)
    host.row("budget", zip(price, take, strict=True), upper=1.1 * price[:chosen].sum())
    blend = [host.variable(f"property[{p}]", 0.0, 1.0) for p in range(PROPERTIES)]
    for p in range(PROPERTIES):
        host.equal(f"property[{p}]", blend[p], zip(lot[:, p] / chosen, take, strict=True))
    firmness = host.output("strength", -20.0, 40.0)
    heat = host.variable("heat", *HEAT, cost=-0.5)
    speed = host.variable("speed", *SPEED, integer=True)
    made = host.output("yield", cost=1.0)
    used = host.output("energy", upper=limit, cost=-0.3)
    problem = host.problem()
    problem.add_predictor(strength, blend, [firmness], name="strength")
    problem.add_predictor(output, [firmness, heat, speed], [made], name="yield")
    problem.add_predictor(energy, [firmness, speed], [used], name="energy")
    return problem


def _trained(
    rng: np.random.Generator, size: int, seed: int, learner: Learner
) -> tuple[object, object, object]:
    """Strength has a peak in the properties; a strong mix gives more, and takes more energy at speed."""
    n = 300
    mix, heat, speed = rng.uniform(0.0, 1.0, (n, PROPERTIES)), rng.uniform(*HEAT, n), rng.integers(1, 9, n)
    best = rng.uniform(0.3, 0.7, PROPERTIES)
    firm = 8.0 - 10.0 * ((mix - best) ** 2).sum(axis=1) + 2.0 * mix[:, 0] * mix[:, 1] + rng.normal(0, 0.1, n)
    made = 0.4 * firm * (1.0 + 0.3 * heat) + 0.6 * np.sqrt(speed) - 0.03 * (firm - 6.0) ** 2 * speed
    used = 0.5 + 0.04 * firm * speed + 0.02 * speed**2
    noise = rng.normal(0.0, 0.05, (2, n))
    return (
        learner(mix, firm, size, seed),
        learner(np.column_stack([firm, heat, speed]), made + noise[0], size, seed + 1),
        learner(np.column_stack([firm, speed]), used + noise[1], size, seed + 2),
    )
