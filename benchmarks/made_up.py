"""Water problems of any size, made in no time: what a step costs does not depend on training."""

from __future__ import annotations

import numpy as np
import torch

from dovetail_study.problems import networks
from dovetail_study.problems.training import Training
from dovetail_study.problems.water import FEATURES, Water, formulate


def made_up(n: int, network: str) -> Water:
    """Random samples and an untrained network, its logits shifted so that one sample in ten is potable."""
    torch.manual_seed(0)
    net = networks.build(network, len(FEATURES))
    samples = np.random.default_rng(0).standard_normal((n, len(FEATURES)))
    with torch.no_grad():
        logits = net(torch.as_tensor(samples, dtype=torch.float32))
        list(net.parameters())[-1].sub_(torch.quantile(logits, 0.9))
    parameters = sum(p.numel() for p in net.parameters())
    return formulate(samples, net, Training(float("nan"), float("nan"), float(logits.std()), parameters))
