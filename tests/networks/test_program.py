"""Programs: numbers by their places."""

import numpy as np
import pytest
import torch
from torch import nn

from dovetail.core.errors import UnsupportedError
from dovetail.networks.program import Recording
from dovetail.predictors.torch.module import TorchPredictor
from tests.networks.graph_values import values


def example():
    """Two inputs; their sum and difference; a product; the larger; a softmax."""
    recording = Recording(2)
    both = recording.sums(
        np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([1.0, 1.0, 1.0, -1.0]), np.array([0.0, 0.5])
    )
    product = recording.products(both[:1], both[1:])
    larger = recording.maxima(both[None])
    shares = recording.shares(np.concatenate([product, larger])[None], logarithm=False)
    return recording, shares


def test_values():
    recording, shares = example()
    X = np.array([[1.0, 2.0], [-3.0, 0.25]])
    a, b = X.sum(axis=1), X[:, 0] - X[:, 1] + 0.5
    powers = np.exp(np.stack([a * b, np.maximum(a, b)], axis=1))
    np.testing.assert_allclose(
        recording.program(shares).values(X), powers / powers.sum(axis=1, keepdims=True), atol=1e-15
    )


def test_what_rises_is_dropped_from_a_class():
    recording, shares = example()
    program, kind = recording.program(shares).without_last(0.0)
    assert kind == "softmax" and len(program.operations) == 3 and len(program.outputs) == 2
    assert recording.program(shares[::-1]).without_last(0.0)[1] == ""  # in another order
    assert recording.program(shares[:1]).without_last(0.5)[1] == ""  # one of several


@pytest.mark.parametrize(
    ("kind", "threshold", "dropped"), [("sigmoid", 0.5, True), ("sigmoid", 1.0, False), ("tanh", 0.5, False)]
)
def test_a_single_output_loses_a_sigmoid_only(kind, threshold, dropped):
    recording = Recording(1)
    outputs = recording.functions(kind, np.array([0]))
    program, found = recording.program(outputs).without_last(threshold)
    assert found == (kind if dropped else "") and len(program.operations) == (0 if dropped else 1)


def test_endless_constants_are_refused():
    with pytest.raises(UnsupportedError, match="not finite"):
        Recording(1).constants(np.array([np.inf]))
    with pytest.raises(UnsupportedError, match="not finite"):
        Recording(1).sums(np.zeros(1, int), np.zeros(1, int), np.ones(1), np.array([-np.inf]))


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
    wider = program.with_more_inputs(2)
    X = np.random.default_rng(0).normal(size=(5, 5))
    assert np.array_equal(wider.values(X), program.values(X[:, :3]))
    graph = wider.graph()
    assert graph.inputs == 5 and np.allclose(values(graph, X), program.values(X[:, :3]))
    assert program.with_more_inputs(0) is program


def test_a_recording_goes_on_where_a_program_ends():
    program = TorchPredictor(nn.Linear(2, 1).double()).program(2)
    recording = Recording.resumed(program)
    longer = recording.program(recording.products(program.outputs, np.array([0])))
    X = np.array([[3.0, 1.0]])
    assert longer.values(X) == X[:, :1] * program.values(X)
    assert len(program.operations) + 1 == len(longer.operations)


def recorded(seed):
    """y = (max of two sums, their product)."""
    rng = np.random.default_rng(seed)
    recording = Recording(3)
    sums = recording.sums(
        np.repeat([0, 1], 3), np.tile(np.arange(3), 2), rng.normal(size=6), rng.normal(size=2)
    )
    largest = recording.maxima(sums[None])
    product = recording.products(sums[:1], sums[1:])
    recording.formats.add("float64")
    return recording.program(np.concatenate([largest, product]))


def test_each_part_says_what_it_said():
    programs = [recorded(seed) for seed in range(3)]
    X = np.random.default_rng(9).normal(size=(20, 3))
    recording, places = Recording.of_several(programs)
    for program, outputs in zip(programs, places, strict=True):
        assert np.allclose(recording.program(outputs).values(X), program.values(X), rtol=0, atol=1e-15)


def test_a_recording_goes_on_behind_all_of_them():
    programs = [recorded(0), recorded(1)]
    X = np.random.default_rng(9).normal(size=(20, 3))
    recording, places = Recording.of_several(programs)
    found = recording.products(places[0], places[1])
    whole = recording.program(found)
    assert np.allclose(whole.values(X), programs[0].values(X) * programs[1].values(X), rtol=0, atol=1e-14)
    assert whole.formats == {"float64"}
    assert not whole.convolves
