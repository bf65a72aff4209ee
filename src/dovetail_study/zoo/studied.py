"""The eight problems of the study; `dovetail_study.problems` describes each and its origin.

Water, adversarial and dispatch are feasible by construction. The others have the limits of the study, which
their data make likely but do not guarantee: points were found for seed 0 at every size, and for seeds 0 to 5
at size 1.
"""

from __future__ import annotations

import dovetail as dt
from dovetail_study.problems.adversarial import adversarial as study_adversarial
from dovetail_study.problems.diet import diet as study_diet
from dovetail_study.problems.dispatch import dispatch as study_dispatch
from dovetail_study.problems.function import function as study_function
from dovetail_study.problems.heat import heat as study_heat
from dovetail_study.problems.tree import tree as study_tree
from dovetail_study.problems.water import water as study_water
from dovetail_study.problems.wine import wine as study_wine
from dovetail_study.zoo.learners import by_size


def water(size: int, seed: int) -> dt.Problem:
    """Without treatment every point is feasible."""
    n, network, epochs = by_size(size, (4, "1x6", 10), (20, "2x16", 40), (100, "2x16", 40))
    return study_water(n, network, seed=seed, epochs=epochs).problem


def tree(size: int, seed: int) -> dt.Problem:
    """The budget and the least number of survivors are the study's."""
    grid, network, epochs = by_size(size, (2, "1x6", 10), (4, "2x8", 40), (8, "2x16", 40))
    return study_tree(grid, network, seed=seed, epochs=epochs).problem


def wine(size: int, seed: int) -> dt.Problem:
    """Stock, money and the least quality are the study's."""
    wines, vineyards, network, epochs = by_size(
        size, (1, 6, "1x6", 10), (2, 15, "2x8", 40), (6, 40, "2x16", 40)
    )
    return study_wine(wines, vineyards, network, seed=seed, epochs=epochs).problem


def diet(size: int, seed: int) -> dt.Problem:
    """The best-liked diet of the data gives more than is required; the network may like it less."""
    network, epochs = by_size(size, ("1x8", 5), ("2x16", 40), ("3x32", 40))
    return study_diet(network, seed=seed, epochs=epochs).problem


def function(size: int, seed: int) -> dt.Problem:
    """The required value is the median of the second network's training targets."""
    features, network, epochs = by_size(size, (2, "1x8", 20), (4, "2x12", 60), (10, "3x16", 60))
    return study_function(
        features, network, rows=by_size(size, 400, 2000, 2500), seed=seed, epochs=epochs
    ).problem


def adversarial(size: int, seed: int) -> dt.Problem:
    """The image itself is feasible."""
    network, epochs, budget = by_size(size, ("1x12", 15, 1.0), ("2x24", 40, 1.5), ("4x64", 40, 2.0))
    return study_adversarial(network, budget=budget, seed=seed, epochs=epochs).problem


def heat(size: int, seed: int) -> dt.Problem:
    """The pump that is learnt gives more than any hour needs."""
    hours, network, rows = by_size(size, (4, "1x6", 400), (24, "2x8", 1500), (72, "2x16", 3000))
    return study_heat(hours, network, rows=rows, seed=seed, epochs=by_size(size, 20, 40, 40)).problem


def dispatch(size: int, seed: int) -> dt.Problem:
    """Any equal sharing out of the jobs is feasible."""
    jobs, machines, network = by_size(size, (8, 2, "1x6"), (30, 5, "2x6"), (240, 24, "2x8"))
    rows, epochs = by_size(size, (200, 20), (400, 40), (600, 40))
    return study_dispatch(jobs, machines, network, rows=rows, seed=seed, epochs=epochs).problem
