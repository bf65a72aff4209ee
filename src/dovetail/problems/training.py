"""Training the benchmark networks, and saying whether what came out is a network or a constant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError

DEAD = 1e-3
"""A network whose logits vary less than this over the data says the same of everything."""
HELD_OUT = 0.2
BATCH = 64


@dataclass(frozen=True)
class Training:
    """What a trained classifier is worth."""

    accuracy: float
    """On rows that were held out."""
    majority: float
    """Accuracy of always saying the more frequent class, on the same rows."""
    spread: float
    """Standard deviation of the logits over all rows."""
    parameters: int

    def __str__(self) -> str:
        return (
            f"{self.parameters:,} parameters, accuracy {self.accuracy:.3f} on held-out rows "
            f"(majority class {self.majority:.3f}), spread of the logits {self.spread:.2g}"
        )


def train_classifier(
    network: nn.Module,
    X: FloatArray,
    labels: FloatArray,
    *,
    seed: int,
    rate: float = 1e-3,
    decay: float = 1e-3,
    epochs: int = 40,
    allow_constant: bool = False,
    device: str = "cpu",
) -> Training:
    """Train a network whose single output is a logit; refuse one that came out constant.

    Adam with weight decay on shuffled batches, gradients clipped. The weights with the best
    held-out loss are kept, which stops large networks from learning small data by heart.
    """
    chance = np.random.default_rng(seed)
    order = chance.permutation(len(X))
    held = order[: int(HELD_OUT * len(X))]
    kept = torch.as_tensor(order[len(held) :])
    inputs = torch.as_tensor(X, dtype=torch.float32, device=device)
    targets = torch.as_tensor(labels, dtype=torch.float32, device=device)
    network.to(device)
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(network.parameters(), lr=rate, weight_decay=decay)
    loss = nn.BCEWithLogitsLoss()
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
    report = _assess(network.to("cpu"), inputs.cpu(), labels, held)
    if report.spread < DEAD and not allow_constant:
        raise PredictorError(
            f"the trained network says the same of everything (spread of its logits {report.spread:.1e}, "
            f"accuracy {report.accuracy:.3f} against {report.majority:.3f} for the majority class). "
            "Use He initialisation or a residual network, or allow_constant=True to keep it."
        )
    return report


def _assess(network: nn.Module, inputs: torch.Tensor, labels: FloatArray, held: np.ndarray) -> Training:
    with torch.no_grad():
        logits = network(inputs).squeeze(1).double().numpy()
    truth = labels[held] > 0.5
    share = float(truth.mean())
    return Training(
        accuracy=float(((logits[held] >= 0) == truth).mean()),
        majority=max(share, 1.0 - share),
        spread=float(logits.std()),
        parameters=sum(p.numel() for p in network.parameters()),
    )
