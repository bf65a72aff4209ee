"""Dispatching: assign jobs to machines so that the smallest efficiency of a machine is as large as possible.

    max  t
    s.t. t <= e_m                                                   for each machine m
         sum_m a_jm = 1,   sum_j a_jm = J/M                         one machine per job, equal numbers of jobs
         o_m = (M/J) sum_j w_j a_jm                                 own mean load
         n_m = mean of o over the two neighbours of m on a ring
         r_m = mean of o over everyone else
         e_m = f_m(o_m, n_m, r_m),   a binary

Every machine has a network of its own: few inputs, few layers, many networks, and thousands of binaries that
reach them through a few sums. With two or three machines all others are neighbours, and r_m = n_m.

The efficiency that the networks learn is made up: it falls smoothly as a machine gets hot, by its own load
and, less so, by that of the others, and a machine with little to do is not efficient either. Its
parameters are drawn per machine. There is no file, and training rows are drawn from the whole box of loads
(the lightest to the heaviest J/M jobs), which is wider than what assignments usually give. Loads are means
of weights, so that many assignments are almost equally good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import OptionError
from dovetail.core.problem import Problem
from dovetail_study.problems import networks
from dovetail_study.problems.host import Host
from dovetail_study.problems.training import Regression, train_regressor

WEIGHT = (0.5, 4.0)
"""Lightest and heaviest job."""
NOISE = 0.005
"""Standard deviation of the error with which an efficiency is measured."""
RECIPE = networks.Recipe(rate=1e-2, decay=1e-5)
"""Networks of eight neurons a layer are too small to learn by heart: long steps, hardly any decay."""


@dataclass(frozen=True, eq=False)
class Dispatch:
    """One instance: the problem, its networks, and the columns of its variables."""

    problem: Problem
    networks: tuple[nn.Module, ...]
    trainings: tuple[Regression, ...]
    weights: FloatArray
    """(jobs,)"""
    assigned: IntArray
    """(jobs, machines) columns of the binaries a."""
    loads: IntArray
    """(machines, 3) columns of the own load, the neighbours' and everyone else's."""
    efficiency: IntArray
    """(machines,) columns of the predicted efficiencies."""
    smallest: int
    """Column of t."""


def dispatch(
    jobs: int = 240,
    machines: int = 24,
    network: str = "2x8",
    *,
    rows: int = 600,
    seed: int = 42,
    epochs: int = 40,
    allow_constant: bool = False,
) -> Dispatch:
    """`jobs` drawn with `seed`, and one trained network per machine."""
    if machines < 2 or jobs < machines or jobs % machines:
        raise OptionError(
            f"jobs is {jobs} and machines {machines}; give at least two machines, "
            "and a number of jobs that they can share equally."
        )
    if rows < 10:
        raise OptionError(f"rows is {rows}; give at least 10.")
    rng = np.random.default_rng(seed)
    weights = rng.uniform(*WEIGHT, jobs)
    nets, trainings = [], []
    for m in range(machines):
        X, measured = look_alike(_range(weights, machines), rows, rng)
        torch.manual_seed(seed + m)
        net = networks.build(network, 3)
        trainings.append(
            train_regressor(
                net, X, measured, seed=seed, recipe=RECIPE, epochs=epochs, allow_constant=allow_constant
            )
        )
        nets.append(net)
    return formulate(weights, nets, trainings)


def formulate(weights: FloatArray, nets: Sequence[nn.Module], trainings: Sequence[Regression]) -> Dispatch:
    """The model for given jobs and one network per machine."""
    jobs, machines = len(weights), len(nets)
    low, high = _range(weights, machines)
    host, ring, every = Host("max"), range(machines), range(jobs)
    assigned = host.variables("assign", every, ring, upper=1.0, integer=True)
    loads = np.stack(
        [host.variables(kind, ring, lower=low, upper=high) for kind in ("own", "near", "far")], 1
    )
    efficiency = host.variables("efficiency", ring, lower=-np.inf)
    smallest = host.variable("smallest", -np.inf, cost=1.0)
    for j in every:
        host.row(f"job[{j}]", [(1.0, column) for column in assigned[j]], 1.0, 1.0)
    for m in ring:
        host.row(
            f"share[{m}]", [(1.0, column) for column in assigned[:, m]], jobs / machines, jobs / machines
        )
    for m in ring:
        mean = zip(weights * machines / jobs, assigned[:, m], strict=True)
        host.row(f"own[{m}]", [(-1.0, loads[m, 0]), *mean], 0.0, 0.0)
    for place, (kind, share) in enumerate(zip(("near", "far"), _means(machines), strict=True), start=1):
        for m in ring:
            mean = zip(share[m], loads[:, 0], strict=True)
            host.row(f"{kind}[{m}]", [(-1.0, loads[m, place]), *mean], 0.0, 0.0)
    for m in ring:
        host.row(f"smallest[{m}]", [(1.0, smallest), (-1.0, efficiency[m])], upper=0.0)
    problem = host.problem()
    for m, net in enumerate(nets):
        problem.add_predictor(net, loads[m], efficiency[[m]], name=f"machine[{m}]")
    return Dispatch(problem, tuple(nets), tuple(trainings), weights, assigned, loads, efficiency, smallest)


def _range(weights: FloatArray, machines: int) -> tuple[float, float]:
    """Mean load of a machine that has the lightest jobs, and of one that has the heaviest."""
    each = len(weights) // machines
    ordered = np.sort(weights)
    return float(ordered[:each].mean()), float(ordered[-each:].mean())


def _means(machines: int) -> tuple[FloatArray, FloatArray]:
    """(machines, machines) matrices that average over the neighbours, and over everyone else."""
    places = np.arange(machines)
    apart = np.abs(places[:, None] - places)
    apart = np.minimum(apart, machines - apart)
    near = (apart == 1).astype(np.float64)
    far = (apart > 1).astype(np.float64) if machines > 3 else near
    return near / near.sum(axis=1, keepdims=True), far / far.sum(axis=1, keepdims=True)


def look_alike(
    loads: tuple[float, float], rows: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """One machine's made-up measurements: (rows, 3) loads within a range, and (rows,) efficiencies."""
    low, high = loads
    X = rng.uniform(low, high, (rows, 3))
    own = (X[:, 0] - low) / (high - low) if high > low else np.zeros(rows)
    heat = X @ np.array([1.0, rng.uniform(0.2, 0.5), rng.uniform(0.05, 0.2)])
    limit = rng.uniform(3.5, 5.5)  # the heat at which half of the efficiency is lost
    cool = 1.0 / (1.0 + np.exp(rng.uniform(0.8, 1.6) * (heat - limit)))
    busy = 1.0 - rng.uniform(0.1, 0.4) * np.exp(-4.0 * own)
    return X, cool * busy + NOISE * rng.standard_normal(rows)
