"""Better lower slopes of ReLUs for one plane per set of inputs, by a few steps of Adam.

If the sign of a ReLU's input is open, the line below it may have any slope between 0 and 1 (see `Choices`).
The default looks at one neuron; the best slope depends on the rest of the network.

A plane is linear in each slope: at the point x where it is least, the derivative is A^+ z(x), where A is the
weight that reaches the ReLU in the backward pass, and z its input in a forward pass through the lines. So a
step is one pass in each direction, without recorded operations. They are not rounded outward: the slopes are
numbers to choose, and the planes at them are computed again.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dovetail.bounds.planes.network_planes import NetworkPlanes, Ranges
from dovetail.bounds.planes.relaxation import Relaxation, goes_on
from dovetail.core.deadline import require_time
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
Least = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""The (N,) least values of planes with (N, d) slopes and (N,) offsets, and the (N, d) points there."""
RELU = Elementwise("relu")


def open_places(graph: Graph) -> list[int]:
    """The places of vectors that ReLUs read."""
    return sorted({step.sources[0] for step in graph.steps if step.operation == RELU})


def usual(graph: Graph, ranges: Ranges) -> Slopes:
    """The default slopes."""
    return {p: goes_on(ranges.lower[p], ranges.upper[p])[:, None] for p in open_places(graph)}


def ascended(network: NetworkPlanes, rows: Tensor, ranges: Ranges, least: Least, steps: int) -> Slopes:
    """The best slopes found for planes below `rows` (N, outputs)."""
    start = usual(network.graph, ranges)
    sizes = [part.shape[2] for part in start.values()]
    x = torch.cat([part[:, 0] for part in start.values()], 1)
    crossing = torch.cat([(ranges.lower[p] < 0.0) & (ranges.upper[p] > 0.0) for p in start], 1)
    lines = network.lines(ranges)
    best, best_x = torch.full_like(x[:, 0], -torch.inf), x
    momentum, square = torch.zeros_like(x), torch.zeros_like(x)
    for step in range(1, steps + 2):
        require_time()
        slopes = dict(zip(start, torch.split(torch.where(crossing, x, torch.nan), sizes, 1), strict=True))
        worth, derivatives = _evaluated(network, rows, lines, slopes, least)
        gradient = torch.where(crossing, torch.cat([derivatives[p] for p in start], 1), 0.0)
        best_x = torch.where((worth > best)[:, None], x, best_x)
        best = torch.fmax(best, worth)
        momentum = torch.lerp(gradient, momentum, FIRST)
        square = torch.lerp(gradient * gradient, square, SECOND)
        rate = RATE * DECAYED ** ((step - 1) / steps) / (1.0 - FIRST**step)
        size = (square / (1.0 - SECOND**step)).sqrt() + SMALLEST
        x = (x + rate * momentum / size).clamp(0.0, 1.0)
    return dict(zip(start, torch.split(best_x[:, None], sizes, 2), strict=True))


def _evaluated(
    network: NetworkPlanes, rows: Tensor, lines: dict[int, Relaxation], slopes: Slopes, least: Least
) -> tuple[Tensor, dict[int, Tensor]]:
    """(N,) the least value of each plane, and its derivatives by slopes; slopes that are NaN are not free."""
    steps = network.graph.steps
    waiting, offset = {len(steps): rows}, rows.new_zeros(len(rows))
    used: dict[int, tuple[Tensor, list[Tensor], Tensor]] = {}
    for here in range(len(steps), 0, -1):
        A = waiting.pop(here, None)
        if A is None:
            continue
        sources = steps[here - 1].sources
        if here in lines:
            line, negative = lines[here], A < 0.0
            bent = [torch.where(negative, a, b) for b, a in zip(line.below_slopes, line.above_slopes, strict=True)]
            if steps[here - 1].operation == RELU:
                free = slopes[sources[0]]
                bent = [torch.where(negative | free.isnan(), bent[0], free)]
            height = torch.where(negative, line.above_offset, line.below_offset)
            used[here] = A, bent, height
            offset, carried = offset + (A * height).sum(1), [A * part for part in bent]
        else:
            weights, bias = network.affine(here)
            offset, carried = offset + A @ bias, [A @ weight for weight in weights]
        for source, part in zip(sources, carried, strict=True):
            waiting[source] = waiting[source] + part if source in waiting else part
    at_inputs = waiting.get(0, rows.new_zeros(len(rows), network.graph.inputs))
    worth, x = least(at_inputs, offset)
    values, derivatives = [x], {place: torch.zeros_like(part) for place, part in slopes.items()}
    for here, step in enumerate(steps, start=1):
        if here in used:
            A, bent, height = used[here]
            total = height
            for source, part in zip(step.sources, bent, strict=True):
                total = total + part * values[source]
            if step.operation == RELU:
                (source,) = step.sources
                derivatives[source] = derivatives[source] + A.clamp(min=0.0) * values[source]
        elif here in lines:
            total = lines[here].below_offset  # no weight reaches this step
        else:
            weights, total = network.affine(here)
            for source, weight in zip(step.sources, weights, strict=True):
                total = total + values[source] @ weight.T
        values.append(total)
    return worth, derivatives
