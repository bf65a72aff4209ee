"""Better lower slopes of ReLUs for one plane per set of inputs, by a few steps of Adam.

Where the sign of what a ReLU reads is open, the line below it may have any slope between 0 and 1 (see
`Choices`). The rule for planes without any choice looks at one neuron; which slope helps a plane most depends
on where the plane is least. Nothing here has to be sound: what comes out are numbers to choose, and whoever
uses them proves the bound anew.

`relu_branching/ascent.py` does the same for slopes and multipliers of split neurons, by passes of its own
that take only plain ReLU networks; here any graph will do, and torch records the gradient.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dovetail.bounds.planes.network_planes import Choices, NetworkPlanes, Planes, Ranges
from dovetail.bounds.planes.relaxation import goes_on
from dovetail.networks.graph import Elementwise, Graph

RATE = 0.4
"""Of Adam's steps: a few of them cross a slope's range."""
DECAYED = 0.2
"""The part of the rate that is left at the last step."""
FIRST, SECOND = 0.9, 0.99
"""Adam's memories; the second is short, since there are few steps."""
SMALLEST = 1e-12
"""Below this a gradient is none."""

Slopes = dict[int, Tensor]
"""(N, 1, size) by place."""


def open_places(graph: Graph) -> list[int]:
    """The places of vectors that ReLUs read."""
    relu = Elementwise("relu")
    return sorted({step.sources[0] for step in graph.steps if step.operation == relu})


def usual(graph: Graph, ranges: Ranges) -> Slopes:
    """Those that planes have without any choice."""
    return {p: goes_on(ranges.lower[p], ranges.upper[p])[:, None] for p in open_places(graph)}


def ascended(
    network: NetworkPlanes, rows: Tensor, ranges: Ranges, value: Callable[[Planes], Tensor], steps: int
) -> Slopes:
    """The best slopes met; `value` says what planes below `rows` (N, 1, outputs) are worth, (N,)."""
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
