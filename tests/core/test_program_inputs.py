"""A program over more inputs than it reads says what it said before."""

import numpy as np
import pytest
import torch
from torch import nn

from dovetail.core.graph import Graph
from dovetail.core.program import Recording
from dovetail.core.program_graph import graph_of
from dovetail.core.program_inputs import with_more_inputs
from dovetail.predictors.torch.module import TorchPredictor


@pytest.mark.parametrize(
    "tail",
    [
        nn.Identity(),
        nn.Sigmoid(),
        nn.Softmax(dim=1),
        nn.LayerNorm(4),
        nn.Hardswish(),
        nn.Softplus(),
    ],
    ids=lambda tail: type(tail).__name__,
)
def test_the_same_values_whatever_stands_behind(tail):
    torch.manual_seed(0)
    program = TorchPredictor(
        nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), tail).double()
    ).program(3)
    wider = with_more_inputs(program, 2)
    X = np.random.default_rng(0).normal(size=(5, 5))
    assert np.array_equal(wider.values(X), program.values(X[:, :3]))
    graph: Graph = graph_of(wider)
    assert graph.inputs == 5 and np.allclose(graph.values(X), program.values(X[:, :3]))
    assert with_more_inputs(program, 0) is program


def test_a_recording_goes_on_where_a_program_ends():
    program = TorchPredictor(nn.Linear(2, 1).double()).program(2)
    recording = Recording.resumed(program)
    longer = recording.program(recording.products(program.outputs, np.array([0])))
    X = np.array([[3.0, 1.0]])
    assert longer.values(X) == X[:, :1] * program.values(X)
    assert len(program.operations) + 1 == len(longer.operations)
