"""Ranges of neurons hold at sampled points, are no wider than intervals, and keep what is known."""

import itertools

import numpy as np
import pytest

from dovetail.networks.layers import Activation, Dense, evaluate, program_of
from dovetail.structure import relu_layers as module
from dovetail.structure.relu_layers import LayerBounding


def layers(rng, sizes):
    made = []
    for wide, narrow in itertools.pairwise(sizes):
        made += [Dense(rng.normal(size=(narrow, wide)), rng.normal(size=narrow)), Activation("relu")]
    return tuple(made[:-1])


def interval(layer, lower, upper):
    program = program_of((layer,), lower.shape[1])
    return tuple(side[:, program.outputs] for side in program.ranges(lower, upper))


def sampled(net, lower, upper, rng, count=300):
    """Values of every layer at points of each sample's box, (count, n, size) each."""
    X = rng.uniform(size=(count, *lower.shape)) * (upper - lower) + lower
    values = [X]
    for layer in net:
        rows = values[-1].reshape(-1, values[-1].shape[-1])
        values.append(evaluate((layer,), rows).reshape(count, len(lower), -1))
    return values


@pytest.mark.parametrize("seed", range(5))
def test_they_hold_and_are_no_wider_than_intervals(seed):
    rng = np.random.default_rng(seed)
    net = layers(rng, (3, 6, 5, 4, 2))
    lower = rng.uniform(-1, 0, (4, 3))
    upper = lower + rng.uniform(0, 1, (4, 3))
    ranges = LayerBounding(tuple(net), lower.shape[1]).ranges(lower, upper)
    plain, tighter = (lower, upper), 0
    for place, values in enumerate(sampled(net, lower, upper, rng)):
        low, high = ranges[place]
        assert np.all(values >= low - 1e-12)
        assert np.all(values <= high + 1e-12)
        assert np.all(low >= plain[0] - 1e-12)
        assert np.all(high <= plain[1] + 1e-12)
        tighter += np.count_nonzero(high - low < plain[1] - plain[0] - 1e-9)
        plain = interval(net[place], *plain) if place < len(net) else plain
    assert tighter


def test_what_is_known_is_kept_and_passed_on():
    rng = np.random.default_rng(1)
    net = layers(rng, (2, 4, 3, 1))
    lower, upper = -np.ones((1, 2)), np.ones((1, 2))
    ranges = LayerBounding(tuple(net), lower.shape[1]).ranges(lower, upper)
    low, high = ranges[1]
    half = (ranges[0], (low, 0.5 * high + 0.5 * low), *ranges[2:])
    again = LayerBounding(tuple(net), lower.shape[1]).ranges(lower, upper, half)
    assert np.all(again[1][1] <= half[1][1])
    assert np.sum(again[3][1] - again[3][0]) < np.sum(ranges[3][1] - ranges[3][0])


def test_what_would_take_long_is_done_by_intervals(monkeypatch):
    rng = np.random.default_rng(2)
    net = layers(rng, (2, 4, 3, 1))
    lower, upper = -np.ones((1, 2)), np.ones((1, 2))
    monkeypatch.setattr(module, "MOST_WORK", 0.0)
    low, high = lower, upper
    for (found_low, found_high), layer in zip(
        LayerBounding(tuple(net), lower.shape[1]).ranges(lower, upper), net, strict=False
    ):
        assert np.array_equal(found_low, low)
        assert np.array_equal(found_high, high)
        low, high = interval(layer, low, high)
