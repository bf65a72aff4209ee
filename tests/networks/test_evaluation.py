"""Stacked graphs against the networks themselves: values and derivatives by torch, and by differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dovetail.networks.evaluation import StackedGraphs, shape_of
from dovetail.networks.functions import LAYERS
from dovetail.networks.graph import Affine, Elementwise, Graph, GraphStep, Product
from dovetail.networks.layers import Activation, Dense, program_of

KINDS = sorted(LAYERS)


def _dense(inputs: int, outputs: int, seed: int) -> Dense:
    r = np.random.default_rng(seed)
    return Dense(r.normal(size=(outputs, inputs)), r.normal(size=outputs))


def _torch(layers: tuple[Dense | Activation, ...], x: torch.Tensor) -> torch.Tensor:
    for layer in layers:
        if isinstance(layer, Dense):
            x = x @ torch.from_numpy(layer.weight).T + torch.from_numpy(layer.bias)
        else:
            x = getattr(torch.nn, LAYERS[layer.kind].layer)()(x)
    return x


@pytest.mark.parametrize("kind", KINDS)
def test_values_and_derivatives_are_those_of_torch(kind: str) -> None:
    """Three networks of one shape at once."""
    nets = [
        (
            _dense(3, 5, seed),
            Activation(kind),
            _dense(5, 4, seed + 10),
            Activation(kind),
            _dense(4, 2, seed + 20),
        )
        for seed in range(3)
    ]
    graphs = [program_of(layers, 3).graph() for layers in nets]
    assert len({shape_of(graph) for graph in graphs}) == 1
    X = np.random.default_rng(7).normal(size=(3, 6, 3))
    stacked = StackedGraphs(graphs)
    values, slopes = stacked.slopes(X)
    np.testing.assert_array_equal(values, stacked.values(X))
    for k, layers in enumerate(nets):
        for i, x in enumerate(X[k]):
            point = torch.from_numpy(x)
            np.testing.assert_allclose(values[k, i], _torch(layers, point).numpy(), rtol=1e-9, atol=1e-9)
            exact = torch.autograd.functional.jacobian(lambda u, layers=layers: _torch(layers, u), point)
            np.testing.assert_allclose(slopes[k, i], exact.numpy(), rtol=1e-7, atol=1e-9)


def test_products_and_steps_that_are_read_twice() -> None:
    """(A x) * tanh(A x) + x by differences."""
    weight = np.random.default_rng(1).normal(size=(2, 2))
    steps = (
        GraphStep(Affine((weight,), np.ones(2)), (0,), 2),
        GraphStep(Elementwise("tanh"), (1,), 2),
        GraphStep(Product(), (1, 2), 2),
        GraphStep(Affine((np.eye(2), np.eye(2)), np.zeros(2)), (3, 0), 2),
    )
    stacked, X = StackedGraphs([Graph(2, steps)]), np.random.default_rng(2).normal(size=(1, 4, 2))
    values, slopes = stacked.slopes(X)
    linear = X @ weight.T + 1.0
    np.testing.assert_allclose(values, linear * np.tanh(linear) + X, rtol=1e-12)
    for j in range(2):
        step = 1e-6 * np.eye(2)[j]
        difference = (stacked.values(X + step) - stacked.values(X - step)) / 2e-6
        np.testing.assert_allclose(slopes[..., j], difference, rtol=1e-6, atol=1e-8)


def test_outputs_that_depend_on_nothing_have_no_slope() -> None:
    """The derivative is 0, not missing."""
    graph = Graph(2, (GraphStep(Affine((np.zeros((1, 2)),), np.ones(1)), (0,), 1),))
    values, slopes = StackedGraphs([graph]).slopes(np.ones((1, 3, 2)))
    assert np.all(values == 1.0) and np.all(slopes == 0.0) and slopes.shape == (1, 3, 1, 2)
