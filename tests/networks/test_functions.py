"""What is said of each function holds, against torch, finite differences and samples."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from dovetail.networks.functions import FUNCTIONS, LAYERS

APART = 1e-4
OTHERWISE = {
    "gelu_tanh": lambda z: functional.gelu(z, approximate="tanh"),
    "square": torch.square,
    "root": lambda z: torch.sqrt(torch.relu(z)),
    "matern32": lambda z: matern(z, 3.0, lambda r: 1.0 + r),
    "matern52": lambda z: matern(z, 5.0, lambda r: 1.0 + r + r * r / 3.0),
}


def matern(z, times, factor):
    """As scikit-learn writes it, of squared distances; straight left of 0."""
    slope = -times / (2.0 if times == 3.0 else 6.0)
    root = torch.sqrt(torch.clamp(times * z, min=1e-300))
    return torch.where(z > 0.0, factor(root) * torch.exp(-root), 1.0 + slope * z)


def grid(function):
    return np.linspace(0.05, 9.0, 1801) if function.above == 0.0 else np.linspace(-9.0, 9.0, 3601)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_value_is_torchs(name):
    z = grid(FUNCTIONS[name])
    operation = OTHERWISE.get(name) or getattr(torch, FUNCTIONS[name].operation, None)
    operation = operation or getattr(functional, FUNCTIONS[name].operation)
    off = np.abs(operation(torch.as_tensor(z)).numpy() - FUNCTIONS[name].value(z))
    assert np.all(off <= FUNCTIONS[name].off + 1e-12 * (1.0 + np.abs(FUNCTIONS[name].value(z))))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_derivative_is_torchs(name):
    z = torch.as_tensor(grid(FUNCTIONS[name]) + 1e-3).requires_grad_()  # no kink among the points
    operation = OTHERWISE.get(name) or getattr(torch, FUNCTIONS[name].operation, None)
    operation = operation or getattr(functional, FUNCTIONS[name].operation)
    operation(z).sum().backward()
    said = FUNCTIONS[name].derivative(torch, z.detach()).double()
    torch.testing.assert_close(said, z.grad, rtol=1e-11, atol=max(1e-13, FUNCTIONS[name].off))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_libraries_say_the_same(name):
    function = FUNCTIONS[name]
    z = grid(function)
    there = function.formula(torch, torch.as_tensor(z)).numpy()
    np.testing.assert_allclose(there, function.value(z), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_derivative_is_what_differences_say(name):
    function = FUNCTIONS[name]
    z = grid(function) + 2.5e-3  # no kink near the points
    seen = (function.value(z + 2e-6) - function.value(z - 2e-6)) / 4e-6
    said = function.derivative(torch, torch.as_tensor(z)).numpy()
    assert np.all(np.abs(seen - said) <= 1e-6 * (1.0 + np.abs(said)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_slope_is_beyond_what_is_said(name):
    function = FUNCTIONS[name]
    z = grid(function)
    for apart in (APART, 0.7, 5.0):
        seen = (function.value(z + apart) - function.value(z)) / apart
        assert np.all(np.abs(seen) <= function.steepest(z, z + apart) + 1e-7)
        if function.rises:
            assert np.all(seen >= function.least_slope(z, z + apart) * (1.0 - 1e-6) - 1e-10)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_bends_where_it_is_said_to(name):
    """Slopes rise between two bends where it is convex, and fall where it is concave."""
    function = FUNCTIONS[name]
    z = grid(function)
    slopes = np.diff(function.derivative(torch, torch.as_tensor(z)).numpy())
    convex = (np.searchsorted(function.bends, z[:-1]) % 2 == 0) == function.convex_first
    inside = np.searchsorted(function.bends, z[:-1]) == np.searchsorted(function.bends, z[1:])
    assert np.all(np.where(convex, slopes, -slopes)[inside] >= -1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ranges_hold_and_are_tight(name):
    function = FUNCTIONS[name]
    rng, z = np.random.default_rng(0), grid(function)
    low, high = np.sort(rng.choice(z, size=(2, 400)), axis=0)
    least, most = function.range(low, high)
    values = function.value(np.linspace(low, high, 301))
    assert np.all((least <= values.min(axis=0)) & (values.max(axis=0) <= most))
    assert np.all((values.min(axis=0) - least < 1e-2) & (most - values.max(axis=0) < 1e-12))
    assert np.all((values >= function.least) & (values <= function.most))
    if function.lowest_at is None:
        assert np.all(np.diff(function.value(z)) >= -1e-15) or np.all(np.diff(function.value(z)) <= 1e-15)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_finite_far_out(name):
    assert np.all(np.isfinite(FUNCTIONS[name].value(np.array([1e-3, 1.0, 30.0]))))


@pytest.mark.parametrize("name", LAYERS)
def test_the_class_of_torch_is_the_function(name):
    z = torch.linspace(-9.0, 9.0, 99, dtype=torch.float64)
    module = getattr(torch.nn, LAYERS[name].layer)()
    assert module(z).numpy() == pytest.approx(LAYERS[name].value(z.numpy()), abs=1e-8)
