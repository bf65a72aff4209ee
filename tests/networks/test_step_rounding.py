"""Rounding step by step: no float32 route through a layer is farther from it than its step says."""

from itertools import pairwise

import numpy as np
import pytest

from dovetail.networks.arithmetic import FLOAT32, FORMATS
from dovetail.networks.graph import Affine
from dovetail.networks.layers import Activation, Dense, evaluate, program_of, thresholded
from dovetail.networks.step_rounding import step_rounding
from tests.networks.rounding_routes import routes


def random_layers(rng, widths, kind="relu", scale=1.0):
    layers = []
    for before, after in pairwise(widths):
        weight = (rng.normal(size=(after, before)) * scale * np.sqrt(2.0 / before)).astype(np.float32)
        bias = rng.normal(size=after).astype(np.float32)
        layers += [Dense(weight.astype(float), bias.astype(float)), Activation(kind)]
    return tuple(layers[:-1])


def of_layers(layers, arithmetic, graph):
    return step_rounding(program_of(layers, graph.inputs, arithmetic), graph)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["relu", "tanh", "sigmoid"])
def test_each_step_is_as_near_as_was_said(seed, kind):
    rng = np.random.default_rng(seed)
    layers = random_layers(rng, (5, 33, 20, 2), kind)
    graph = program_of(layers, 5).graph()
    said = of_layers(layers, FLOAT32, graph)
    X = rng.normal(size=(40, 5)) * 10.0 ** rng.uniform(-3, 3, (40, 1))
    worst = 0.0
    for vectors in routes(layers, X):
        assert np.all(np.abs(vectors[0] - X) <= said.rate[0] * np.abs(X) + said.more[0])
        for k, (step, read, found) in enumerate(zip(graph.steps, vectors, vectors[1:], strict=False), 1):
            exact, error = evaluate(layers[k - 1 : k], read), said.more[k]
            if isinstance(step.operation, Affine):
                size = np.abs(read) @ np.abs(step.operation.weights[0]).T + np.abs(step.operation.bias)
                error = error + said.rate[k] * size
            assert np.all(np.abs(found - exact) <= error)
            worst = max(worst, float(np.max(np.abs(found - exact) / np.maximum(error, 1e-30))))
    assert worst > 0.01  # a hundredth of what is said would be seen to be too little


def test_a_threshold_in_the_bias_keeps_the_deployed_size():
    layers = (Dense(np.ones((1, 2)), np.array([100.0])), Activation("sigmoid"))
    graph = program_of(thresholded(layers, 1, 1.0 / (1.0 + np.exp(-100.0 / 3.0)), 0.0), 2).graph()
    said = of_layers(layers[:-1], FLOAT32, graph)
    left = abs(float(graph.steps[0].operation.bias[0]))
    assert left < 100.0
    assert said.rate[1][0] * left + said.more[1][0] >= said.rate[1][0] * 100.0


def test_other_graphs_and_arithmetics_are_not_spoken_of():
    layers = random_layers(np.random.default_rng(0), (3, 4, 2))
    graph = program_of(layers, 3).graph()
    moved = (Dense(2.0 * layers[0].weight, layers[0].bias), *layers[1:])
    assert of_layers(layers, FLOAT32, graph) is not None
    assert of_layers(moved, FLOAT32, graph) is None
    assert of_layers((*layers, Activation("relu")), FLOAT32, graph) is None
    assert (
        of_layers((layers[0], Activation("softplus")), FLOAT32, program_of((layers[0],), 3).graph()) is None
    )
    wide = (Dense(np.ones((1, 3000)), np.zeros(1)),)  # a sum too long for the format
    assert of_layers(wide, FORMATS["float16"], program_of(wide, 3000).graph()) is None


def test_a_relu_at_the_end_is_handed_on():
    layers = (*random_layers(np.random.default_rng(0), (3, 4, 1)), Activation("relu"))
    graph = program_of(thresholded(layers, 1, 0.5, 0.0), 3).graph()
    said = of_layers(layers, FLOAT32, graph)
    assert said is not None and said.rate[-1] == 0.0
