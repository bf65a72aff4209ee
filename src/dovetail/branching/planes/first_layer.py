"""Which inputs bend a network: what its first nonlinear steps are off by on a box, shared out by inputs.

Planes are far apart because somewhere in a network a function was replaced by two lines. The first of these
functions read the inputs themselves: how far apart their lines are, and which input their range comes from,
is known exactly; later ones mostly bend where the first do. Measured on function (3x64, 6x32, eight inputs):
splits by these shares raise the bounds of both halves nearly as much as the best of all splits does.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dovetail.bounds.planes.network_planes import Ranges
from dovetail.bounds.planes.relaxation import rule_of
from dovetail.core.arrays import FloatArray
from dovetail.networks.graph import Affine, Elementwise, Graph

NO_WIDTH = 1e-300
"""Divided by instead of 0."""


class FirstLayer:
    """The functions of single values that read a linear map of the inputs."""

    def __init__(self, graph: Graph, device: str) -> None:
        maps = _linear_maps(graph)
        self._parts = [
            (step.sources[0], step.operation.kind, _sizes(maps[step.sources[0]], device))
            for step in graph.steps
            if isinstance(step.operation, Elementwise) and step.sources[0] in maps
        ]

    def shares(self, ranges: Ranges, width: Tensor) -> Tensor:
        """(N, inputs) how far lines are apart by each input, of boxes with these widths (N, inputs)."""
        total = torch.zeros_like(width)
        for place, kind, size in self._parts:
            low, high = ranges.lower[place], ranges.upper[place]
            lines = rule_of(kind).lines(low, high)
            slope = lines.above_slopes[0] - lines.below_slopes[0]
            apart = torch.maximum(slope * low, slope * high) + (lines.above_offset - lines.below_offset)
            total = total + (apart.clamp(min=0.0) / (width @ size.T).clamp(min=NO_WIDTH)) @ size
        return total * width


def _sizes(weights: FloatArray, device: str) -> Tensor:
    return torch.as_tensor(np.abs(weights), dtype=torch.float64, device=device)


def _linear_maps(graph: Graph) -> dict[int, FloatArray]:
    """By place, of vectors that are linear in the inputs."""
    maps = {0: np.eye(graph.inputs)}
    for place, step in enumerate(graph.steps, start=1):
        if isinstance(step.operation, Affine) and all(source in maps for source in step.sources):
            parts = zip(step.operation.weights, step.sources, strict=True)
            maps[place] = np.sum([weight @ maps[source] for weight, source in parts], axis=0)
    return maps
