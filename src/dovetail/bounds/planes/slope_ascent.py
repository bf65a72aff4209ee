"""Better lower slopes of ReLUs for one plane per set of inputs, by a few steps of Adam.

If the sign of a ReLU's input is open, the line below it may have any slope between 0 and 1 (see `Choices`).
The default looks at one neuron; the best slope depends on the rest of the network.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dovetail.bounds.planes.network_planes import Choices, NetworkPlanes, Planes, Ranges
from dovetail.bounds.planes.relaxation import goes_on
from dovetail.networks.graph import Elementwise, Graph

RATE = 0.4
"""Step size of Adam: a few steps cross the range of a slope."""
DECAYED = 0.2
"""The fraction of the step size at the last step."""
FIRST, SECOND = 0.9, 0.99
"""Adam's decay rates; the second is small, because there are few steps."""
SMALLEST = 1e-12
"""Smaller gradients count as none."""

Slopes = dict[int, Tensor]
"""(N, 1, size) by place."""


def open_places(graph: Graph) -> list[int]:
    """The places of vectors that ReLUs read."""
    relu = Elementwise("relu")
    return sorted({step.sources[0] for step in graph.steps if step.operation == relu})


def usual(graph: Graph, ranges: Ranges) -> Slopes:
    """The default slopes."""
    return {p: goes_on(ranges.lower[p], ranges.upper[p])[:, None] for p in open_places(graph)}


def ascended(
    network: NetworkPlanes, rows: Tensor, ranges: Ranges, value: Callable[[Planes], Tensor], steps: int
) -> Slopes:
    """The best slopes found; `value` returns the (N,) quality of planes below `rows` (N, 1, outputs)."""
    start = usual(network.graph, ranges)
    sizes = [part.shape[2] for part in start.values()]
    x = torch.cat(list(start.values()), 2)
    best, best_x = torch.full_like(x[:, 0, 0], -torch.inf), x
    momentum, square = torch.zeros_like(x), torch.zeros_like(x)
    for step in range(1, steps + 2):
        with torch.enable_grad():
            moved = x.clone().requires_grad_()
            slopes = dict(zip(start, torch.split(moved, sizes, dim=2), strict=True))
            worth = value(network.planes(rows, ranges, Choices(slopes)))
            (gradient,) = torch.autograd.grad(worth.sum(), moved)
        worth = worth.detach()
        best_x = torch.where((worth > best)[:, None, None], x, best_x)
        best = torch.fmax(best, worth)
        momentum = torch.lerp(gradient, momentum, FIRST)
        square = torch.lerp(gradient * gradient, square, SECOND)
        rate = RATE * DECAYED ** ((step - 1) / steps) / (1.0 - FIRST**step)
        size = (square / (1.0 - SECOND**step)).sqrt() + SMALLEST
        x = (x + rate * momentum / size).clamp(0.0, 1.0)
    return dict(zip(start, torch.split(best_x, sizes, dim=2), strict=True))
