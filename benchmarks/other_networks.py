"""Bounds where no MIP is written: convolutions, residual sums, GELU, an LSTM; `auto` beside the host alone.

Problems for each kind of network. Water: 100 samples and budgets that are too small for all of them, the
paper's and a quarter of that (where less can be bought, fewer neurons can change their sign).
Floor: the cheapest inputs at which a regression gives at least what nine tenths of its data are below. The
host's own bound is that of its rows, integers and bounds, with every output free.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import Bounds, LinearConstraint, milp
from torch import Tensor, nn

import dovetail as dt
from benchmarks.parallel import each
from dovetail.core.arrays import FloatArray
from dovetail.testing.problems import Convolutional, ResidualNetwork
from dovetail_study.experiment import ResultTable
from dovetail_study.problems import water
from dovetail_study.problems.function import quadratics
from dovetail_study.problems.training import train_classifier

LIMIT, SAMPLES, SEED = 60.0, 100, 0
FEATURES = 4
"""Of the regression: inputs that are branched over."""
STEPS = 400
"""Of Adam on all rows at once: the fit is close by then (R2 above 0.8)."""


class ShortRecurrent(nn.Module):
    """An LSTM that reads the inputs a few at a time."""

    def __init__(self, features: int, hidden: int = 8, steps: int = 3) -> None:
        super().__init__()
        self._each = -(-features // steps)
        self._missing = self._each * steps - features
        self.lstm = nn.LSTM(self._each, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, 1)."""
        filled = nn.functional.pad(x, (0, self._missing))
        states, _ = self.lstm(filled.reshape(len(x), -1, self._each))
        result: Tensor = self.head(states[:, -1])
        return result


def smooth(features: int) -> nn.Module:
    """Two hidden layers with GELU."""
    return nn.Sequential(nn.Linear(features, 16), nn.GELU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 1))


KINDS: dict[str, Callable[[int], nn.Module]] = {
    "Conv1d": lambda features: Convolutional(features, 1, channels=4),
    "residual": lambda features: ResidualNetwork(features, 1, blocks=2, width=12),
    "GELU": smooth,
    "LSTM of 3 steps": ShortRecurrent,
}


@dataclass(frozen=True)
class Asked:
    """One run."""

    kind: str
    problem: str


@dataclass(frozen=True)
class Answer:
    """What came of it."""

    status: str
    objective: float
    bound: float
    source: str
    host: float
    seconds: float


def treated(kind: str, budget: float = water.BUDGET) -> dt.Problem:
    """Water, with a network of this kind."""
    X, labels = water.look_alike(SEED)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    torch.manual_seed(SEED)
    network = KINDS[kind](X.shape[1])
    training = train_classifier(network, X, labels, seed=SEED)
    undrinkable = np.flatnonzero(labels == 0)
    samples = X[np.random.default_rng(SEED).choice(undrinkable, SAMPLES, replace=False)]
    return water.formulate(samples, network.double(), training, budget=budget).problem


def floored(kind: str) -> dt.Problem:
    """The cheapest inputs within [-1, 1] at which a regression is high."""
    X, (targets, _) = quadratics(FEATURES, 1000, SEED)
    X, targets = X / np.abs(X).max(), (targets - targets.mean()) / targets.std()
    torch.manual_seed(SEED)
    network = KINDS[kind](FEATURES).double()
    _fit(network, X, targets)
    mip = dt.Mip(
        cost=[*np.linspace(1.0, 2.0, FEATURES), 0.0],
        lower=[*[-1.0] * FEATURES, float(np.quantile(targets, 0.9))],
        upper=[*[1.0] * FEATURES, np.inf],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(network, range(FEATURES), [FEATURES])
    return problem


def _fit(network: nn.Module, X: FloatArray, targets: FloatArray) -> None:
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    inputs, wanted = torch.as_tensor(X), torch.as_tensor(targets)[:, None]
    for _ in range(STEPS):
        optimiser.zero_grad()
        nn.functional.mse_loss(network(inputs), wanted).backward()  # type: ignore[no-untyped-call]
        optimiser.step()


PROBLEMS: dict[str, Callable[[str], dt.Problem]] = {
    "floor": floored,
    "water, a quarter of the budget": lambda kind: treated(kind, 0.25 * water.BUDGET),
    "water": treated,
}


def host_bound(mip: dt.Mip) -> float:
    """The optimum of the host alone, by an engine that dovetail does not use."""
    rows = LinearConstraint(mip.A, mip.row_lower, mip.row_upper) if mip.n_rows else ()
    found = milp(
        mip.sign * mip.cost, constraints=rows, bounds=Bounds(mip.lower, mip.upper), integrality=mip.integer
    )
    return float(mip.sign * found.fun + mip.offset)


def answered(asked: Asked) -> Answer:
    """Solve once."""
    torch.set_num_threads(1)
    problem = PROBLEMS[asked.problem](asked.kind)
    host, begin = host_bound(problem.mip), time.perf_counter()
    result = dt.solve(problem, time_limit=LIMIT, seed=SEED, gap=1e-6, log=False)
    seconds = time.perf_counter() - begin
    numbers = [np.nan if value is None else float(value) for value in (result.objective, result.bound)]
    return Answer(result.status.value, *numbers, result.bound_source, host, seconds)


def run(jobs: int) -> ResultTable:
    """Every kind on both problems."""
    asked = [Asked(kind, problem) for problem in PROBLEMS for kind in KINDS]
    table = ResultTable(
        "other_networks",
        f"Bounds of networks that no MIP is written for, after at most {LIMIT:g} s",
        ["problem", "network", "status", "objective", "bound", "the host's own", "closed", "s"],
        reading=(
            "'closed' is the share of the distance between the bound without the network and the objective "
            "that the proof closes. One thread. Water is maximised, floor minimised."
        ),
    )
    for question, answer in zip(asked, each(answered, asked, jobs), strict=True):
        way = answer.objective - answer.host
        closed = (answer.bound - answer.host) / way if way else np.nan
        table.rows.append(
            [
                question.problem,
                question.kind,
                answer.status,
                f"{answer.objective:.6g}",
                f"{answer.bound:.6g}",
                f"{answer.host:.6g}",
                f"{100 * closed:.1f} %",
                f"{answer.seconds:.1f}",
            ]
        )
    return table
