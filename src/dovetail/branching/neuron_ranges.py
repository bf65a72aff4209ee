"""The largest and smallest inputs of a network's neurons: by branching over the layers before them.

Planes bound a layer's neurons one at a time, each at its worst case. The joint effect of all of them on a
neuron of the next layer is half of that (wine, two layers of 32 neurons: ranges half as wide, and a search
over the whole network comes as far in a quarter of the time). All neurons of a layer are searched side by
side, both ways, over the network that ends there.

Neurons of the first layer are linear in the inputs, so that a fixed sign of one is an additional row that
cuts the set of inputs: for any mu >= 0

    z_h  >=  min z_h - mu s z_i        where  s z_i >= 0,

the least over the whole set, in closed form. All pairs are computed at once, with the best mu of each, and
every split of a neuron in the first layer then narrows the others' ranges without further cost (wine, two
layers of 32 neurons: the proof of a block took 23 CPU seconds, and 45 without).
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from dovetail.bounds.planes.moves import Moves
from dovetail.bounds.planes.network_planes import NetworkPlanes, Ranges
from dovetail.branching.sign_nodes import KnownNeurons, SignPairs
from dovetail.branching.sign_search import SearchOptions, SignSearch
from dovetail.branching.targets import Neurons, Targets
from dovetail.networks.graph import Graph
from dovetail.run.budget import Budget

CLOSE = 0.02
"""Fraction of a range as planes alone give it: a side this close to an attained value is exact enough."""
OPTIONS = SearchOptions(batch=1024, steps=12, tolerance=0.0, single=True)
"""Sides differ by hundredths of a range, far more than the errors of single precision."""

MOST_NEURONS = 128
"""Largest number of neurons of the first layer: there are four times the square of that many pairs."""
STEEPEST = 8.0
"""Largest mu, in widths of the two ranges."""
ROUNDS = 8
"""Steps of a golden section."""
GOLDEN = 0.5 * (5.0**0.5 - 1.0)


def known_neurons(planes: NetworkPlanes, domain: Moves, budget: Budget, most: int) -> KnownNeurons:
    """Ranges of all neurons over each of K sets, layer by layer, by at most this number of nodes; the first
    layer's ranges come from planes.

    Networks that are not a chain of layers are not searched.
    """
    neurons, count, like = Neurons(planes.graph), len(domain.origin), domain.origin
    if not _is_chain(planes.graph):
        return KnownNeurons.nothing(count, neurons.count, like)
    # the first layer is affine in the inputs: planes over closed-form sets are exact there
    found = KnownNeurons.nothing(count, neurons.sizes[0], like)
    found = replace(found, pairs=sign_pairs(planes, domain, neurons.places[0]))
    for turn in range(1, len(neurons.places)):
        left = len(neurons.places) - turn
        up_to, part = planes.up_to(neurons.places[turn]), budget.part(budget.left / left)
        found = found.beside(*_searched(up_to, domain, found, part, most // left))
    return found


def _is_chain(graph: Graph) -> bool:
    return all(step.sources == (number,) for number, step in enumerate(graph.steps))


def _searched(
    planes: NetworkPlanes, domain: Moves, known: KnownNeurons, budget: Budget, most: int
) -> tuple[Tensor, Tensor]:
    """(K, outputs) the least and the largest value of a network's outputs, by at most this number of nodes:
    outputs and their negatives are the targets."""
    count, outputs, like = len(domain.origin), planes.graph.outputs, domain.origin
    sets = torch.arange(count, device=like.device).repeat_interleave(2 * outputs)
    eye = torch.eye(outputs, dtype=like.dtype, device=like.device)
    nothing = torch.zeros(len(sets), dtype=like.dtype, device=like.device)
    targets = Targets(
        planes,
        domain.take(sets),
        torch.zeros(len(sets), domain.limit.shape[1], dtype=like.dtype, device=like.device),
        torch.cat([eye, -eye]).repeat(count, 1),
        nothing,
        False,
        nothing + torch.inf,
    )
    search = SignSearch(targets, OPTIONS, known.take(sets))
    lower, upper = _sides(search, count)
    width = (upper - lower).repeat(1, 2).ravel()
    search.tolerance = CLOSE * width.nan_to_num(0.0, 0.0, 0.0)
    search.run(budget, lambda search: search.nodes >= most)
    return _sides(search, count)


def _sides(search: SignSearch, count: int) -> tuple[Tensor, Tensor]:
    least = search.lower.reshape(count, 2, -1)
    return least[:, 0], -least[:, 1]


def sign_pairs(planes: NetworkPlanes, domain: Moves, place: int) -> SignPairs | None:
    """The pairs of the vector at `place`, affine in the inputs; None if it is too long."""
    neurons = planes.graph.sizes[place]
    if neurons > MOST_NEURONS:
        return None
    ranges = planes.ranges(domain)
    sets = [_of_set(planes, domain, place, ranges, k) for k in range(len(domain.origin))]
    return SignPairs(torch.stack([one.lower for one in sets]), torch.stack([one.upper for one in sets]))


def _of_set(planes: NetworkPlanes, domain: Moves, place: int, ranges: Ranges, k: int) -> SignPairs:
    chosen = torch.tensor([k], device=domain.origin.device)
    pairs = _Pairs(planes, domain.take(chosen), place, ranges.take(chosen))
    best = pairs.searched().reshape(2, 2, pairs.neurons, pairs.neurons)
    return SignPairs(best[:, 0], -best[:, 1])


class _Pairs:
    """All pairs over one set, ordered by side, by least or largest value, by i, and by h."""

    def __init__(self, planes: NetworkPlanes, domain: Moves, place: int, ranges: Ranges) -> None:
        self._planes, self._domain, self._place, self._ranges = planes, domain, place, ranges
        self.neurons = planes.graph.sizes[place]
        like = domain.origin
        eye = torch.eye(self.neurons, dtype=like.dtype, device=like.device)
        ways = torch.tensor([1.0, -1.0], dtype=like.dtype, device=like.device)
        shape = (2, 2, self.neurons, self.neurons, self.neurons)
        self._asked = (ways[None, :, None, None, None] * eye).expand(shape).reshape(-1, self.neurons)
        decided = ways[:, None, None, None, None] * eye[:, None]
        self._decided = decided.expand(shape).reshape(-1, self.neurons)
        width = (ranges.upper[place] - ranges.lower[place])[0]
        scale = width[None, :] / torch.where(width > 0.0, width, 1.0)[:, None]
        self._steepest = STEEPEST * scale.expand(2, 2, -1, -1).reshape(-1)

    def searched(self) -> Tensor:
        """(pairs,) the best bound over mu."""
        low, high = torch.zeros_like(self._steepest), self._steepest
        best = self._proved(low)
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_left, at_right = self._proved(left), self._proved(right)
        for _ in range(ROUNDS):
            best = torch.fmax(best, torch.fmax(at_left, at_right))
            rises = at_left < at_right
            low, high = torch.where(rises, left, low), torch.where(rises, high, right)
            middle = torch.where(rises, low + GOLDEN * (high - low), high - GOLDEN * (high - low))
            value = self._proved(middle)
            left, right = torch.where(rises, right, middle), torch.where(rises, middle, left)
            at_left, at_right = torch.where(rises, at_right, value), torch.where(rises, value, at_left)
        return torch.fmax(best, torch.fmax(at_left, at_right))

    def _proved(self, mu: Tensor) -> Tensor:
        """(pairs,) asked z - mu decided z, over the whole set."""
        rows = self._asked - mu[:, None] * self._decided
        plane = self._planes.planes_at(self._place, rows, self._ranges)
        return self._domain.minimum(plane.slopes, plane.offset)[0]
