"""Rounding: no network that torch or numpy computes is further from its exact layers than was said."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from dovetail.core.class_rounding import class_slack
from dovetail.core.layers import Activation, Dense, evaluate, thresholded
from dovetail.core.rounding import FLOAT32, FLOAT64, FORMATS, Computation, rounding_error
from tests.conftest import FULL

SEEDS = range(40 if FULL else 8)
KINDS = ("relu", "sigmoid", "tanh", "softplus", "softmax")


def random_layers(rng, features, outputs, depth, *, size=1.0, kinds=("relu",)):
    layers, width = [], features
    for _ in range(depth):
        wide = int(rng.integers(2, 40))
        layers += [dense(rng, width, wide, size), Activation(str(rng.choice(kinds)))]
        width = wide
    return (*layers, dense(rng, width, outputs, size))


def dense(rng, into, out, size):
    weight = rng.normal(size=(out, into)) / np.sqrt(into)
    return Dense(weight.astype(np.float32).astype(float), (size * rng.normal(size=out)).astype(np.float32))


def as_module(layers, dtype):
    makes = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "softplus": nn.Softplus}
    parts = []
    for layer in layers:
        if isinstance(layer, Activation):
            parts.append(nn.Softmax(dim=1) if layer.kind == "softmax" else makes[layer.kind]())
            continue
        linear = nn.Linear(*layer.weight.shape[::-1], dtype=dtype)
        with torch.no_grad():
            linear.weight.copy_(torch.as_tensor(layer.weight))
            linear.bias.copy_(torch.as_tensor(layer.bias))
        parts.append(linear)
    return nn.Sequential(*parts)


def rounded(layers, name):
    """The same layers with weights as the format holds them."""
    dtype = getattr(torch, name)
    held = lambda array: torch.as_tensor(array).to(dtype).double().numpy()  # noqa: E731
    return tuple(
        layer if isinstance(layer, Activation) else Dense(held(layer.weight), held(layer.bias))
        for layer in layers
    )


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("seed", SEEDS)
def test_torch_in_any_batch_stays_within_the_error(name, seed):
    rng = np.random.default_rng(seed)
    size = float(10.0 ** rng.uniform(0, 5 if name == "float32" else 1))
    layers = rounded(random_layers(rng, 5, 3, int(rng.integers(1, 4)), size=size, kinds=KINDS), name)
    module, dtype = as_module(layers, getattr(torch, name)), getattr(torch, name)
    lower, upper = -rng.uniform(0, 4, 5), rng.uniform(0, 4, 5)
    X = rng.uniform(lower, upper, (60, 5))
    exact, error = evaluate(layers, X), rounding_error(layers, FORMATS[name], lower, upper)
    with torch.no_grad():
        together = module(torch.tensor(X, dtype=dtype)).double().numpy()
        alone = [module(torch.tensor(x[None], dtype=dtype))[0].double().numpy() for x in X]
    assert np.all(np.abs(together - exact) <= error)
    assert np.all(np.abs(np.array(alone) - exact) <= error)
    at_points = rounding_error(layers, FORMATS[name], X, X)
    assert np.all(np.abs(together - exact) <= at_points)
    assert np.all(at_points <= error * (1.0 + 1e-12))


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_in_the_worst_order_stay_within_the_error(seed):
    """float32 sums one by one, from the largest terms on, against rational numbers."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    weight = rng.normal(size=n).astype(np.float32)
    x = (rng.normal(size=n) * 10.0 ** rng.uniform(-3, 3, n)).astype(np.float32)
    bias = np.float32(rng.normal())
    layers = (Dense(weight[None].astype(float), np.array([float(bias)])),)
    products = weight * x
    total = bias
    for k in np.argsort(-np.abs(products)):
        total = np.float32(total + products[k])
    exact = sum(
        (Fraction(float(w)) * Fraction(float(v)) for w, v in zip(weight, x, strict=True)), Fraction(0)
    )
    point = x.astype(float)
    error = rounding_error(layers, FLOAT32, point, point)[0]
    assert abs(Fraction(float(total)) - exact - Fraction(float(bias))) <= Fraction(error)


def test_it_is_of_a_useful_size():
    """A small network of numbers about 1, over its whole box."""
    layers = random_layers(np.random.default_rng(0), 4, 1, 2)
    one = np.ones(4)
    assert 1e-7 < rounding_error(layers, FLOAT32, -one, one)[0] < 1e-3
    assert rounding_error(layers, FLOAT64, -one, one)[0] < 1e-12


def test_nothing_is_said_of_numbers_that_a_format_cannot_hold():
    big = (Dense(np.array([[1.0, -1.0]]), np.zeros(1)),)  # the sum is small, its terms are not
    one = np.full(2, 6e4)
    assert rounding_error(big, FORMATS["float16"], one, one)[0] == np.inf
    long = (Dense(np.ones((1, 200)), np.zeros(1)),)
    assert rounding_error(long, FORMATS["bfloat16"], np.zeros(200), np.ones(200))[0] == np.inf


def test_a_relu_that_is_off_hands_no_error_on():
    layers = (Dense(np.array([[1.0]]), np.array([-1e4])), Activation("relu"))
    assert rounding_error(layers, FLOAT32, np.zeros(1), np.ones(1))[0] == 0.0


@pytest.mark.parametrize("kind", ["tanh", "sigmoid", "softmax", "softplus", "relu"])
@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_class_that_torch_gives_is_within_the_slack(kind, name, seed):
    rng = np.random.default_rng(seed)
    arithmetic, dtype = FORMATS[name], getattr(torch, name)
    layers = [*random_layers(rng, 3, 4, 1)]
    scale = float(10.0 ** rng.uniform(-1, 2.5))
    layers[-1] = Dense((scale * layers[-1].weight).astype(np.float32).astype(float), layers[-1].bias)
    layers = (*layers, Activation(kind))
    lower, upper = -np.ones(3), np.ones(3)
    X = rng.uniform(lower, upper, (300, 3)).astype(np.float32).astype(float)
    with torch.no_grad():
        winner = as_module(layers, dtype)(torch.tensor(X, dtype=dtype)).argmax(dim=1).numpy()
    logits = evaluate(thresholded(layers, 4, 0.0, 0.0), X)
    slack = class_slack(Computation(layers, arithmetic), 4, 0.0, lower[None], upper[None])[0]
    behind = logits.max(axis=1) - logits[np.arange(len(X)), winner]
    by_pair = logits - logits[np.arange(len(X)), winner][:, None]
    assert np.all(by_pair <= slack[winner])
    if kind in ("tanh", "sigmoid") and scale > 50:
        assert behind.max() > 1e-3  # saturation did decide


@pytest.mark.parametrize("threshold", [0.5, 0.3, 0.9999999, 1.0 - 1e-15, 1e-8, 1e-40])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_every_side_of_a_threshold_is_within_the_slack(threshold, name):
    layers = (Dense(np.array([[1.0]]), np.zeros(1)), Activation("sigmoid"))
    logit = np.log(threshold) - np.log1p(-threshold)
    near = logit + np.concatenate([np.linspace(-40, 40, 4001), np.linspace(-1, 1, 4001) * 1e-6])
    dtype = getattr(torch, name)
    held = torch.tensor(near, dtype=dtype)
    said = torch.sigmoid(held).double().numpy() >= threshold
    low, high = np.array([[near.min()]]), np.array([[near.max()]])
    below, above = class_slack(Computation(layers, FORMATS[name]), 1, threshold, low, high)[0]
    moved = near - logit
    assert np.all(moved[said] >= -below)
    assert np.all(moved[~said] <= above)
