"""Networks that share nothing but inputs, apart: those whose outputs cost something, and all others.

A bound over a box is mostly a matter of what costs. Where that closes the box, nothing need be known of the
networks that only limit it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from dovetail.analysis.joint_network import DecidedColumns, JointNetwork
from dovetail.core.arrays import FloatArray
from dovetail.networks.graph import Affine, Graph, GraphStep


def network_parts(network: JointNetwork, cost: FloatArray) -> tuple[JointNetwork, ...]:
    """The part that costs and the rest; the network itself where it does not fall into two."""
    priced = [bool(np.any(cost[group.columns])) for group in network.groups]
    if all(priced) or not any(priced) or not isinstance(network.graph.steps[-1].operation, Affine):
        return (network,)
    groups = [
        [g for g, costs in zip(network.groups, priced, strict=True) if costs is own] for own in (True, False)
    ]
    needed = [_needed(network.graph, _sources(network.graph, some)) for some in groups]
    if needed[0] & needed[1]:
        return (network,)
    return tuple(_part(network, some, own) for some, own in zip(groups, needed, strict=True))


def _rows(groups: Iterable[DecidedColumns]) -> list[int]:
    return [int(row) for group in groups for row in group.outputs]


def _sources(graph: Graph, groups: Iterable[DecidedColumns]) -> list[int]:
    """The vectors that these groups' outputs are gathered from."""
    last, rows = graph.steps[-1], _rows(groups)
    assert isinstance(last.operation, Affine)
    pairs = zip(last.sources, last.operation.weights, strict=True)
    return [source for source, weight in pairs if np.any(weight[rows])]


def _needed(graph: Graph, sources: list[int]) -> set[int]:
    """The steps that some vectors are computed by, inputs left out."""
    found: set[int] = set()
    waiting = list(sources)
    while waiting:
        place = waiting.pop()
        if place > 0 and place not in found:
            found.add(place)
            waiting += graph.steps[place - 1].sources
    return found


def _part(network: JointNetwork, groups: list[DecidedColumns], needed: set[int]) -> JointNetwork:
    """The network of these groups alone, over the same inputs."""
    graph, rows = network.graph, _rows(groups)
    place = {old: new for new, old in enumerate(sorted(needed | {0}))}
    steps = []
    for old in sorted(needed):
        step = graph.steps[old - 1]
        steps.append(replace(step, sources=tuple(place[source] for source in step.sources)))
    last = graph.steps[-1].operation
    assert isinstance(last, Affine)
    weights = {
        place[source]: weight[rows]
        for source, weight in zip(graph.steps[-1].sources, last.weights, strict=True)
        if np.any(weight[rows])
    }
    steps.append(GraphStep(Affine(tuple(weights.values()), last.bias[rows]), tuple(weights), len(rows)))
    sizes = np.cumsum([0, *(group.outputs.size for group in groups)])
    own = [
        replace(group, outputs=np.arange(begin, begin + group.outputs.size))
        for group, begin in zip(groups, sizes, strict=False)
    ]
    return replace(network, graph=Graph(graph.inputs, tuple(steps)), groups=tuple(own))
