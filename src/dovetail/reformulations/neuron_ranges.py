"""Between which values each neuron of a dense network is, for many samples at once.

The rows of a written-out network are as good as these: a neuron that cannot change sign needs no binary, and
a tighter range is a smaller M. Planes through several layers keep what intervals forget: that neurons of one
layer read the same inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from dovetail.bounds.box import common
from dovetail.bounds.planes.domain import Boxes
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.bounds.planes.output_ranges import output_ranges
from dovetail.core.arrays import FloatArray
from dovetail.networks.layers import Dense, Layer, program_of

MOST_WORK = 2e9
"""Multiplications, about a second: a network whose planes take more is too large to be written out anyway."""

LayerRanges = tuple[tuple[FloatArray, FloatArray], ...]
"""(n, size) least and largest values: of the inputs, then of what each layer gives."""


def neuron_ranges(
    layers: Sequence[Layer], lower: FloatArray, upper: FloatArray, known: LayerRanges | None = None
) -> LayerRanges:
    """For samples with inputs between (n, d) bounds; nothing is looser than `known`, which holds for them."""
    by_planes = (
        _by_planes(layers, lower, upper) if layers and _work(layers, len(lower)) <= MOST_WORK else None
    )
    low, high = (lower, upper) if known is None else common(lower, upper, *known[0])[:2]
    ranges = [(low, high)]
    for place, layer in enumerate(layers, start=1):
        low, high = _passed_on(layer, low, high)
        for other in (by_planes, known):
            if other is not None:
                low, high, _ = common(low, high, *other[place])
        ranges.append((low, high))
    return tuple(ranges)


def _passed_on(layer: Layer, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    program = program_of((layer,), lower.shape[1])
    low, high = program.ranges(lower, upper)
    return low[:, program.outputs], high[:, program.outputs]


def _work(layers: Sequence[Layer], samples: int) -> float:
    """Multiplications: the rows of every layer, both signs, go back through all layers before it."""
    total, before = 0.0, 0.0
    for layer in layers:
        if isinstance(layer, Dense):
            before += layer.weight.size
            total += 2.0 * len(layer.bias) * before
    return samples * total


def _by_planes(layers: Sequence[Layer], lower: FloatArray, upper: FloatArray) -> LayerRanges | None:
    """Of layers that are each a step of the graph."""
    planes = NetworkPlanes(program_of(layers, lower.shape[1]).graph())
    if len(planes.graph.steps) != len(layers):
        return None
    domain = Boxes(torch.from_numpy(np.array(lower)), torch.from_numpy(np.array(upper)))
    ranges = output_ranges(planes, domain)
    return tuple((low.numpy(), high.numpy()) for low, high in zip(ranges.lower, ranges.upper, strict=True))
