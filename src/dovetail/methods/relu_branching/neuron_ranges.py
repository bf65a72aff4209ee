"""What the neurons of a network read, at least and at most: by branching over the layers before them.

Planes see a layer's neurons one at a time, each at its worst. What all of them together can do to a neuron of
the next layer is half of that (wine, two layers of 32 neurons: half as wide, and a search over the whole
network then comes as far in a quarter of the time). All neurons of a layer are searched side by side, both
ways, over the network that ends there. Ranges hold for a set of inputs, whatever is asked of it, and so at
any prices.
"""

from __future__ import annotations

import torch

from dovetail.bounds.planes.moves import Moves
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.core.graph import Graph
from dovetail.methods.relu_branching.nodes import KnownRanges
from dovetail.methods.relu_branching.search import ReluSearch, SearchOptions
from dovetail.methods.relu_branching.targets import Neurons, Targets
from dovetail.run.budget import Budget

CLOSE = 0.02
"""Of what planes alone say: a side of a range that is so near to a value met is near enough."""
OPTIONS = SearchOptions(batch=1024, steps=12, tolerance=0.0, single=True)
"""Sides are hundredths of a range apart, far more than what single precision takes."""


def neuron_ranges(planes: NetworkPlanes, domain: Moves, budget: Budget) -> KnownRanges:
    """Of all neurons over each of K sets, layer by layer; those of the first are as planes make them.

    Of networks that are no chain of layers nothing is said.
    """
    neurons, count = Neurons(planes.graph), len(domain.origin)
    if not _is_chain(planes.graph):
        return KnownRanges.nothing(count, neurons.count, domain.origin)
    # the first layer is affine in the inputs: planes over closed-form sets are exact there
    found = KnownRanges.nothing(count, neurons.sizes[0], domain.origin)
    for turn in range(1, len(neurons.places)):
        part = budget.part(budget.left / (len(neurons.places) - turn))
        if part.over:
            found = found.beside(KnownRanges.nothing(count, neurons.sizes[turn], domain.origin))
        else:
            found = found.beside(_searched(planes.up_to(neurons.places[turn]), domain, found, part))
    return found


def _is_chain(graph: Graph) -> bool:
    return all(step.sources == (number,) for number, step in enumerate(graph.steps))


def _searched(planes: NetworkPlanes, domain: Moves, known: KnownRanges, budget: Budget) -> KnownRanges:
    """The outputs of a network and their negatives, as targets of one search."""
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
    at_first = _sides(search, count, outputs)
    width = (at_first.upper - at_first.lower).repeat(1, 2).ravel()
    search.tolerance = CLOSE * width.nan_to_num(0.0, 0.0, 0.0)
    search.run(budget)
    return _sides(search, count, outputs)


def _sides(search: ReluSearch, count: int, outputs: int) -> KnownRanges:
    least = search.lower.reshape(count, 2, outputs)
    return KnownRanges(least[:, 0], -least[:, 1])
