"""Planes and ranges of ReLU networks; of all others: tests/predictors/torch/test_program.py."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from dovetail.bounds.planes.domain import Boxes
from dovetail.bounds.planes.network_planes import Choices, NetworkPlanes, Planes, Ranges
from dovetail.core.errors import UnsupportedError
from dovetail.networks.graph import Affine, Elementwise, Graph, GraphStep
from dovetail.networks.layers import Activation, Dense, program_of
from tests.bounds.planes.sampling import boxes, outside, points_of, violation
from tests.networks.graph_values import values, vectors

ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]])


def relu_graph(seed, widths=(4, 12, 12, 2)):
    rng = np.random.default_rng(seed)
    layers = []
    for before, after in pairwise(widths):
        layers += [
            Dense(rng.normal(size=(after, before)) * np.sqrt(2 / before), 0.3 * rng.normal(size=after))
        ]
        layers += [Activation("relu")]
    return program_of(layers[:-1], widths[0]).graph()


def sampled(graph, box, rng, each=400):
    points = points_of(box, each, rng)
    return points, values(graph, points.reshape(-1, graph.inputs)).reshape(len(points), each, -1)


def case(seed):
    rng = np.random.default_rng(100 + seed)
    return relu_graph(seed), boxes(rng.normal(size=(9, 4)), np.linspace(0.0, 1.0, 9)[:, None] ** 2), rng


@pytest.mark.parametrize("seed", range(4))
def test_planes_hold_and_a_fault_is_seen(seed):
    graph, box, rng = case(seed)
    network = NetworkPlanes(graph)
    found = network.planes(torch.tensor(ROWS), network.ranges(box))
    points, values = sampled(graph, box, rng)
    assert outside(graph, box, points) <= 1e-12
    assert violation(found, ROWS, points, values) <= 1e-12
    assert violation(Planes(found.slopes, found.offset + 1e-5), ROWS, points, values) > 0.0


@pytest.mark.parametrize("seed", range(4))
def test_any_slopes_and_multipliers_hold(seed):
    """Multipliers: on sets where the signs of some neurons are known."""
    graph, box, rng = case(seed)
    network = NetworkPlanes(graph)
    ranges = network.ranges(box)
    points, values = sampled(graph, box, rng)
    slopes = {1: torch.tensor(rng.uniform(size=(9, 3, 12))), 3: torch.tensor(rng.uniform(size=(9, 1, 12)))}
    found = network.planes(torch.tensor(ROWS), ranges, Choices(slopes))
    assert violation(found, ROWS, points, values) <= 1e-12
    sign = np.sign(rng.normal(size=12)) * (rng.uniform(size=12) < 0.2)
    vector = vectors(graph, points.reshape(-1, 4))[1].reshape(9, -1, 12)
    multipliers = {1: torch.tensor(sign * rng.uniform(size=(9, 1, 12)))}
    found = network.planes(torch.tensor(ROWS), ranges, Choices(slopes, multipliers))
    for n in range(9):
        inside = np.all(sign * vector[n] >= 0.0, axis=1)
        one = Planes(found.slopes[n : n + 1], found.offset[n : n + 1])
        if inside.any():
            assert violation(one, ROWS, points[n : n + 1, inside], values[n : n + 1, inside]) <= 1e-12


def test_gradients_reach_the_choices():
    graph, box, _ = case(0)
    network = NetworkPlanes(graph)
    slopes = {1: torch.full((9, 1, 12), 0.5, dtype=torch.float64, requires_grad=True)}
    found = network.planes(torch.tensor(ROWS), network.ranges(box), Choices(slopes))
    box.minimum(found.slopes, found.offset).sum().backward()
    assert float(slopes[1].grad.abs().sum()) > 0.0


def test_what_is_known_is_kept_and_used():
    graph, box, _ = case(1)
    network = NetworkPlanes(graph)
    plain = network.ranges(box)
    known = Ranges(plain.lower[:], plain.upper[:])
    known.upper[1] = torch.minimum(known.upper[1], torch.full_like(known.upper[1], 0.1))
    found = network.ranges(box, known)
    assert bool((found.upper[1] <= 0.1 + 1e-15).all())
    assert all(bool((a >= b).all()) for a, b in zip(found.lower, plain.lower, strict=True))


def test_ranges_in_other_places_give_other_planes():
    """What is kept of ranges holds for these tensors only."""
    graph, box, _ = case(2)
    network = NetworkPlanes(graph)
    ranges = network.ranges(box)
    before = network.planes(torch.tensor(ROWS), ranges)
    ranges.lower[1] = ranges.lower[1] - 1.0
    after = network.planes(torch.tensor(ROWS), ranges)
    fresh = network.planes(torch.tensor(ROWS), Ranges(ranges.lower[:], ranges.upper[:]))
    assert torch.equal(after.offset, fresh.offset) and not torch.equal(after.offset, before.offset)


def test_some_of_the_sets():
    graph, box, _ = case(3)
    network = NetworkPlanes(graph)
    chosen = torch.tensor([7, 2])
    whole, part = network.ranges(box), network.ranges(box.take(chosen))
    for a, b in zip(whole.take(chosen).lower, part.lower, strict=True):
        torch.testing.assert_close(a, b)


def test_large_numbers_are_rounded_outward():
    """Where everything cancels, the exact value is 0, and a plane must not be above it."""
    weight = np.array([[1e15, -1e15, 1.0]])
    graph = program_of(
        (Dense(np.ones((3, 1)) / 3.0, np.zeros(3)), Activation("relu"), Dense(weight, np.zeros(1))), 1
    ).graph()
    box = Boxes(torch.ones(1, 1, dtype=torch.float64), torch.full((1, 1), 2.0, dtype=torch.float64))
    network = NetworkPlanes(graph)
    found = network.planes(torch.ones(1, 1, dtype=torch.float64), network.ranges(box))
    x = np.linspace(1.0, 2.0, 101)
    assert np.all(found.slopes.numpy()[0, 0, 0] * x + found.offset.numpy()[0, 0] <= x / 3.0)


def test_an_operation_without_planes_is_named():
    with pytest.raises(UnsupportedError, match="there are no planes for zeta"):
        NetworkPlanes(Graph(2, (GraphStep(Elementwise("zeta"), (0,), 2),)))


def test_a_network_that_reads_nothing():
    graph = Graph(2, (GraphStep(Affine((np.zeros((1, 2)),), np.array([3.0])), (0,), 1),))
    network = NetworkPlanes(graph)
    box = boxes(np.zeros((1, 2)), 1.0)
    found = network.planes(torch.ones(1, 1, dtype=torch.float64), network.ranges(box))
    assert abs(float(box.minimum(found.slopes, found.offset)) - 3.0) < 1e-12
