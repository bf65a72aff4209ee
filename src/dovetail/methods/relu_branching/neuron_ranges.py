"""What the neurons of a network read, at least and at most: by branching over the layers before them.

Planes see a layer's neurons one at a time, each at its worst. What all of them together can do to a neuron of
the next layer is half of that (wine, two layers of 32 neurons: ranges half as wide, and a search over the
whole network comes as far in a quarter of the time). All neurons of a layer are searched side by side, both
ways, over the network that ends there.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from dovetail.bounds.planes.moves import Moves
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.methods.relu_branching.nodes import KnownNeurons, sign_pairs
from dovetail.methods.relu_branching.search import ReluSearch, SearchOptions
from dovetail.methods.relu_branching.targets import Neurons, Targets
from dovetail.networks.graph import Graph
from dovetail.run.budget import Budget

CLOSE = 0.02
"""Of a range as planes alone have it: a side that is so near to a value met is near enough."""
OPTIONS = SearchOptions(batch=1024, steps=12, tolerance=0.0, single=True)
"""Sides are hundredths of a range apart, far more than what single precision takes."""


def known_neurons(planes: NetworkPlanes, domain: Moves, budget: Budget, most: int) -> KnownNeurons:
    """Of all neurons over each of K sets, layer by layer, by so many nodes at most; the first layer is as
    planes make it.

    Of networks that are no chain of layers nothing is said.
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
    """(K, outputs) the least and the most of a network's outputs, by so many nodes at most: they and their
    negatives as targets."""
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
    search = ReluSearch(targets, OPTIONS, known.take(sets))
    lower, upper = _sides(search, count)
    width = (upper - lower).repeat(1, 2).ravel()
    search.tolerance = CLOSE * width.nan_to_num(0.0, 0.0, 0.0)
    search.run(budget, lambda search: search.nodes >= most)
    return _sides(search, count)


def _sides(search: ReluSearch, count: int) -> tuple[Tensor, Tensor]:
    least = search.lower.reshape(count, 2, -1)
    return least[:, 0], -least[:, 1]
