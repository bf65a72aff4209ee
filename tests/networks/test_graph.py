"""Graphs of programs; networks of all kinds are in tests/predictors/torch/test_program.py."""

import numpy as np
import pytest

from dovetail.core.errors import UnsupportedError
from dovetail.networks import graph as graphs
from dovetail.networks.functions import FUNCTIONS
from dovetail.networks.graph import GATED, Affine, Elementwise, Graph, GraphStep, Product
from dovetail.networks.layers import Activation, Dense, evaluate, program_of
from dovetail.networks.program import Recording
from tests.networks.graph_values import values, vectors


def test_layers_as_a_graph():
    rng = np.random.default_rng(0)
    layers = (
        Dense(rng.normal(size=(4, 3)), rng.normal(size=4)),
        Activation("tanh"),
        Dense(rng.normal(size=(2, 4)), rng.normal(size=2)),
        Activation("sigmoid"),
    )
    graph, X = program_of(layers, 3).graph(), rng.normal(size=(7, 3))
    assert graph.sizes == (3, 4, 4, 2, 2) and graph.outputs == 2
    np.testing.assert_allclose(values(graph, X), evaluate(layers, X), atol=1e-15)
    assert np.array_equal(values(program_of((), 3).graph(), X), X)


def test_several_sources():
    """x -> (x + relu(x)) exp(x)."""
    eye, zero = np.eye(2), np.zeros(2)
    steps = (
        GraphStep(Elementwise("relu"), (0,), 2),
        GraphStep(Elementwise("exp"), (0,), 2),
        GraphStep(Affine((eye, eye), zero), (0, 1), 2),
        GraphStep(Product(), (3, 2), 2),
    )
    X = np.array([[-1.0, 2.0]])
    np.testing.assert_allclose(values(Graph(2, steps), X), (X + np.maximum(X, 0.0)) * np.exp(X))
    assert len(vectors(Graph(2, steps), X)) == 5


def assert_same_values(recording, outputs, rng):
    program, X = recording.program(outputs), rng.normal(size=(30, recording.inputs))
    graph = program.graph()
    np.testing.assert_allclose(values(graph, X), program.values(X), atol=1e-12)
    return graph


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("logarithm", [False, True])
def test_softmax_of_rows(count, logarithm):
    recording = Recording(2 * count)
    outputs = recording.shares(np.arange(2 * count).reshape(2, count), logarithm=logarithm)
    assert_same_values(recording, outputs, np.random.default_rng(0))


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_maxima(count):
    recording = Recording(count)
    assert_same_values(recording, recording.maxima(np.arange(count)[None]), np.random.default_rng(0))


def test_sums_are_multiplied_out_and_what_nothing_reads_is_left_out():
    rng, recording = np.random.default_rng(0), Recording(3)
    numbers = np.arange(3)
    for _ in range(4):
        grid = np.indices((3, 3)).reshape(2, -1)
        numbers = recording.sums(grid[0], numbers[grid[1]], rng.normal(size=9), rng.normal(size=3))
    recording.functions("exp", numbers)
    graph = assert_same_values(recording, numbers, rng)
    assert len(graph.steps) == 1 and isinstance(graph.steps[0].operation, Affine)


def test_outputs_may_be_inputs_or_constants():
    rng, recording = np.random.default_rng(0), Recording(3)
    constants = recording.constants(np.array([4.0]))
    assert_same_values(recording, np.array([2, 0]), rng)
    assert_same_values(recording, np.concatenate([constants, [1]]), rng)
    assert_same_values(recording, constants, rng)
    powers = recording.functions("exp", np.arange(3))
    recording.functions("tanh", powers)
    assert_same_values(recording, powers, rng)  # not the last step


def test_what_two_steps_read_is_made_once():
    rng, recording = np.random.default_rng(0), Recording(2)
    grid = np.indices((2, 2)).reshape(2, -1)
    z = recording.sums(grid[0], grid[1], rng.normal(size=4), rng.normal(size=2))
    outputs = recording.products(z, recording.functions("tanh", z))
    assert len(assert_same_values(recording, outputs, rng).steps) == 3


@pytest.mark.parametrize("kind", GATED.values())
@pytest.mark.parametrize("first", [True, False])
def test_a_number_times_functions_of_it_is_one_function(kind, first):
    rng, recording = np.random.default_rng(0), Recording(2)
    grid = np.indices((2, 2)).reshape(2, -1)
    gate = z = recording.sums(grid[0], grid[1], rng.normal(size=4), rng.normal(size=2))
    for one in FUNCTIONS[kind].gate:
        gate = recording.functions(one, gate)
    outputs = recording.products(z, gate) if first else recording.products(gate, z)
    graph = assert_same_values(recording, outputs, rng)
    assert [step.operation for step in graph.steps[1:]] == [Elementwise(kind)]


def test_a_number_times_functions_of_another_is_a_product():
    rng, recording = np.random.default_rng(0), Recording(4)
    gate = recording.functions("sigmoid", np.array([1, 0]))
    for other in ([0, 1], [2, 3]):
        graph = assert_same_values(recording, recording.products(np.array(other), gate), rng)
        assert isinstance(graph.steps[-1].operation, Product)
    twice = recording.functions("sigmoid", gate)
    graph = assert_same_values(recording, recording.products(np.array([1, 0]), twice), rng)
    assert isinstance(graph.steps[-1].operation, Product)


def test_normalised_rows():
    recording = Recording(6)
    outputs = recording.normalised(np.arange(6).reshape(2, 3), 1e-5)
    assert_same_values(recording, outputs, np.random.default_rng(0))


def test_too_large(monkeypatch):
    monkeypatch.setattr(graphs, "LARGEST", 5)
    recording = Recording(3)
    with pytest.raises(UnsupportedError, match="more than 5 numbers"):
        recording.program(recording.functions("exp", np.arange(3)[::-1].copy())).graph()
