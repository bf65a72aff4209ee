"""What is said of each function holds, against torch and finite differences."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from dovetail.core.functions import FUNCTIONS, LAYERS

APART = 1e-4
OTHERWISE = {"gelu_tanh": lambda z: functional.gelu(z, approximate="tanh"), "square": torch.square}


def grid(function):
    return np.linspace(0.05, 9.0, 1801) if function.positive else np.linspace(-9.0, 9.0, 3601)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_value_is_torchs(name):
    z = grid(FUNCTIONS[name])
    operation = OTHERWISE.get(name) or getattr(torch, FUNCTIONS[name].operation, None)
    operation = operation or getattr(functional, FUNCTIONS[name].operation)
    off = np.abs(operation(torch.as_tensor(z)).numpy() - FUNCTIONS[name].value(z))
    assert np.all(off <= FUNCTIONS[name].off + 1e-12 * (1.0 + np.abs(FUNCTIONS[name].value(z))))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_slope_is_beyond_what_is_said(name):
    function = FUNCTIONS[name]
    z = grid(function)
    seen = (function.value(z + APART) - function.value(z)) / APART
    assert np.all(np.abs(seen) <= function.slope(z, z + APART) + 1e-7)
    if function.rises:
        assert np.all(seen >= function.least_slope(z, z + APART) * (1.0 - 1e-6) - 1e-10)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_least_where_it_is_said_to_be(name):
    function = FUNCTIONS[name]
    z = grid(function)
    values = function.value(z)
    assert not function.bounded or np.abs(values).max() <= 1.0
    if function.lowest is not None:
        where, least = function.lowest
        assert abs(z[np.argmin(values)] - where) < 0.01 and 0.0 <= values.min() - least <= 1e-3
    else:
        assert np.all(np.diff(values) >= -1e-15) or np.all(np.diff(values) <= 1e-15)


@pytest.mark.parametrize("name", LAYERS)
def test_the_class_of_torch_is_the_function(name):
    z = torch.linspace(-9.0, 9.0, 99, dtype=torch.float64)
    module = getattr(torch.nn, LAYERS[name].layer)()
    assert module(z).numpy() == pytest.approx(LAYERS[name].value(z.numpy()), abs=1e-8)
