"""Graphs of layers, evaluated."""

import numpy as np
import pytest

from dovetail.core.errors import UnsupportedError
from dovetail.core.graph import Affine, Elementwise, Graph, GraphStep, Product
from dovetail.core.layers import Activation, Dense, evaluate
from dovetail.networks.functions import FUNCTIONS


def test_layers_as_a_graph():
    rng = np.random.default_rng(0)
    layers = (
        Dense(rng.normal(size=(4, 3)), rng.normal(size=4)),
        Activation("tanh"),
        Dense(rng.normal(size=(2, 4)), rng.normal(size=2)),
        Activation("sigmoid"),
    )
    graph, X = Graph.of_layers(layers, 3), rng.normal(size=(7, 3))
    assert graph.sizes == (3, 4, 4, 2, 2) and graph.outputs == 2
    np.testing.assert_allclose(graph.values(X), evaluate(layers, X), atol=1e-15)
    assert np.array_equal(Graph.of_layers((), 3).values(X), X)


def test_softmax_is_no_function_of_single_values():
    with pytest.raises(UnsupportedError, match="softmax"):
        Graph.of_layers((Activation("softmax"),), 3)


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
    np.testing.assert_allclose(Graph(2, steps).values(X), (X + np.maximum(X, 0.0)) * np.exp(X))
    assert len(Graph(2, steps).vectors(X)) == 5


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_functions_are_finite_far_out(kind):
    z = np.array([1e-3, 1.0, 30.0])
    assert np.all(np.isfinite(FUNCTIONS[kind].value(z)))
