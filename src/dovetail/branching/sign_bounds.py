"""Bounds of parts by signs of neurons: planes over the sets, with slopes and multipliers raised by gradients.

Where no ReLU can change sign any more, the network is linear and the multipliers of an LP are exact. They are
computed for many parts together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dovetail.bounds.batch_lps import InteriorPoint, LinearPrograms
from dovetail.bounds.planes.network_planes import Choices, Ranges
from dovetail.branching.sign_nodes import KnownNeurons, Nodes, unstable
from dovetail.branching.slopes import Ascent
from dovetail.branching.targets import Neurons, Targets

LEAF_STEPS = 30
"""Steps of Adam before the LP of a leaf: two leaves of three are closed then (wine)."""
LOWER_WEIGHT = 0.01
"""Weight of the gap below a ReLU in a score, against the one above: slopes are chosen, chords are not
(adversarial examples: 83 nodes, 435 with 0.1; with 0.5 several trees did not close)."""
ANY = 1e-12
"""Score of a neuron without influence, which must be divided before a leaf is exact."""
AT_ONCE = 1 << 22
"""Numbers in the LPs of leaves that are solved together: 32 MB."""
LP_STEPS = 20
TINY_PRICE = 1e-12
"""Smallest divisor for the multiplier of a condition."""


@dataclass(frozen=True, eq=False)
class Bounded:
    """Nodes with their bounds, and the best moves of each."""

    nodes: Nodes
    moves: Tensor
    """(P, m)."""


class Bounding:
    """Bounds nodes of K targets."""

    def __init__(
        self,
        targets: Targets,
        steps: int,
        *,
        single: bool = False,
        known: KnownNeurons | None = None,
        fresh: bool = False,
    ) -> None:
        """`fresh`: only the signs of a node's neurons are known."""
        self.targets, self._steps, self._known, self._fresh = targets, steps, known, fresh
        self.neurons = Neurons(targets.planes.graph)
        self._ascent = Ascent(targets, self.neurons, single=single)
        self._single = single

    def roots(self) -> Nodes:
        """One root per target, with the ranges of neurons known before."""
        count, width = self.targets.count, self.neurons.count
        like = self.targets.shift
        nothing = torch.zeros(count, width, dtype=like.dtype, device=like.device)
        known = self._known or KnownNeurons.nothing(count, width, like)
        return Nodes(
            torch.arange(count, device=like.device),
            torch.full_like(like, -torch.inf),
            known.lower,
            known.upper,
            nothing.to(torch.int8),
            nothing - 1.0,
            nothing,
            torch.full((count,), -1, device=like.device),
            torch.zeros_like(like),
        )

    def children(self, nodes: Nodes) -> Nodes:
        """Both sides of the chosen neurons, all of one vector, with the effect on other neurons."""
        found = nodes.children()
        if self._fresh:
            endless = torch.full_like(found.lower, torch.inf)
            lower = torch.where(found.sign > 0, 0.0, -endless)
            return replace(found, lower=lower, upper=torch.where(found.sign < 0, 0.0, endless))
        pairs = None if self._known is None else self._known.pairs
        if pairs is None or not len(found) or int(found.choice.max()) >= self.neurons.sizes[0]:
            return found
        return pairs.applied(found)

    def bounded(self, nodes: Nodes, limit: Tensor, steps: int | None = None, settled: int = 0) -> Bounded:
        """Nodes with ranges, bounds and the next division; those that reach `limit` (P,) are not optimised.
        Up to the place `settled` the ranges are as tight as planes make them."""
        targets = self.targets.take(nodes.target)
        nodes, ranges = self._ranged(nodes, targets, 0 if self._fresh else settled)
        found = self._ascent.run(nodes, limit, self._steps if steps is None else steps)
        nodes = replace(nodes, slope=found.slope, multiplier=found.multiplier)
        nodes, plane = self._proved(nodes, targets, ranges)
        moves = targets.guess(*plane)[1] if self._single else found.moves  # single nodes without a row
        empty = (nodes.lower > nodes.upper).any(1)  # no point has these signs
        choice = _choice(nodes, found.weight)
        arriving = found.weight.gather(1, choice.clamp(min=0)[:, None])[:, 0]
        bound = torch.where(empty, torch.inf, nodes.bound)
        return Bounded(replace(nodes, bound=bound, choice=choice, arriving=arriving), moves)

    def _proved(self, nodes: Nodes, targets: Targets, ranges: Ranges) -> tuple[Nodes, tuple[Tensor, Tensor]]:
        """Nodes with the bounds by their slopes and multipliers, and their planes."""
        plane = self._plane(nodes, targets, ranges)
        value = targets.value_of(*plane).nan_to_num(-torch.inf, torch.inf, -torch.inf)
        return replace(nodes, bound=torch.fmax(nodes.bound, value)), plane

    def _plane(self, nodes: Nodes, targets: Targets, ranges: Ranges) -> tuple[Tensor, Tensor]:
        """(P, d) slopes and (P,) offsets, at the slopes and multipliers of nodes."""
        cut = self.neurons.cut
        choices = Choices(
            {place: part[:, None] for place, part in cut(nodes.slope).items()},
            {place: part[:, None] for place, part in cut(nodes.multiplier * nodes.sign).items()},
        )
        planes = targets.planes.planes(targets.rows[:, None], ranges, choices)
        return planes.slopes[:, 0], planes.offset[:, 0]

    def prices(self, nodes: Nodes) -> Tensor:
        """(P,) multipliers of the condition in the bounds of nodes; 0 without one."""
        targets = self.targets.take(nodes.target)
        if not targets.condition:
            return torch.zeros_like(nodes.bound)
        slopes, offset = self._plane(nodes, targets, self._ranged(nodes, targets)[1])
        return targets.domain.condition_price(slopes, offset + targets.shift, targets.costs).price

    def _ranged(self, nodes: Nodes, targets: Targets, settled: int = 0) -> tuple[Nodes, Ranges]:
        """The ranges of all vectors, also stored in the nodes."""
        sizes = targets.planes.graph.sizes
        endless = torch.tensor(torch.inf, dtype=nodes.bound.dtype, device=nodes.bound.device)
        known = Ranges([-endless] * len(sizes), [endless] * len(sizes))
        for place, low in self.neurons.cut(nodes.lower).items():
            known.lower[place] = low
        for place, high in self.neurons.cut(nodes.upper).items():
            known.upper[place] = high
        ranges = targets.planes.ranges(targets.domain, known, settled)
        lower, upper = self.neurons.joined(ranges.lower), self.neurons.joined(ranges.upper)
        start = torch.where(upper > -lower, 1.0, 0.0)
        slope = torch.where(nodes.slope < 0.0, start, nodes.slope)
        return replace(nodes, lower=lower, upper=upper, slope=slope), ranges

    def settled(self, leaves: Nodes) -> Bounded:
        """Leaves, in which no ReLU can change sign, with the multipliers of their LPs."""
        count, moves = self.neurons.count, self.targets.domain.limit.shape[1]
        together = max(1, AT_ONCE // ((count + 2) * (count + moves + 2)))
        every = torch.arange(len(leaves), device=leaves.target.device).split(together)  # type: ignore[no-untyped-call]
        found = [self._settled(leaves.take(some)) for some in every]
        nodes = found[0].nodes.joined(*(one.nodes for one in found[1:]))
        return Bounded(nodes, torch.cat([one.moves for one in found]))

    def _settled(self, leaves: Nodes) -> Bounded:
        targets, neurons = self.targets.take(leaves.target), self.neurons
        leaves, ranges = self._ranged(leaves, targets)
        assert not unstable(leaves).any(), "a leaf has no neuron that may change sign"
        domain = targets.domain

        def linear(place: int, rows: Tensor) -> tuple[Tensor, Tensor]:
            """Rows times a vector: slopes along the moves, and constants."""
            plane = targets.planes.planes_at(place, rows, ranges)
            constant = plane.offset + (plane.slopes @ domain.origin[:, :, None])[:, :, 0]
            return plane.slopes @ domain.directions, constant

        value, constant = linear(neurons.last, targets.rows[:, None])
        constant = constant + targets.shift[:, None]
        read = [
            linear(place, torch.diag_embed(sign.to(value.dtype)))
            for place, sign in neurons.cut(leaves.sign).items()
        ]
        rows = [domain.weights[:, None], *(slopes for slopes, _ in read)]
        lower = [domain.least[:, None], *(-part for _, part in read)]
        upper = [domain.most[:, None], *(torch.full_like(part, torch.inf) for _, part in read)]
        cost = targets.costs
        if targets.condition:
            rows, lower, upper = [*rows, value], [*lower, constant - torch.inf], [*upper, -constant]
        else:
            cost = cost + value[:, 0]
        sides = torch.cat(lower, dim=1), torch.cat(upper, dim=1)
        sides[0][:, 1 : 1 + neurons.count][leaves.sign == 0] = -torch.inf
        limits = torch.zeros_like(domain.limit), domain.limit
        method = InteriorPoint(LinearPrograms(cost, 0.0, torch.cat(rows, dim=1), *sides, *limits))
        method.run(LP_STEPS)
        y = method.multipliers
        signs = y[:, 1 : 1 + neurons.count].clamp(min=0.0)
        if targets.condition:  # multipliers of a plane are relative to a price of 1
            signs = signs / (-y[:, -1:]).clamp(min=TINY_PRICE)
        nodes, _ = self._proved(replace(leaves, multiplier=signs), targets, ranges)
        return Bounded(nodes, method.points)


def _choice(nodes: Nodes, weight: Tensor) -> Tensor:
    """(P,) the open neuron whose two lines are farthest apart, weighted; -1 if there is none."""
    low, high = nodes.lower, nodes.upper
    open_sign = unstable(nodes)
    above = -low * high / torch.where(open_sign, high - low, 1.0)
    below = torch.maximum(nodes.slope * -low, (1.0 - nodes.slope) * high)
    score = (-weight).clamp(min=0.0) * above + LOWER_WEIGHT * weight.clamp(min=0.0) * below
    score = torch.where(open_sign, score.nan_to_num(0.0) + ANY, -1.0)
    return torch.where(open_sign.any(1), score.argmax(1), -1)
