"""Rounding: no network that torch or numpy computes is further from its exact layers than was said."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from dovetail.core.class_rounding import class_slack
from dovetail.networks.arithmetic import FLOAT32, FLOAT64, FORMATS
from dovetail.networks.functions import FUNCTIONS
from dovetail.networks.layers import Activation, Dense, evaluate, program_of, thresholded
from dovetail.networks.program import Recording
from tests.conftest import FULL

SEEDS = range(40 if FULL else 8)
KINDS = ("relu", "sigmoid", "tanh", "softplus", "softmax")


def rounding_error(layers, arithmetic, lower, upper):
    lower, upper = np.atleast_2d(lower), np.atleast_2d(upper)
    found = program_of(layers, lower.shape[1]).errors(arithmetic, lower, upper)[2]
    return found if len(found) > 1 else found[0]


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
    slack = class_slack(program_of(layers, 3), arithmetic, 0.0, lower[None], upper[None])[0]
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
    below, above = class_slack(program_of(layers, 1), FORMATS[name], threshold, low, high)[0]
    moved = near - logit
    assert np.all(moved[said] >= -below)
    assert np.all(moved[~said] <= above)


def single(kind):
    recording = Recording(1)
    return recording.program(recording.functions(kind, np.array([0])))


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_bounds_and_errors_of_functions(kind):
    """In float32, of inputs that are themselves rounded."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(3000, 1)) * 4.0
    z = np.abs(z) + 0.01 if kind in ("log", "sqrt", "rsqrt", "reciprocal") else z
    low, high, error = single(kind).errors(FLOAT32, z, z)
    own = FUNCTIONS[kind].value(z.astype(np.float32)).astype(np.float64)
    assert np.all(np.abs(own - FUNCTIONS[kind].value(z)) <= error)
    middle, reach = z, rng.uniform(size=z.shape) * np.minimum(1.0, 0.5 * np.abs(z))
    low, high, _ = single(kind).errors(FLOAT32, middle - reach, middle + reach)
    for share in np.linspace(-1.0, 1.0, 21):
        value = FUNCTIONS[kind].value(middle + share * reach)
        assert np.all((value >= low - 1e-12) & (value <= high + 1e-12))


@pytest.mark.parametrize("kind", ["log", "sqrt", "rsqrt", "reciprocal"])
def test_nothing_is_known_near_the_end_of_a_domain(kind):
    low, high, error = single(kind).errors(FLOAT32, np.array([[-1.0]]), np.array([[1.0]]))
    assert low[0, 0] == -np.inf and high[0, 0] == error[0, 0] == np.inf


def test_numbers_that_the_format_cannot_hold():
    recording = Recording(1)
    program = recording.program(recording.products(np.array([0]), np.array([0])))
    half = FORMATS["float16"]
    assert program.errors(half, np.array([[1e6]]), np.array([[1e6]]))[2][0, 0] == np.inf
    big = recording.sums(np.zeros(1, int), np.zeros(1, int), np.array([1e5]), np.zeros(1))
    found = recording.program(big).errors(half, np.array([[1.0]]), np.array([[2.0]]))
    assert found[2][0, 0] == np.inf


@pytest.mark.parametrize("spread", [1e-4, 1e-2, 1.0])
def test_normalised_rows_in_float32(spread):
    """Rows far from 0 that are all but constant are the hard ones."""
    rng, recording = np.random.default_rng(2), Recording(8)
    program = recording.program(recording.normalised(np.arange(8)[None], 1e-5))
    X = 3.0 + spread * rng.normal(size=(500, 8))
    low, high, error = program.errors(FLOAT32, X, X)
    narrow = X.astype(np.float32)
    mean = narrow.mean(axis=1, keepdims=True, dtype=np.float32)
    in_one_round = np.square(narrow - mean).mean(axis=1, keepdims=True, dtype=np.float32)
    own = (narrow - mean) / np.sqrt(in_one_round + np.float32(1e-5))
    exact = program.values(X)
    assert np.all(np.abs(own - exact) <= error)
    assert np.all((low <= exact + 1e-9) & (exact - 1e-9 <= high))
    reach = 0.1 * spread
    low, high, wide = program.errors(FLOAT32, X - reach, X + reach)
    inside = program.values(X + reach * rng.uniform(-1.0, 1.0, size=X.shape))
    assert np.all((low <= inside) & (inside <= high)) and np.all(wide >= error * (1.0 - 1e-9))


def test_products_and_sums_in_float32():
    rng, recording = np.random.default_rng(1), Recording(40)
    products = recording.products(np.arange(20), np.arange(20, 40))
    weights = rng.normal(size=20)
    total = recording.sums(np.zeros(20, int), products, weights, np.array([0.3]))
    program, X = recording.program(total), rng.normal(size=(500, 40)) * 10.0
    narrow = X.astype(np.float32)
    own = (narrow[:, :20] * narrow[:, 20:]) @ weights.astype(np.float32) + np.float32(0.3)
    error = program.errors(FLOAT32, X, X)[2][:, 0]
    assert np.all(np.abs(own - program.values(X)[:, 0]) <= error)
    assert np.all(error < 1e-2)
