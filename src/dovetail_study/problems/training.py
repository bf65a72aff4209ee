"""Trains the benchmark networks, and reports whether the result is constant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import PredictorError
from dovetail_study.problems.networks import Recipe, Scale, ends, fold

DEAD = 1e-3
"""A network whose logits (or standardised values) vary less than this counts as constant."""
HELD_OUT = 0.2
"""Share of held-out rows: the usual one, and one of two thousand rows, enough to distinguish accuracies a few
per cent apart."""
BATCH = 64
"""Rows per step: dozens of steps an epoch on data of this size."""
CLASSIFICATION = Recipe()
REGRESSION = Recipe(rate=5e-3, decay=1e-4)
"""Longer steps and less decay than for classes: targets are standardised, and decay pulls to their mean."""


@dataclass(frozen=True)
class Training:
    """The quality of a trained classifier."""

    accuracy: float
    """On rows that were held out."""
    majority: float
    """Accuracy of the more frequent class, on the same rows."""
    spread: float
    """Standard deviation of the logits over all rows."""
    parameters: int

    def __str__(self) -> str:
        return (
            f"{self.parameters:,} parameters, accuracy {self.accuracy:.3f} on held-out rows "
            f"(majority class {self.majority:.3f}), spread of the logits {self.spread:.2g}"
        )


@dataclass(frozen=True)
class Regression:
    """The quality of a trained regressor."""

    r2: float
    """R2 on held-out rows; 0 is the prediction of their mean, 1 is perfect.

    The same rows choose the epoch whose weights are kept, so this is slightly optimistic.
    """
    error: float
    """Root of the mean squared error on the same rows, in the units of the target."""
    spread: float
    """Standard deviation of the predictions over all rows, as a share of that of the target."""
    parameters: int

    def __str__(self) -> str:
        return (
            f"{self.parameters:,} parameters, R2 {self.r2:.3f} on held-out rows (their mean 0), "
            f"error {self.error:.3g}, spread {self.spread:.2g} of the target's"
        )


def train_classifier(
    network: nn.Module,
    X: FloatArray,
    labels: FloatArray,
    *,
    seed: int,
    recipe: Recipe = CLASSIFICATION,
    epochs: int = 40,
    allow_constant: bool = False,
    device: str = "cpu",
) -> Training:
    """Train a network whose single output is a logit; refuse a constant result.

    Adam with weight decay on shuffled batches, gradients clipped. The weights with the best
    held-out loss are kept, which stops large networks from learning small data by heart.
    """
    held = _fit(network, X, labels, nn.BCEWithLogitsLoss(), recipe, seed, epochs, device)
    report = _assess(network, X, labels, held)
    if report.spread < DEAD and not allow_constant:
        raise PredictorError(
            f"the trained network says the same of everything (spread of its logits {report.spread:.1e}, "
            f"accuracy {report.accuracy:.3f} against {report.majority:.3f} for the majority class). "
            "Use He initialisation or a residual network, or allow_constant=True to keep it."
        )
    return report


def train_digits(
    network: nn.Module, X: FloatArray, labels: IntArray, *, seed: int, epochs: int = 40
) -> tuple[Training, IntArray]:
    """Train a network with a logit for each class, as `train_classifier` does; and the rows held out."""
    one_hot = np.eye(int(labels.max()) + 1)[labels]
    held = _fit(network, X, one_hot, nn.CrossEntropyLoss(), CLASSIFICATION, seed, epochs, "cpu")
    with torch.no_grad():
        logits = network(torch.as_tensor(X, dtype=torch.float32)).numpy()
    report = Training(
        accuracy=float((np.argmax(logits[held], axis=1) == labels[held]).mean()),
        majority=float(np.bincount(labels[held]).max() / held.size),
        spread=float(logits.std()),
        parameters=_size(network),
    )
    return report, held


def _assess(network: nn.Module, X: FloatArray, labels: FloatArray, held: IntArray) -> Training:
    logits = _values(network, X)
    truth = labels[held] > 0.5
    share = float(truth.mean())
    return Training(
        accuracy=float(((logits[held] >= 0) == truth).mean()),
        majority=max(share, 1.0 - share),
        spread=float(logits.std()),
        parameters=_size(network),
    )


def train_regressor(
    network: nn.Module,
    X: FloatArray,
    targets: FloatArray,
    *,
    seed: int,
    recipe: Recipe = REGRESSION,
    epochs: int = 40,
    allow_constant: bool = False,
) -> Regression:
    """Train a network with one output on raw rows; its inputs and outputs are in raw units afterwards.

    Features and targets are standardised for the training, since a feature in the hundreds beside one
    in the thousandths is learnt badly or not at all; the scaling is then folded into the first and
    last layers. The folded network is float64: a feature that varies in its third decimal
    (the density of wine) becomes a large weight times a large difference, which float32 rounds away.
    """
    ends(network)  # refuses, before any work, a network that could not be folded
    into, out = Scale.of(X), Scale.of(targets)
    goal = out.standard(targets)
    held = _fit(network, into.standard(X), goal, nn.MSELoss(), recipe, seed, epochs, "cpu")
    fold(network, into, out)
    report = _assess_regressor(network, X, targets, held)
    if report.spread < DEAD and not allow_constant:
        raise PredictorError(
            f"the trained network says the same of everything (spread of its values {report.spread:.1e} "
            f"of the target's, R2 {report.r2:.3f}). "
            "Train for more epochs or use a smaller network, or allow_constant=True to keep it."
        )
    return report


def _fit(
    network: nn.Module,
    X: FloatArray,
    goal: FloatArray,
    loss: nn.Module,
    recipe: Recipe,
    seed: int,
    epochs: int,
    device: str,
) -> IntArray:
    """Train in place on `device`, move the network to the CPU, and return which rows were held out."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    held = order[: int(HELD_OUT * len(X))]
    kept = torch.as_tensor(order[len(held) :])
    inputs = torch.as_tensor(X, dtype=torch.float32, device=device)
    targets = torch.as_tensor(goal, dtype=torch.float32, device=device)
    network.to(device)
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(network.parameters(), lr=recipe.rate, weight_decay=recipe.decay)
    best, best_weights = np.inf, {k: v.clone() for k, v in network.state_dict().items()}
    for _ in range(epochs):
        network.train()
        for batch in torch.split(kept[torch.randperm(len(kept), generator=generator)], BATCH):
            optimiser.zero_grad()
            loss(network(inputs[batch]).squeeze(1), targets[batch]).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
        network.eval()
        with torch.no_grad():
            now = float(loss(network(inputs[held]).squeeze(1), targets[held]))
        if now < best:
            best, best_weights = now, {k: v.clone() for k, v in network.state_dict().items()}
    network.load_state_dict(best_weights)
    network.to("cpu")
    return held


def _assess_regressor(network: nn.Module, X: FloatArray, targets: FloatArray, held: IntArray) -> Regression:
    values = _values(network, X)
    truth = targets[held]
    squared = float(((values[held] - truth) ** 2).mean())
    return Regression(
        r2=1.0 - squared / float(truth.var()) if truth.var() > 0 else 0.0,
        error=float(np.sqrt(squared)),
        spread=float(values.std() / Scale.of(targets).deviation),
        parameters=_size(network),
    )


def _values(network: nn.Module, X: FloatArray) -> FloatArray:
    """The network's single output for every row, computed in its own dtype."""
    dtype = next(network.parameters()).dtype
    with torch.no_grad():
        values: FloatArray = network(torch.as_tensor(X, dtype=dtype)).squeeze(1).double().numpy()
    return values


def _size(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())
