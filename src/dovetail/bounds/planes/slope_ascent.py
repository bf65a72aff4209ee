"""Better lower slopes of ReLUs for one plane per set of inputs, by a few steps of Adam.

If the sign of a ReLU's input is open, the line below it may have any slope between 0 and 1 (see `Choices`).
The default looks at one neuron; the best slope depends on the rest of the network.

A plane is linear in each slope: at the point x where it is least, the derivative is A^+ z(x), where A is the
weight that reaches the ReLU in the backward pass, and z its input in a forward pass through the lines. So a
step is one pass in each direction, without recorded operations. They are not rounded outward: the slopes are
numbers to choose, and the planes at them are computed again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
Sought = tuple[NetworkPlanes, Tensor, Ranges]
"""A network, the (N, outputs) rows below which planes are sought, and its ranges. The N of each network is a
multiple of the number of boxes."""
Least = Callable[[Sequence[tuple[Tensor, Tensor]]], tuple[Tensor, list[Tensor]]]
"""Of (N, d) slopes and (N,) offsets of the planes of each network: (boxes,) the least value of all of them
together, and the (N, d) inputs of each network there."""
RELU = Elementwise("relu")


def open_places(graph: Graph) -> list[int]:
    """The places of vectors that ReLUs read."""
    return sorted({step.sources[0] for step in graph.steps if step.operation == RELU})


def usual(graph: Graph, ranges: Ranges) -> Slopes:
    """The default slopes."""
    return {p: goes_on(ranges.lower[p], ranges.upper[p])[:, None] for p in open_places(graph)}


def ascended(sought: Sequence[Sought], least: Least, steps: int) -> list[Slopes]:
    """The best slopes found for the planes of several networks together."""
    start = [usual(planes.graph, ranges) for planes, _, ranges in sought]
    sizes = [[part.shape[2] for part in one.values()] for one in start]
    lines = [planes.lines(ranges) for planes, _, ranges in sought]
    crossing = [
        _joined(rows > 0.0, [(ranges.lower[p] < 0.0) & (ranges.upper[p] > 0.0) for p in one])
        for one, (_, rows, ranges) in zip(start, sought, strict=True)
    ]
    x = [
        _joined(rows, [part[:, 0] for part in one.values()])
        for one, (_, rows, _) in zip(start, sought, strict=True)
    ]
    best: Tensor | float = -math.inf
    best_x = x
    momentum = square = [torch.zeros_like(part) for part in x]
    for step in range(1, steps + 2):
        require_time()
        free = [
            dict(zip(one, torch.split(torch.where(open_, part, torch.nan), size, 1), strict=True))
            for one, open_, part, size in zip(start, crossing, x, sizes, strict=True)
        ]
        passes = [
            _backwards(planes, rows, line, slopes)
            for (planes, rows, _), line, slopes in zip(sought, lines, free, strict=True)
        ]
        worth, at = least([(one.slopes, one.offset) for one in passes])
        gradient = [
            torch.where(open_, _joined(part, [derivatives[p] for p in one]), 0.0)
            for one, open_, part, derivatives in zip(
                start,
                crossing,
                at,
                (
                    _derivatives(planes, point, line, one)
                    for (planes, *_), point, line, one in zip(sought, at, lines, passes, strict=True)
                ),
                strict=True,
            )
        ]
        better = worth > best
        best_x = [
            torch.where(better.repeat_interleave(len(now) // len(better))[:, None], now, before)
            for now, before in zip(x, best_x, strict=True)
        ]
        best = torch.where(better, worth, best)
        momentum = [torch.lerp(g, m, FIRST) for g, m in zip(gradient, momentum, strict=True)]
        square = [torch.lerp(g * g, s, SECOND) for g, s in zip(gradient, square, strict=True)]
        rate = RATE * DECAYED ** ((step - 1) / steps) / (1.0 - FIRST**step)
        x = [
            (part + rate * m / ((s / (1.0 - SECOND**step)).sqrt() + SMALLEST)).clamp(0.0, 1.0)
            for part, m, s in zip(x, momentum, square, strict=True)
        ]
    return [
        dict(zip(one, torch.split(part[:, None], size, 2), strict=True))
        for one, part, size in zip(start, best_x, sizes, strict=True)
    ]


def _joined(like: Tensor, parts: Sequence[Tensor]) -> Tensor:
    """(N, sum of sizes) vectors side by side; without any, (N, 0)."""
    return torch.cat(list(parts), 1) if parts else like.new_zeros(len(like), 0)


@dataclass(frozen=True, eq=False)
class _Passed:
    """The planes of one network, without rounding."""

    slopes: Tensor
    offset: Tensor
    used: dict[int, tuple[Tensor, list[Tensor], Tensor]]
    """By place of a nonlinear step's result: the weight that reaches it, its line's slopes and height."""


def _backwards(
    network: NetworkPlanes, rows: Tensor, lines: dict[int, Relaxation], slopes: dict[int, Tensor]
) -> _Passed:
    """Planes below rows; slopes that are NaN are not free."""
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
            pairs = zip(line.below_slopes, line.above_slopes, strict=True)
            bent = [torch.where(negative, above, below) for below, above in pairs]
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
    return _Passed(at_inputs, offset, used)


def _derivatives(
    network: NetworkPlanes, x: Tensor, lines: dict[int, Relaxation], passed: _Passed
) -> dict[int, Tensor]:
    """The derivatives by the slopes, by place of the vectors that ReLUs read, at the inputs x."""
    values, found = [x], dict[int, Tensor]()
    for here, step in enumerate(network.graph.steps, start=1):
        if here in passed.used:
            A, bent, total = passed.used[here]
            for source, part in zip(step.sources, bent, strict=True):
                total = total + part * values[source]
        elif here in lines:  # no weight reaches this step
            A, total = torch.zeros_like(lines[here].below_offset), lines[here].below_offset
        else:
            weights, total = network.affine(here)
            for source, weight in zip(step.sources, weights, strict=True):
                total = total + values[source] @ weight.T
        if step.operation == RELU:
            (source,) = step.sources
            part = A.clamp(min=0.0) * values[source]
            found[source] = found[source] + part if source in found else part
        values.append(total)
    return found
