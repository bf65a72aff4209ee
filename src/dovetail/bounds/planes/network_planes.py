"""Linear planes below the outputs of a network over sets of inputs, by backward substitution (CROWN).

    ranges    every step's least and largest values: by intervals, then, for what a nonlinear step reads, by planes
    planes    rows of outputs >= slopes x + offset:  from the outputs backwards, an affine step is carried over
              by its own adjoint, a nonlinear one by the line that is below it (above, for a negative weight)

All in float64, many sets of inputs at a time, on any device. What rounding can do on the way is taken off:
at each step at most gamma |A| (|W| |v| + |b|), where A are the weights that arrive and v is within its range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dovetail.bounds.planes.domain import Domain, gamma
from dovetail.bounds.planes.relaxation import RULES, Lines
from dovetail.core.errors import UnsupportedError
from dovetail.core.graph import Affine, Elementwise, Graph

MORE = 8
"""Operations beside a sum itself: the split into signs, a slope, the offset."""


@dataclass(eq=False)
class Ranges:
    """Bounds of every vector of a graph over N sets of inputs: (N, size) each, inputs first."""

    lower: list[Tensor]
    upper: list[Tensor]

    def size(self, place: int) -> Tensor:
        """(N, size) the largest absolute value."""
        return torch.maximum(self.lower[place].abs(), self.upper[place].abs())

    def take(self, chosen: Tensor) -> Ranges:
        """Of some of the sets, by index."""
        return Ranges([low[chosen] for low in self.lower], [high[chosen] for high in self.upper])


@dataclass(frozen=True, eq=False)
class Planes:
    """rows f(x) >= slopes x + offset on each of N sets of inputs."""

    slopes: Tensor
    """(N, S, d)."""
    offset: Tensor
    """(N, S); rounding is taken off."""


@dataclass(frozen=True, eq=False)
class Choices:
    """What may be chosen freely and leaves every plane sound: optimised by those who want better ones.

    By place of the vector that a ReLU reads.
    """

    slopes: Mapping[int, Tensor] = field(default_factory=dict)
    """(N, 1 or S, size) lower slopes of ReLUs that may change sign, between 0 and 1."""
    multipliers: Mapping[int, Tensor] = field(default_factory=dict)
    """(N, 1 or S, size) of conditions sign z >= 0 that hold on the set: sign times a number >= 0."""


NO_CHOICES = Choices()


class NetworkPlanes:
    """One graph, loaded once."""

    def __init__(self, graph: Graph, device: str = "cpu") -> None:
        self.graph, self._device = graph, device
        for step in graph.steps:
            operation = step.operation
            if not isinstance(operation, Affine) and not (
                isinstance(operation, Elementwise) and operation.kind in RULES
            ):
                raise UnsupportedError(f"there are no planes for {operation}")
        self._weights = [
            tuple(self._tensor(w) for w in step.operation.weights)
            if isinstance(step.operation, Affine)
            else ()
            for step in graph.steps
        ]
        self._biases = [
            self._tensor(step.operation.bias) if isinstance(step.operation, Affine) else None
            for step in graph.steps
        ]

    def _tensor(self, array: object) -> Tensor:
        return torch.as_tensor(array, dtype=torch.float64, device=self._device)

    # ---- ranges

    def ranges(self, domain: Domain, known: Ranges | None = None) -> Ranges:
        """Of every vector; nothing is looser than `known`, which holds on the same sets."""
        ranges = Ranges([domain.lower], [domain.upper])
        for place, step in enumerate(self.graph.steps, start=1):
            low, high = self._interval(place, ranges)
            if known is not None:
                low, high = torch.maximum(low, known.lower[place]), torch.minimum(high, known.upper[place])
            ranges.lower.append(low)
            ranges.upper.append(high)
            if isinstance(step.operation, Affine) and self._read_by_nonlinear(place):
                self._tighten(place, domain, ranges)
        return ranges

    def _read_by_nonlinear(self, place: int) -> bool:
        return any(
            place in step.sources and not isinstance(step.operation, Affine) for step in self.graph.steps
        )

    def _interval(self, place: int, ranges: Ranges) -> tuple[Tensor, Tensor]:
        """From the ranges of the sources alone."""
        step = self.graph.steps[place - 1]
        operation = step.operation
        if isinstance(operation, Affine):
            middle = self._biases[place - 1]
            assert middle is not None
            half = torch.zeros_like(middle)
            size = middle.abs()
            for source, weight in zip(step.sources, self._weights[place - 1], strict=True):
                low, high = ranges.lower[source], ranges.upper[source]
                middle = middle + (0.5 * (low + high)) @ weight.T
                half = half + (0.5 * (high - low)) @ weight.abs().T
                size = size + ranges.size(source) @ weight.abs().T
            noise = gamma(sum(w.shape[1] for w in self._weights[place - 1]) + MORE) * size
            return middle - half - noise, middle + half + noise
        assert isinstance(operation, Elementwise)
        lines = self._lines(place, ranges)
        low, high = ranges.lower[step.sources[0]], ranges.upper[step.sources[0]]
        del lines
        return torch.relu(low), torch.relu(high)

    def _tighten(self, place: int, domain: Domain, ranges: Ranges) -> None:
        """By planes, for the values whose sign is open in some set."""
        low, high = ranges.lower[place], ranges.upper[place]
        rows = torch.nonzero(((low < 0.0) & (high > 0.0)).any(0)).ravel()
        if rows.numel() == 0:
            return
        chosen = torch.zeros(rows.numel(), low.shape[1], dtype=low.dtype, device=low.device)
        chosen[torch.arange(rows.numel()), rows] = 1.0
        both = torch.cat([chosen, -chosen])
        plane = self._backward(place, both[None].expand(len(low), -1, -1), ranges, NO_CHOICES)
        least = domain.minimum(plane.slopes, plane.offset)
        below, above = least[:, : rows.numel()], -least[:, rows.numel() :]
        low, high = low.clone(), high.clone()
        low[:, rows] = torch.fmax(low[:, rows], below)
        high[:, rows] = torch.fmin(high[:, rows], above)
        ranges.lower[place], ranges.upper[place] = low, high

    # ---- planes

    def planes(self, rows: Tensor, ranges: Ranges, choices: Choices = NO_CHOICES) -> Planes:
        """Planes below `rows` of the outputs: (S, outputs), or (N, S, outputs)."""
        count = len(ranges.lower[0])
        if rows.dim() == 2:
            rows = rows[None].expand(count, -1, -1)
        return self._backward(len(self.graph.steps), rows, ranges, choices)

    def _backward(self, place: int, rows: Tensor, ranges: Ranges, choices: Choices) -> Planes:
        """From `rows` of the vector at `place` to the inputs."""
        waiting: dict[int, Tensor] = {place: rows}
        offset = torch.zeros(rows.shape[:2], dtype=rows.dtype, device=rows.device)
        for here in range(place, 0, -1):
            A = waiting.pop(here, None)
            if A is None:
                continue
            if here in choices.multipliers:
                A = A - choices.multipliers[here]
            step = self.graph.steps[here - 1]
            if isinstance(step.operation, Affine):
                carried, moved = self._through_affine(here, A, ranges)
            else:
                carried, moved = self._through_lines(here, A, ranges, choices)
            offset = offset + moved
            for source, part in zip(step.sources, carried, strict=True):
                waiting[source] = waiting[source] + part if source in waiting else part
        slopes = waiting.get(0)
        if slopes is None:
            slopes = torch.zeros(*rows.shape[:2], self.graph.inputs, dtype=rows.dtype, device=rows.device)
        return Planes(slopes, offset)

    def _through_affine(self, here: int, A: Tensor, ranges: Ranges) -> tuple[list[Tensor], Tensor]:
        step, weights, bias = self.graph.steps[here - 1], self._weights[here - 1], self._biases[here - 1]
        assert bias is not None
        size = bias.abs()
        for source, weight in zip(step.sources, weights, strict=True):
            size = size + ranges.size(source) @ weight.abs().T
        noise = gamma(max(step.size, *(w.shape[1] for w in weights)) + MORE)
        moved = A @ bias - noise * (A.abs() @ size.expand(len(A), -1)[:, :, None])[:, :, 0]
        return [A @ weight for weight in weights], moved

    def _through_lines(
        self, here: int, A: Tensor, ranges: Ranges, choices: Choices
    ) -> tuple[list[Tensor], Tensor]:
        step = self.graph.steps[here - 1]
        (source,) = step.sources
        lines = self._lines(here, ranges)
        positive, negative = A.clamp(min=0.0), A.clamp(max=0.0)
        below_slope = lines.below_slope[:, None]
        if source in choices.slopes:
            open_sign = (ranges.lower[source] < 0.0) & (ranges.upper[source] > 0.0)
            below_slope = torch.where(open_sign[:, None], choices.slopes[source], below_slope)
        carried = positive * below_slope + negative * lines.above_slope[:, None]
        below, above = lines.below_offset[:, :, None], lines.above_offset[:, :, None]
        steepest = torch.maximum(lines.below_slope.abs(), lines.above_slope.abs()).clamp(min=1.0)
        size = steepest * ranges.size(source) + torch.maximum(below.abs(), above.abs())[:, :, 0]
        moved = (positive @ below + negative @ above)[:, :, 0]
        noise = gamma(step.size + MORE) * (A.abs() @ size[:, :, None])[:, :, 0]
        return [carried], moved - noise

    def _lines(self, place: int, ranges: Ranges) -> Lines:
        step = self.graph.steps[place - 1]
        assert isinstance(step.operation, Elementwise)
        (source,) = step.sources
        return RULES[step.operation.kind](
            ranges.lower[source], ranges.upper[source], step.operation.parameter
        )
