"""Planes of networks as they are deployed in float32, and planes that are computed in float32 themselves."""

import numpy as np
import pytest
import torch

from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.networks.arithmetic import FLOAT32
from dovetail.networks.layers import program_of
from tests.bounds.planes.sampling import boxes, points_of, violation
from tests.networks import graph_values
from tests.networks.rounding_routes import routes
from tests.networks.test_step_rounding import of_layers, random_layers

ROWS = np.array([[1.0], [-1.0]])
NEAR = 2.0**-24
"""What casting moves an input by, relative to its size."""


def deep(seed, kind="relu", scale=1.0):
    """A network, points near which it is asked, and its boxes: from points to wide ones."""
    rng = np.random.default_rng(seed)
    layers = random_layers(rng, (4, 24, 24, 24, 24, 1), kind, scale)
    centres = rng.normal(size=(6, 4)).astype(np.float32).astype(float)
    return (
        layers,
        program_of(layers, 4).graph(),
        centres,
        np.array([0.0, 1e-6, 1e-4, 1e-2, 1.0, 1e3])[:, None],
    )


def computed(layers, points):
    """What float32 makes of points (N, each, d), by every route."""
    for vectors in routes(layers, points.reshape(-1, points.shape[2])):
        yield vectors[-1].reshape(*points.shape[:2], -1), vectors


@pytest.mark.parametrize("kind", ["relu", "tanh"])
@pytest.mark.parametrize("kind_of_planes", [torch.float64, torch.float32])
@pytest.mark.parametrize("seed", range(3))
def test_they_hold_for_float32_by_every_route(seed, kind, kind_of_planes):
    layers, graph, centres, reach = deep(seed, kind, (1.0, 0.03, 30.0)[seed])
    network = NetworkPlanes(graph, "cpu", of_layers(layers, FLOAT32, graph), kind_of_planes)
    box = boxes(centres, reach * (1.0 + 2.0 * NEAR) + 2.0 * NEAR * np.abs(centres))
    inner = points_of(boxes(centres, reach), 40, np.random.default_rng(seed)).astype(np.float32).astype(float)
    ranges = network.ranges(box)
    found = network.planes(torch.tensor(ROWS), ranges)
    for values, vectors in computed(layers, inner):
        assert violation(found, ROWS, inner, values) <= 0.0
        for place, vector in enumerate(vectors):
            vector = vector.reshape(*inner.shape[:2], -1)
            assert np.all(ranges.lower[place].numpy()[:, None] <= vector)
            assert np.all(ranges.upper[place].numpy()[:, None] >= vector)


def test_without_the_networks_rounding_a_fault_is_seen():
    layers, graph, centres, reach = deep(0)
    box, inner = boxes(centres, 1e-12), np.repeat(centres[:, None], 2, axis=1)
    bare = NetworkPlanes(graph)
    found = bare.planes(torch.tensor(ROWS), bare.ranges(box))
    assert max(violation(found, ROWS, inner, values) for values, _ in computed(layers, inner)) > 1e-8
    single = NetworkPlanes(graph, kind=torch.float32)
    single._gamma = 0.0  # float32 planes that take no rounding of theirs off
    for loaded in single._affine.values():
        loaded.rate.zero_()
    worst = -np.inf
    for seed in range(4):
        box = boxes(centres + seed, reach)
        inner = points_of(box, 40, np.random.default_rng(seed))
        values = graph_values.values(graph, inner.reshape(-1, 4)).reshape(*inner.shape[:2], 1)
        worst = max(
            worst, violation(single.planes(torch.tensor(ROWS), single.ranges(box)), ROWS, inner, values)
        )
    assert worst > 1e-8


def test_they_are_far_nearer_than_errors_passed_on_layer_by_layer():
    layers, graph, centres, _ = deep(1)
    network = NetworkPlanes(graph, "cpu", of_layers(layers, FLOAT32, graph))
    box = boxes(centres, 1e-6)
    found = network.planes(torch.tensor(ROWS), network.ranges(box))
    least, most = box.minimum(found.slopes, found.offset).T
    width = (-most - least).numpy()
    at_points, on_boxes = (
        2.0 * program_of(layers, 4).errors(FLOAT32, centres - reach, centres + reach)[2][:, 0]
        for reach in (0.0, 1.0)
    )
    assert np.all(at_points > width) and np.all(on_boxes > 4.0 * width) and np.all(width > 0.0)


def test_points_are_what_the_graph_says():
    _, graph, centres, _ = deep(2)
    at = NetworkPlanes(graph).at(torch.tensor(centres))
    for vector, exact in zip(at.lower, graph_values.vectors(graph, centres), strict=True):
        np.testing.assert_allclose(vector.numpy(), exact, rtol=1e-12, atol=1e-12)
