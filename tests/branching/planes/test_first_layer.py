"""Shares of inputs in what bends a network."""

import numpy as np
import torch

from dovetail.bounds.planes.domain import Boxes
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.branching.planes.first_layer import FirstLayer
from dovetail.networks.graph import Affine, Elementwise, Graph, GraphStep

WEIGHTS = np.array([[1.0, 4.0, 0.0], [0.0, 0.0, 1.0]])


def shares(width, bias):
    """Of two ReLUs behind a linear step that is written as two."""
    steps = (
        GraphStep(Affine((2.0 * np.eye(3),), np.zeros(3)), (0,), 3),
        GraphStep(Affine((0.5 * WEIGHTS,), np.array(bias)), (1,), 2),
        GraphStep(Elementwise("relu"), (2,), 2),
    )
    graph = Graph(3, steps)
    half = torch.as_tensor([width], dtype=torch.float64) / 2.0
    ranges = NetworkPlanes(graph).ranges(Boxes(-half, half))
    return FirstLayer(graph, "cpu").shares(ranges, 2.0 * half)[0].tolist()


def test_an_input_counts_by_its_part_of_a_range():
    first, second, third = shares([2.0, 1.0, 0.0], [0.0, 0.0])
    assert abs(second - 2.0 * first) < 1e-9 and third == 0.0


def test_a_relu_whose_sign_is_known_does_not_count():
    first, second, third = shares([1.0, 1.0, 1.0], [0.0, 5.0])
    assert min(first, second) > 0.0 and abs(third) < 1e-12
