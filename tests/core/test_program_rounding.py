"""What rounding can do; networks of all kinds are in tests/predictors/torch/test_program.py."""

import numpy as np
import pytest

from dovetail.core.program import Recording
from dovetail.core.program_rounding import program_errors
from dovetail.core.rounding import FLOAT32, FORMATS
from dovetail.networks.functions import FUNCTIONS


def single(kind):
    recording = Recording(1)
    return recording.program(recording.functions(kind, np.array([0])))


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_bounds_and_errors_of_functions(kind):
    """In float32, of inputs that are themselves rounded."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(3000, 1)) * 4.0
    z = np.abs(z) + 0.01 if kind in ("log", "sqrt", "rsqrt", "reciprocal") else z
    low, high, error = program_errors(single(kind), FLOAT32, z, z)
    own = FUNCTIONS[kind].value(z.astype(np.float32)).astype(np.float64)
    assert np.all(np.abs(own - FUNCTIONS[kind].value(z)) <= error)
    middle, reach = z, rng.uniform(size=z.shape) * np.minimum(1.0, 0.5 * np.abs(z))
    low, high, _ = program_errors(single(kind), FLOAT32, middle - reach, middle + reach)
    for share in np.linspace(-1.0, 1.0, 21):
        value = FUNCTIONS[kind].value(middle + share * reach)
        assert np.all((value >= low - 1e-12) & (value <= high + 1e-12))


@pytest.mark.parametrize("kind", ["log", "sqrt", "rsqrt", "reciprocal"])
def test_nothing_is_known_near_the_end_of_a_domain(kind):
    low, high, error = program_errors(single(kind), FLOAT32, np.array([[-1.0]]), np.array([[1.0]]))
    assert low[0, 0] == -np.inf and high[0, 0] == error[0, 0] == np.inf


def test_numbers_that_the_format_cannot_hold():
    recording = Recording(1)
    program = recording.program(recording.products(np.array([0]), np.array([0])))
    half = FORMATS["float16"]
    assert program_errors(program, half, np.array([[1e6]]), np.array([[1e6]]))[2][0, 0] == np.inf
    big = recording.sums(np.zeros(1, int), np.zeros(1, int), np.array([1e5]), np.zeros(1))
    found = program_errors(recording.program(big), half, np.array([[1.0]]), np.array([[2.0]]))
    assert found[2][0, 0] == np.inf


@pytest.mark.parametrize("spread", [1e-4, 1e-2, 1.0])
def test_normalised_rows_in_float32(spread):
    """Rows far from 0 that are all but constant are the hard ones."""
    rng, recording = np.random.default_rng(2), Recording(8)
    program = recording.program(recording.normalised(np.arange(8)[None], 1e-5))
    X = 3.0 + spread * rng.normal(size=(500, 8))
    low, high, error = program_errors(program, FLOAT32, X, X)
    narrow = X.astype(np.float32)
    mean = narrow.mean(axis=1, keepdims=True, dtype=np.float32)
    in_one_round = np.square(narrow - mean).mean(axis=1, keepdims=True, dtype=np.float32)
    own = (narrow - mean) / np.sqrt(in_one_round + np.float32(1e-5))
    exact = program.values(X)
    assert np.all(np.abs(own - exact) <= error)
    assert np.all((low <= exact + 1e-9) & (exact - 1e-9 <= high))
    reach = 0.1 * spread
    low, high, wide = program_errors(program, FLOAT32, X - reach, X + reach)
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
    error = program_errors(program, FLOAT32, X, X)[2][:, 0]
    assert np.all(np.abs(own - program.values(X)[:, 0]) <= error)
    assert np.all(error < 1e-2)
