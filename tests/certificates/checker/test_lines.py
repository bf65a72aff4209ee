"""Lines below and above functions, against the functions themselves on fine grids."""

import numpy as np
import pytest

from dovetail.certificates.checker.planes import BENDS, lines
from dovetail.core.errors import UnsupportedError
from dovetail.networks.functions import FUNCTIONS

POSITIVE = ("log", "sqrt", "rsqrt", "reciprocal")


def intervals(kind):
    rng = np.random.default_rng(1)
    middle = rng.normal(0, 3, 400)
    half = 10.0 ** rng.uniform(-9, 1, 400)
    lower, upper = middle - half, middle + half
    lower[:5] = upper[:5]
    if kind in POSITIVE:
        lower, upper = np.abs(middle) + 0.01, np.abs(middle) + 0.01 + half
    if kind == "exp":
        lower, upper = np.minimum(lower, 3.0), np.minimum(upper, 3.0)
    return lower[None], np.maximum(lower, upper)[None]


def worst(kind, lower, upper, found):
    grid = lower[..., None] + (upper - lower)[..., None] * np.linspace(0, 1, 2001)
    values = FUNCTIONS[kind].value(grid)
    below = found.below_slope[..., None] * grid + found.below_offset[..., None]
    above = found.above_slope[..., None] * grid + found.above_offset[..., None]
    beyond = np.maximum(below - values, values - above).max()
    out = np.maximum(found.least[..., None] - values, values - found.most[..., None]).max()
    return max(beyond, out)


@pytest.mark.parametrize("kind", ["relu", *BENDS])
def test_the_function_is_between_its_lines(kind):
    lower, upper = intervals(kind)
    assert worst(kind, lower, upper, lines(kind, lower, upper)) <= 1e-14


@pytest.mark.parametrize("kind", ["relu", *BENDS])
def test_they_are_near_where_the_interval_is_small(kind):
    lower = np.full((1, 3), 0.7)
    found = lines(kind, lower, lower + 1e-3)
    middle = lower + 5e-4
    apart = (found.above_slope - found.below_slope) * middle + found.above_offset - found.below_offset
    assert np.all(apart <= 1e-5)


def test_a_line_off_by_a_hair_would_be_seen():
    lower, upper = intervals("tanh")
    found = lines("tanh", lower, upper)
    object.__setattr__(found, "below_offset", found.below_offset + 1e-5)
    assert worst("tanh", lower, upper, found) > 1e-6


def test_bends_are_never_exceeded():
    z = np.linspace(-12, 12, 400_001)
    for kind, bend in BENDS.items():
        if kind in POSITIVE:
            continue
        h = z[1] - z[0]
        seen = np.abs(np.diff(FUNCTIONS[kind].value(z), 2)).max() / h**2
        assert seen <= bend(z[:1], z[-1:])[0] * (1 + 1e-4) + 1e-5, kind


def test_where_a_function_is_not_defined_nothing_is_known():
    found = lines("log", np.array([[-1.0]]), np.array([[1.0]]))
    assert np.isnan(found.below_offset).all()
    with pytest.raises(UnsupportedError, match="no lines for cosine"):
        lines("cosine", np.zeros((1, 1)), np.ones((1, 1)))


def test_lines_of_a_relu_do_not_hang_on_the_last_digit():
    """Half of a box is often as large as the other half, but for rounding."""
    for size in (1.0, 0.3, 7.7):
        upper = np.full(3, size)
        lower = -np.array([size, np.nextafter(size, 0.0), np.nextafter(size, np.inf)])
        assert len(set(lines("relu", lower, upper).below_slope.tolist())) == 1
