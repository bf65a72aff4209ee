"""Small network steps: a block of samples, where its copies are drawn, and limits on its outputs."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from dovetail.core.predictor import as_predictor
from dovetail.run.network_step import AugmentedTerms, NetworkBlock, Rows
from dovetail.testing.networks import FEATURES

SAMPLES = 6


def network_block(
    net: nn.Module,
    *,
    samples: int = SAMPLES,
    features: int = FEATURES,
    outputs: int = 1,
    rows: Rows | None = None,
    classifies: bool = False,
    lower: float = -1.0,
    upper: float = 1.0,
) -> NetworkBlock:
    """Samples of one network, each input between `lower` and `upper`."""
    predictor = as_predictor(net)
    probe = np.random.default_rng(0).uniform(-1, 1, (16, features))
    forward = predictor.snapshot("cpu")
    spread = forward(torch.tensor(probe)).std(dim=0).detach()
    shape = (samples, features)
    return NetworkBlock(
        name="net",
        forward=forward,
        smooth=predictor.describe(probe).smooth,
        classifies=classifies,
        probability=False,
        threshold=0.0,
        spread=spread if not classifies else spread.mean().expand(outputs),
        lower=torch.full(shape, lower, dtype=torch.float64),
        upper=torch.full(shape, upper, dtype=torch.float64),
        scale=torch.ones(shape, dtype=torch.float64),
        rows=rows,
    )


def augmented_terms(
    *,
    samples: int = SAMPLES,
    features: int = FEATURES,
    outputs: int = 1,
    seed: int = 0,
    weight: float = 2.0,
    price: float = 1.0,
    stiffness: float = 0.0,
) -> AugmentedTerms:
    """Points to be drawn to at random, with a price on outputs and a weight on how far they are off."""
    generator = torch.Generator().manual_seed(seed)

    def draw(columns: int) -> Tensor:
        return torch.rand((samples, columns), generator=generator, dtype=torch.float64) * 2 - 1

    return AugmentedTerms(
        x=draw(features),
        multiplier=0.3 * draw(features),
        weight=torch.full((samples, features), weight, dtype=torch.float64),
        y=draw(outputs),
        output_multiplier=torch.full((samples, outputs), price, dtype=torch.float64),
        output_weight=torch.full((samples, outputs), stiffness, dtype=torch.float64),
    )


def output_rows(lower: float, upper: float, *, samples: int = SAMPLES, features: int = FEATURES) -> Rows:
    """One row for each sample, named "limit", that holds its first output between two values."""
    return Rows(
        torch.zeros(samples, 1, features, dtype=torch.float64),
        torch.ones(samples, 1, 1, dtype=torch.float64),
        torch.full((samples, 1), lower, dtype=torch.float64),
        torch.full((samples, 1), upper, dtype=torch.float64),
        (("limit",),) * samples,
    )


def step_value(block: NetworkBlock, terms: AugmentedTerms, u: Tensor) -> Tensor:
    """(n,) the step's objective at `u`, evaluated here and not by a sub-solver."""
    with torch.no_grad():
        return terms.value(u, block.outputs(block.values(u)))
