"""Slopes by ascent: planes at them are sound, and worth no less than those of the usual slopes."""

import numpy as np
import torch

from dovetail.bounds.planes.domain import Boxes
from dovetail.bounds.planes.network_planes import Choices, NetworkPlanes
from dovetail.bounds.planes.slope_ascent import ascended, usual
from dovetail.networks.graph import Affine, Elementwise, Graph, GraphStep


def network(seed=0, inputs=3, width=10):
    rng = np.random.default_rng(seed)
    steps, before = [], inputs
    for place in range(0, 4, 2):
        steps.append(
            GraphStep(Affine((rng.normal(size=(width, before)),), rng.normal(size=width)), (place,), width)
        )
        steps.append(GraphStep(Elementwise("relu"), (place + 1,), width))
        before = width
    steps.append(GraphStep(Affine((rng.normal(size=(1, width)),), np.zeros(1)), (4,), 1))
    return NetworkPlanes(Graph(inputs, tuple(steps)))


def values(planes, X):
    """By the graph's own numbers."""
    for step in planes.graph.steps:
        operation = step.operation
        if isinstance(operation, Affine):
            X = X @ operation.weights[0].T + operation.bias
        else:
            X = np.maximum(X, 0.0)
    return X[:, 0]


def test_planes_are_better_and_stay_below():
    planes = network()
    centre = torch.as_tensor(np.random.default_rng(1).normal(size=(20, 3)))
    box = Boxes(centre - 1.0, centre + 1.0)
    ranges = planes.ranges(box)
    rows = torch.ones(20, 1, 1, dtype=torch.float64)

    def worth(found):
        return box.minimum(found.slopes, found.offset)[:, 0]

    def least(found):
        ((slopes, offset),) = found
        x = box.minimiser(slopes)
        return (slopes * x).sum(1) + offset, [x]

    before = worth(planes.planes(rows, ranges))
    assert torch.allclose(before, worth(planes.planes(rows, ranges, Choices(usual(planes.graph, ranges)))))
    (slopes,) = ascended([(planes, rows[:, 0], ranges)], least, 6)
    found = planes.planes(rows, ranges, Choices(slopes))
    after = worth(found)
    assert torch.all(after >= before) and torch.any(after > before + 0.1)
    rng = np.random.default_rng(2)
    for k in range(20):
        X = box.lower[k].numpy() + 2.0 * rng.random((500, 3))
        below = X @ found.slopes[k, 0].numpy() + float(found.offset[k, 0])
        assert np.all(below <= values(planes, X))
