"""Better slopes and multipliers for a batch of nodes, by a few steps of Adam.

The plane of a node is linear in each slope (alpha) and multiplier (beta): at the point x where the plane is
least, its gradients are values that the relaxed network computes there,

    d value / d slope_h = A_h^+ z_h(x),     d value / d multiplier_h = -sign_h z_h(x),

where A are the weights that reach the ReLUs in the backward pass, z the ReLUs' inputs in the forward pass. So
a step is one backward and one forward pass, without recorded operations. The results need not be sound: they
are numbers to choose (see `Choices`), and the bound is proved again by their user.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from dovetail.branching.sign_nodes import Nodes, unstable
from dovetail.branching.targets import Neurons, Targets
from dovetail.core.deadline import require_time
from dovetail.networks.graph import Affine

RATE = 0.2
"""Step size of Adam, in slopes and in relative multipliers."""
DECAYED = 0.2
"""The fraction of the step size at the last step."""
FIRST, SECOND = 0.7, 0.99
"""Adam's decay rates; the second is small, because there are few steps."""
SMALLEST = 1e-12
"""Smaller sizes count as 0."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The result of an ascent for P nodes."""

    slope: Tensor
    multiplier: Tensor
    weight: Tensor
    """(P, H) the weight of each ReLU in the plane."""
    moves: Tensor
    """(P, m) the minimiser of the plane at the end."""


@dataclass(frozen=True, eq=False)
class _Lines:
    """The lines of ReLUs between bounds, (P, H) side by side."""

    open_sign: Tensor
    sure: Tensor
    """The slope if the sign is known."""
    chord: Tensor
    rise: Tensor
    """The slope of the chord if the sign is open; 0 otherwise."""

    @classmethod
    def of(cls, nodes: Nodes) -> _Lines:
        low, high, open_sign = nodes.lower, nodes.upper, unstable(nodes)
        sure = torch.where(low >= 0.0, 1.0, 0.0)
        chord = torch.where(open_sign, high / torch.where(open_sign, high - low, 1.0), sure)
        return cls(open_sign, sure, chord, torch.where(open_sign, -low * chord, 0.0))

    def take(self, chosen: Tensor) -> _Lines:
        return _Lines(self.open_sign[chosen], self.sure[chosen], self.chord[chosen], self.rise[chosen])


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """One evaluation."""

    value: Tensor
    weight: Tensor
    read: Tensor
    """(P, H) inputs of the ReLUs at the minimiser of the plane."""
    moves: Tensor


