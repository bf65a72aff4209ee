"""Layers: what they compute, the ranges they promise, and networks cut off where a class can be read."""

import numpy as np
import pytest
import torch

from dovetail.core.errors import UnsupportedError
from dovetail.networks.layers import (
    ACTIVATIONS,
    Activation,
    Dense,
    dropped,
    evaluate,
    folded,
    program_of,
    thresholded,
)

RNG = np.random.default_rng(0)
HIDDEN = Dense(RNG.normal(size=(4, 3)), RNG.normal(size=4))
OUT = Dense(RNG.normal(size=(2, 4)), RNG.normal(size=2))


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_activations_are_torch_s(kind):
    X = RNG.normal(size=(5, 3)) * 4.0
    own = getattr(torch.nn.functional, kind, None) or getattr(torch, kind)
    there = own(torch.tensor(X), dim=1) if kind == "softmax" else own(torch.tensor(X))
    assert evaluate((Activation(kind),), X) == pytest.approx(there.numpy(), abs=1e-8)


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_ranges_hold_every_value(kind):
    layers = (HIDDEN, Activation(kind), OUT)
    lower, upper = np.full((1, 3), -1.0), np.array([[0.0, 2.0, 1.0]])
    program = program_of(layers, 3)
    low, high = (side[:, program.outputs] for side in program.ranges(lower, upper))
    values = evaluate(layers, RNG.uniform(lower, upper, (500, 3)))
    assert np.all((low - 1e-12 <= values) & (values <= high + 1e-12))


def test_what_rises_strictly_is_dropped_from_a_class():
    assert dropped((HIDDEN, Activation("sigmoid")), 1, 0.5) == "sigmoid"
    assert dropped((HIDDEN, Activation("sigmoid")), 1, 0.0) == ""
    assert dropped((HIDDEN, Activation("relu")), 4, 0.0) == ""
    assert dropped((HIDDEN, Activation("softmax")), 4, 0.0) == "softmax"


def test_a_threshold_on_a_probability_becomes_one_on_its_logit():
    one = Dense(np.ones((1, 3)), np.zeros(1))
    X = RNG.normal(size=(50, 3))
    probability = evaluate((one, Activation("sigmoid")), X)
    shifted = evaluate(thresholded((one, Activation("sigmoid")), 1, 0.8, 0.0), X)
    assert np.array_equal(probability >= 0.8, shifted >= 0.0)


def test_a_network_without_a_last_dense_layer_gets_one():
    layers = thresholded((HIDDEN, Activation("relu")), 4, 0.0, 0.0)
    X = RNG.normal(size=(5, 3))
    assert np.array_equal(evaluate(layers, X), evaluate((HIDDEN, Activation("relu")), X))


def test_neighbouring_dense_layers_are_multiplied_out():
    eye = Dense(np.eye(4), np.zeros(4))
    layers = folded((HIDDEN, eye, Activation("relu"), eye, OUT))
    assert [type(layer) for layer in layers] == [Dense, Activation, Dense]
    X = RNG.normal(size=(5, 3))
    assert evaluate(layers, X) == pytest.approx(evaluate((HIDDEN, Activation("relu"), OUT), X))
    assert folded((eye,)) == ()


def test_layers_of_another_width_are_refused():
    with pytest.raises(UnsupportedError, match="3 inputs reads 5 numbers"):
        program_of((HIDDEN,), 5)
