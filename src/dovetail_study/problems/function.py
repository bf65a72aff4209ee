"""Function approximation: the least of one learnt function where another one has a given value.

    min y_1 s.t. y_1 = f(x), y_2 = g(x), y_2 = the median of g's training targets, -20 <= x <= 20

f and g are networks trained on two random quadratics over the same rows, drawn from [-10, 10]^d. The fixed
y_2 is an equality through a network: its feasible points form a surface that no row describes.

SurrogateLIB's function problem. Its networks are trained on raw values in the hundreds, and its draws come
from the generator numpy shares with everyone; here targets are standardised for the training, with the
scaling folded into the network, and every draw comes from a generator of its own. The library adds 10000 to
the objective to keep it positive; nothing is added here. One property is kept, since it is the problem:
`reach` is twice as far as the training rows go, so that almost all of the box (31 parts of 32 for d = 5) is
outside the training data, and the optimum says more about the networks than about the quadratics.
`reach=10.0` stays inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import OptionError
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail_study.problems import networks
from dovetail_study.problems.training import Regression, train_regressor

SEEN = 10.0
"""Training rows are drawn from [-SEEN, SEEN]^d."""


@dataclass(frozen=True, eq=False)
class Function:
    """One instance: the problem, its networks, and the columns of its variables."""

    problem: Problem
    networks: tuple[nn.Module, nn.Module]
    """f, whose value is minimised, and g, whose value is given."""
    trainings: tuple[Regression, ...]
    median: float
    """The required y_2: the median of g's training targets."""
    x: IntArray
    """(d,) columns that both networks read."""
    outputs: IntArray
    """(2,) columns of y_1 and y_2."""


def function(
    features: int = 5,
    network: str = "3x16",
    *,
    rows: int = 2500,
    reach: float = 20.0,
    seed: int = 42,
    epochs: int = 60,
    allow_constant: bool = False,
) -> Function:
    """Two trained networks over `features` columns; there is no file, the quadratics are the data."""
    if features < 1 or rows < 10 or not 0.0 < reach < np.inf:
        raise OptionError(
            f"features is {features}, rows {rows}, reach {reach}; "
            "give at least 1 feature, at least 10 rows, and a finite reach above 0."
        )
    X, targets = quadratics(features, rows, seed)
    pair, trainings = [], []
    for k in range(2):
        torch.manual_seed(seed + k)
        net = networks.build(network, features)
        trainings.append(
            train_regressor(net, X, targets[k], seed=seed, epochs=epochs, allow_constant=allow_constant)
        )
        pair.append(net)
    return formulate(features, reach, pair, trainings, float(np.median(targets[1])))


def formulate(
    features: int, reach: float, pair: Sequence[nn.Module], trainings: Sequence[Regression], median: float
) -> Function:
    """The model for two given networks: no rows, only bounds."""
    f, g = pair
    x, outputs = np.arange(features), features + np.arange(2)
    mip = Mip(
        cost=np.repeat([0.0, 1.0, 0.0], [features, 1, 1]),
        lower=[*[-reach] * features, -np.inf, median],
        upper=[*[reach] * features, np.inf, median],
        names=[*(f"x[{j}]" for j in range(features)), "y[1]", "y[2]"],
    )
    problem = Problem(mip)
    problem.add_predictor(f, x, outputs[:1], name="f")
    problem.add_predictor(g, x, outputs[1:], name="g")
    return Function(problem, (f, g), tuple(trainings), median, x, outputs)


def quadratics(features: int, rows: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """(rows, d) points and (2, rows) values of x'Qx + a'x + c for two random Q, a, c."""
    rng = np.random.default_rng(seed)
    Q = rng.uniform(-5.0, 5.0, (2, features, features))
    a = rng.uniform(-1.0, 1.0, (2, features))
    c = rng.uniform(-1.0, 1.0, 2)
    X = rng.uniform(-SEEN, SEEN, (rows, features))
    return X, np.einsum("ni,mij,nj->mn", X, Q, X) + a @ X.T + c[:, None]
