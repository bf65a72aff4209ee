"""Every rule, against the function at many points of many intervals."""

import numpy as np
import pytest
import torch

from dovetail.bounds.planes.relaxation import RULES, multiplied, product_range, rule_of
from dovetail.core.errors import UnsupportedError
from dovetail.networks.functions import FUNCTIONS

POINTS = 400
POSITIVE = {"log", "sqrt", "rsqrt", "reciprocal"}
"""Of what is not positive nothing is known."""


def intervals(kind, rng):
    """Random, tiny, huge, one-sided, and single points."""
    middle = np.concatenate([rng.normal(size=1500) * 3.0, rng.normal(size=300) * 30.0, np.zeros(50)])
    width = 10.0 ** rng.uniform(-14, 1.5, size=len(middle))
    width[::7] = 0.0
    middle[:200] = np.round(middle[:200])
    low, high = middle - width, middle + width
    low[1::5] = np.minimum(0.0, high[1::5])
    if kind in POSITIVE:
        low, high = 10.0 ** rng.uniform(-6, 3, size=len(low)), width
        high = low + high
    return torch.tensor(low)[None], torch.tensor(high)[None]


def inside(low, high, rng):
    share = np.concatenate([[0.0, 1.0, 0.5], rng.uniform(size=POINTS)])[:, None]
    low, high = low.numpy(), high.numpy()
    return np.clip(low + share * (high - low), low, high)


def excess(lines, z, f):
    """By how much a line is on the wrong side at most, relative to what float64 can tell at this point."""
    (a,), b = lines.below_slopes, lines.below_offset
    (c,), d = lines.above_slopes, lines.above_offset
    unit = 4.0 * 2.0**-53 * (np.abs(f) + np.abs(a.numpy() * z) + np.abs(c.numpy() * z))
    under, over = a.numpy() * z + b.numpy() - f, f - c.numpy() * z - d.numpy()
    return float(np.max(np.maximum(under, over) - unit))


@pytest.mark.parametrize("kind", RULES)
def test_lines_and_ranges_hold(kind):
    rng = np.random.default_rng(5)
    low, high = intervals(kind, rng)
    lines = RULES[kind].lines(low, high)
    z = inside(low, high, rng)
    f = FUNCTIONS[kind].value(z)
    assert excess(lines, z, f) <= 0.0
    least, most = (bound.numpy() for bound in RULES[kind].range(low, high))
    assert np.all((f >= least) & (f <= most))
    assert np.all(np.isfinite(np.stack([lines.below_offset.numpy(), lines.above_offset.numpy()])))


@pytest.mark.parametrize("kind", RULES)
def test_lines_are_tight(kind):
    """Between narrow bounds the lines close in on the function, faster than constants would."""
    rng = np.random.default_rng(3)
    middle = rng.uniform(0.3, 2.0, size=50)
    low, high = torch.tensor(middle - 0.01)[None], torch.tensor(middle + 0.01)[None]
    lines = RULES[kind].lines(low, high)
    (a,), (c,) = lines.below_slopes, lines.above_slopes
    z = torch.tensor(middle)[None]
    width = (c - a) * z + lines.above_offset - lines.below_offset
    assert float(width.max()) < 0.05 * 0.01 * 40  # second order in the width, for curvatures up to 40


@pytest.mark.parametrize("kind", RULES)
def test_a_line_off_by_a_little_is_seen(kind):
    rng = np.random.default_rng(5)
    low, high = intervals(kind, rng)
    lines = RULES[kind].lines(low, high)
    z = inside(low, high, rng)
    off = type(lines)(lines.below_slopes, lines.below_offset + 1e-5, lines.above_slopes, lines.above_offset)
    assert excess(off, z, FUNCTIONS[kind].value(z)) > 0.0


@pytest.mark.parametrize("kind", sorted(POSITIVE))
def test_nothing_is_said_outside_the_domain(kind):
    low, high = (
        torch.tensor([[-1.0, 0.0]], dtype=torch.float64),
        torch.tensor([[1.0, 2.0]], dtype=torch.float64),
    )
    lines = RULES[kind].lines(low, high)
    assert bool((lines.above_offset == torch.inf).all())
    least, most = RULES[kind].range(low, high)
    assert bool((most == torch.inf).all()) and bool((least <= 0.0).all())


@pytest.mark.parametrize("kind", RULES)
def test_endless_bounds(kind):
    low, high = (
        torch.tensor([[-torch.inf, 1.0]], dtype=torch.float64),
        torch.tensor([[1.0, torch.inf]], dtype=torch.float64),
    )
    lines = RULES[kind].lines(low, high)
    z = np.array([[-50.0, 50.0], [-3.0, 3.0], [1.0, 1.0]])
    f = FUNCTIONS[kind].value(np.maximum(z, 1e-3) if kind in POSITIVE else z)
    below = np.where(np.isfinite(lines.below_offset.numpy()), excess(lines, z, f), -np.inf)
    assert np.all(below <= 0.0) or np.all(np.isnan(below))


def test_products_hold():
    rng = np.random.default_rng(2)
    x, y = (rng.normal(size=(2, 1, 500)) * 3.0 for _ in range(2))
    (xl, xh), (yl, yh) = np.sort(x, axis=0), np.sort(y, axis=0)
    left, right = (torch.tensor(xl), torch.tensor(xh)), (torch.tensor(yl), torch.tensor(yh))
    found, (least, most) = multiplied(left, right), product_range(left, right)
    for share in rng.uniform(size=(200, 2)).round(1):
        p, q = xl + share[0] * (xh - xl), yl + share[1] * (yh - yl)
        (a, b), (c, d) = found.below_slopes, found.above_slopes
        assert np.all(a.numpy() * p + b.numpy() * q + found.below_offset.numpy() <= p * q + 1e-14)
        assert np.all(c.numpy() * p + d.numpy() * q + found.above_offset.numpy() >= p * q - 1e-14)
        assert np.all((least.numpy() <= p * q + 1e-14) & (most.numpy() >= p * q - 1e-14))


def test_an_unknown_function_is_named():
    with pytest.raises(UnsupportedError, match="there are no planes for zeta"):
        rule_of("zeta")
