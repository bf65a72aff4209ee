"""A small problem with components under coupling rows, and pools of columns made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch

import dovetail as dt
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.methods.component_prices.pool import ColumnPool
from dovetail.structure.components import components
from tests.contexts import context_of
from tests.small import random_mlp


def workshops(n=4, seed=0, *, spare=False, equality=False):
    """n workshops: two inputs and a regression and a class each; three rows they share, one of its own each.

    Columns: inputs (n, 2), then regressions (n), then classes (n), then perhaps a column nobody owns.
    """
    rng = np.random.default_rng(seed)
    inputs = np.arange(2 * n).reshape(n, 2)
    values, classes = 2 * n + np.arange(n), 3 * n + np.arange(n)
    columns = 4 * n + (1 if spare else 0)
    A = np.zeros((3 + n, columns))
    A[0, inputs[:, 0]] = 1.0
    A[1, inputs[:, 1]] = rng.uniform(0.5, 1.5, n)
    A[2, values] = 1.0
    if spare:
        A[0, -1] = -1.0
        A[1, -1] = -0.5
    for i in range(n):
        A[3 + i, [*inputs[i], values[i]]] = [1.0, 1.0, 0.1]
    row_lower = np.concatenate([[-np.inf, -1.0, -2.0 * n], np.full(n, -np.inf)])
    row_upper = np.concatenate([[0.4 * n, 0.4 * n, 2.0 * n], np.full(n, 1.5)])
    if equality:
        with torch.no_grad():  # what the regressions add up to at some point
            middle = random_mlp(2, seed=seed)(torch.full((1, 2), -0.1, dtype=torch.float64))
        row_lower[2] = row_upper[2] = n * float(middle)
    cost = np.concatenate([rng.uniform(0.1, 1.0, 2 * n), rng.normal(size=n), np.full(n, -2.0)])
    mip = dt.Mip(
        cost=np.append(cost, [0.7] if spare else []),
        A=A,
        row_lower=row_lower,
        row_upper=row_upper,
        lower=np.concatenate([np.full(2 * n, -1.0), np.full(n, -20.0), np.zeros(n), np.zeros(int(spare))]),
        upper=np.concatenate([np.full(2 * n, 1.0), np.full(n, 20.0), np.ones(n), np.full(int(spare), 2.0)]),
    )
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(2, seed=seed), inputs, values[:, None])
    problem.add_predictor(
        random_mlp(2, seed=seed + 10), inputs, classes[:, None], output_type="classification"
    )
    return problem


def opened(problem, seed=0, points=0):
    """Everything a round of column generation has, with columns of random points in the pool."""
    context = context_of(problem, seed=seed)
    scaled = ScaledProblem.of(context)
    parts = components(problem)
    pool = ColumnPool(scaled, parts)
    rng = np.random.default_rng(seed)
    for _ in range(points):
        pool.add(completed(scaled, rng))
    return SimpleNamespace(
        problem=problem,
        context=context,
        scaled=scaled,
        parts=parts,
        pool=pool,
    )


def completed(scaled, rng):
    """A random point of the box with its outputs as predicted; rows may be broken."""
    low, high = scaled.ranges.lower, scaled.ranges.upper
    return scaled.problem.predict(low + rng.random(low.size) * (high - low))
