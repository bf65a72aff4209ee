"""Water potability: make as many undrinkable samples drinkable as the treatment budget allows.

    max  sum_i y_i
    s.t. x_ij = w_ij + a_ij - b_ij,   sum_i a_ij <= 2,   sum_i b_ij <= 2   for each feature j,   a, b >= 0
         y_i = 1 where the network's logit at x_i is >= 0

Features are standardised; budgets are *totals* over all samples per feature. The paper's text can also be
read as 2 per sample: `shared=False`, where no row ties two samples together. The treated values x have
no bounds of their own: only the budgets bound them. (The paper calls this mixed-integer, but its only
integers are the network's own class outputs: the host is continuous.)
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import OptionError
from dovetail.core.problem import Problem
from dovetail.run.result import Result
from dovetail_study.problems import data as files
from dovetail_study.problems import networks
from dovetail_study.problems.host import Host
from dovetail_study.problems.training import Training, train_classifier

FEATURES = (
    "ph", "Hardness", "Solids", "Chloramines", "Sulfate",
    "Conductivity", "Organic_carbon", "Trihalomethanes", "Turbidity",
)  # fmt: skip
FILE = "water_quality.csv"
BUDGET = 2.0
"""The paper's, in standard deviations of a feature."""

# Mean and standard deviation of each feature in the public data set: from which the look-alike is drawn.
_MARGINALS = (
    (7.1, 1.6), (196.0, 32.6), (21917.0, 8642.0), (7.1, 1.6), (333.2, 41.2),
    (426.5, 80.7), (14.4, 3.3), (66.4, 16.1), (4.0, 0.8),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Water:
    """One instance: the problem, its network, and the columns of its variables."""

    problem: Problem
    network: nn.Module
    training: Training
    samples: FloatArray
    """(n, 9) untreated samples, standardised."""
    treated: IntArray
    """(n, 9) columns of the treated values."""
    potable: IntArray
    """(n,) columns of the class outputs."""

    def counts(self, result: Result) -> Counts:
        """How many samples are potable before and after, according to the network."""
        there = next(self.network.parameters()).device
        with torch.no_grad():
            said = self.network(torch.as_tensor(self.samples, dtype=torch.float32, device=there))
        before = said.cpu().numpy()[:, 0] >= 0
        after = result.value(self.potable) > 0.5 if result.x is not None else before
        return Counts(len(before), int(before.sum()), int(after.sum()), int((after & ~before).sum()))


@dataclass(frozen=True)
class Counts:
    """The counts in every table about water."""

    samples: int
    untouched: int
    """Number of samples that are potable without treatment, because the network errs on these undrinkable
    samples."""
    potable: int
    """Number of potable samples at the end."""
    flipped: int
    """Potable at the end and not before."""


def water(
    n: int = 25,
    network: str = "2x16",
    *,
    seed: int = 42,
    data: str | Path | None = None,
    init: str = "he",
    epochs: int = 40,
    allow_constant: bool = False,
    shared: bool = True,
) -> Water:
    """`n` undrinkable samples and a trained network, from real or look-alike data."""
    judge = train(network, seed=seed, data=data, init=init, epochs=epochs, allow_constant=allow_constant)
    return judge.water(n, shared=shared)


@dataclass(frozen=True, eq=False)
class Judge:
    """A network that was trained to tell drinkable water, and the data to draw samples from."""

    network: nn.Module
    training: Training
    X: FloatArray
    """All rows, standardised."""
    labels: FloatArray
    seed: int

    def water(self, n: int, *, shared: bool = True) -> Water:
        """An instance with `n` undrinkable samples, drawn with the judge's seed."""
        undrinkable = np.flatnonzero(self.labels == 0)
        if not 1 <= n <= undrinkable.size:
            raise OptionError(f"n is {n}; the data has {undrinkable.size} undrinkable samples.")
        samples = self.X[np.random.default_rng(self.seed).choice(undrinkable, n, replace=False)]
        return formulate(samples, self.network, self.training, shared=shared)


def train(
    network: str = "2x16",
    *,
    seed: int = 42,
    data: str | Path | None = None,
    init: str = "he",
    epochs: int = 40,
    allow_constant: bool = False,
    device: str = "cpu",
) -> Judge:
    """The part of `water` that does not depend on the samples; trained on `device`, left on the CPU."""
    path = files.find(FILE, data)
    X, labels = look_alike(seed) if path is None else files.complete_rows(path, FEATURES, "Potability")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    torch.manual_seed(seed)
    net = networks.build(network, len(FEATURES), init=init)
    training = train_classifier(
        net,
        X,
        labels,
        seed=seed,
        recipe=networks.recipe(network),
        epochs=epochs,
        allow_constant=allow_constant,
        device=device,
    )
    return Judge(net, training, X, labels, seed)


def formulate(
    samples: FloatArray,
    network: nn.Module,
    training: Training,
    *,
    shared: bool = True,
    budget: float = BUDGET,
) -> Water:
    """The paper's model for given standardised samples."""
    host = Host("max")
    each = range(len(samples))
    potable = host.variables("potable", each, upper=1.0, cost=1.0, integer=True)
    treated = host.variables("x", each, FEATURES, lower=-np.inf)
    moves = {side: host.variables(side, each, FEATURES) for side in ("up", "down")}
    for i, j in np.ndindex(samples.shape):
        moved = [(1.0, moves["up"][i, j]), (-1.0, moves["down"][i, j])]
        host.equal(f"treatment[{i},{FEATURES[j]}]", treated[i, j], moved, samples[i, j])
    spenders = [("", slice(None))] if shared else [(f"{i},", slice(i, i + 1)) for i in each]
    for side, columns in moves.items():
        for (spender, rows), (j, feature) in itertools.product(spenders, enumerate(FEATURES)):
            spent = [(1.0, column) for column in columns[rows, j]]
            host.row(f"budget_{side}[{spender}{feature}]", spent, upper=budget)
    problem = host.problem()
    problem.add_predictor(
        network, treated, potable[:, None], output_type="classification", threshold=0.0, name="potability"
    )
    return Water(problem, network, training, samples, treated, potable)


def look_alike(seed: int, rows: int = 2011) -> tuple[FloatArray, FloatArray]:
    """Made-up data with the real columns: two features in five matter, through bends and products."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((rows, len(FEATURES)))
    score = (
        1.2 * z[:, 0] * z[:, 4] + np.abs(z[:, 2]) - 0.9 * z[:, 1] * z[:, 3]
        + 0.8 * np.maximum(z[:, 5], z[:, 7]) - 0.5 * z[:, 6] ** 2 - 1.2
    )  # fmt: skip
    labels = (rng.random(rows) < 1.0 / (1.0 + np.exp(-1.5 * score))).astype(np.float64)
    mean, deviation = np.array(_MARGINALS).T
    return mean + deviation * z, labels
