"""Several programs as one."""

import numpy as np
import torch
from torch import nn

from dovetail.core.program_union import together
from dovetail.predictors.torch.module import TorchPredictor


def test_each_says_what_it_said_alone():
    torch.manual_seed(0)
    nets = [nn.Sequential(nn.Linear(3, size), nn.ReLU(), nn.Linear(size, 2)).double() for size in (4, 1, 5)]
    programs = [TorchPredictor(net).program(3) for net in nets]
    recording, places = together(programs)
    X = np.random.default_rng(0).normal(size=(6, 3))
    for program, outputs in zip(programs, places, strict=True):
        assert np.array_equal(recording.program(outputs).values(X), program.values(X))