class Ascent:
    """Forward and backward passes of one network."""

    def __init__(self, targets: Targets, neurons: Neurons, *, single: bool = False) -> None:
        self._graph, self._neurons = targets.planes.graph, neurons
        self._kind = torch.float32 if single else torch.float64
        self._targets = targets.of_kind(self._kind)
        device = targets.shift.device
        self._affine: dict[int, tuple[list[Tensor], Tensor]] = {}
        for place, step in enumerate(self._graph.steps, start=1):
            if isinstance(step.operation, Affine):
                weights, bias = step.operation.weights, step.operation.bias
                self._affine[place] = ([self._loaded(w, device) for w in weights], self._loaded(bias, device))

    def _loaded(self, array: object, device: torch.device) -> Tensor:
        return torch.as_tensor(array, dtype=self._kind, device=device)

    def run(self, nodes: Nodes, limit: Tensor, steps: int) -> Choice:
        """Steps for nodes that do not reach `limit` (P,) at once."""
        exact = nodes.slope.dtype
        found = self._run(nodes.of_kind(self._kind), limit.to(self._kind), steps)
        return Choice(*(getattr(found, field.name).to(exact) for field in fields(found)))

    def _run(self, nodes: Nodes, limit: Tensor, steps: int) -> Choice:
        targets, lines = self._targets.take(nodes.target), _Lines.of(nodes)
        at = self._evaluated(nodes.slope, nodes.multiplier * nodes.sign, lines, targets)
        weak = torch.nonzero(~(at.value >= limit)).ravel()
        found = Choice(nodes.slope, nodes.multiplier, at.weight, at.moves)
        if not weak.numel() or not steps:
            return found
        part = self._climbed(nodes.take(weak), targets.take(weak), lines.take(weak), at, weak, steps)
        return Choice(
            *(
                whole.index_put((weak,), piece)
                for whole, piece in zip(
                    (found.slope, found.multiplier, found.weight, found.moves),
                    (part.slope, part.multiplier, part.weight, part.moves),
                    strict=True,
                )
            )
        )

    def _climbed(
        self, nodes: Nodes, targets: Targets, lines: _Lines, first: _Evaluation, where: Tensor, steps: int
    ) -> Choice:
        at = _Evaluation(first.value[where], first.weight[where], first.read[where], first.moves[where])
        scale = at.weight.abs().mean(1, keepdim=True).clamp(min=SMALLEST)
        x = torch.stack([nodes.slope, nodes.multiplier / scale])
        best, best_x, weight = at.value.nan_to_num(-torch.inf), x, at.weight
        momentum, square = torch.zeros_like(x), torch.zeros_like(x)
        for step in range(1, steps + 1):
            gradient = torch.stack(
                [at.weight.clamp(min=0.0) * at.read * lines.open_sign, -at.read * nodes.sign * scale]
            )
            momentum = torch.lerp(gradient, momentum, FIRST)
            square = torch.lerp(gradient * gradient, square, SECOND)
            rate = RATE * DECAYED ** ((step - 1) / steps) / (1.0 - FIRST**step)
            size = (square / (1.0 - SECOND**step)).sqrt_().add_(SMALLEST)
            x = (x + rate * momentum / size).clamp_(min=0.0)
            x[0].clamp_(max=1.0)
            at = self._evaluated(x[0], x[1] * scale * nodes.sign, lines, targets)
            better = at.value > best
            best = torch.where(better, at.value, best)
            best_x = torch.where(better[None, :, None], x, best_x)
            weight = torch.where(better[:, None], at.weight, weight)
        return Choice(best_x[0], best_x[1] * scale, weight, at.moves)

    def _evaluated(self, slope: Tensor, signed: Tensor, lines: _Lines, targets: Targets) -> _Evaluation:
        below = torch.where(lines.open_sign, slope, lines.sure)
        slopes, offset, weight = self._backwards(below, signed, lines, targets.rows)
        value, moves = targets.guess(slopes, offset)
        read = self._forwards(targets.domain.at(moves), weight, below, lines)
        return _Evaluation(value, weight, read, moves)

    def _backwards(
        self, below: Tensor, signed: Tensor, lines: _Lines, rows: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Slopes and offset of the plane, and the weights at ReLUs."""
        graph, split = self._graph, self._neurons.cut
        below_at, chord_at, rise_at = split(below), split(lines.chord), split(lines.rise)
        signed_at, arriving = split(signed), dict[int, Tensor]()
        waiting, offset = {len(graph.steps): rows}, rows.new_zeros(len(rows))
        for here in range(len(graph.steps), 0, -1):
            require_time()
            A = waiting.pop(here, None)
            if A is None:
                continue
            A = A - signed_at[here] if here in signed_at else A
            sources = graph.steps[here - 1].sources
            if here in self._affine:
                weights, bias = self._affine[here]
                offset = offset + A @ bias
                carried = [A @ weight for weight in weights]
            else:
                (source,) = sources
                arriving[source] = A
                offset = offset + (A.clamp(max=0.0) * rise_at[source]).sum(1)
                carried = [A * torch.where(A < 0.0, chord_at[source], below_at[source])]
            for source, part in zip(sources, carried, strict=True):
                waiting[source] = waiting[source] + part if source in waiting else part
        joined = torch.cat([arriving[place] for place in self._neurons.places], dim=1)
        slopes = waiting[0] if 0 in waiting else rows.new_zeros(len(rows), graph.inputs)
        return slopes, offset, joined

    def _forwards(self, x: Tensor, weight: Tensor, below: Tensor, lines: _Lines) -> Tensor:
        """Inputs of ReLUs at x, with each ReLU before replaced by the line for its weight."""
        slope = torch.where(weight < 0.0, lines.chord, below)
        rise = torch.where(weight < 0.0, lines.rise, 0.0)
        slope_at, rise_at = self._neurons.cut(slope), self._neurons.cut(rise)
        vectors = [x]
        for place, step in enumerate(self._graph.steps, start=1):
            if place in self._affine:
                weights, total = self._affine[place]
                for source, matrix in zip(step.sources, weights, strict=True):
                    total = total + vectors[source] @ matrix.T
                vectors.append(total)
            else:
                (source,) = step.sources
                vectors.append(torch.addcmul(rise_at[source], slope_at[source], vectors[source]))
        return self._neurons.joined(vectors)
