"""Leaves: no ReLU can change sign, so the network is linear and an LP is exact.

Multipliers of many leaves are computed together and close most of them. Others are solved as LPs of their
own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from dovetail.bounds.batch_lps import InteriorPoint, LinearPrograms
from dovetail.bounds.planes.domain import gamma
from dovetail.bounds.planes.network_planes import Ranges
from dovetail.bounds.safe_lp import SafeLp
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import INFINITE_COST, INFINITY, LARGEST, SMALLEST, Mip
from dovetail.methods.relu_branching.bounding import Bounding
from dovetail.methods.relu_branching.nodes import Nodes, unstable
from dovetail.methods.relu_branching.targets import Neurons, Targets
from dovetail.networks.graph import Affine
from dovetail.run.budget import Budget

Plane = tuple[Tensor, Tensor]
"""(S, d) slopes and (S,) offsets."""

AT_ONCE = 1 << 22
"""Numbers in the LPs of leaves that are solved together: 32 MB."""
STEPS = 20
TINY_PRICE = 1e-12
"""Smallest divisor for the multiplier of a condition."""


@dataclass(frozen=True, eq=False)
class LeafProof:
    """The least value of a single leaf, and its multipliers."""

    bound: float
    moves: FloatArray | None
    """The moves that attain it."""
    objective: float
    """Weight of the value: 0 if the multipliers prove emptiness."""
    signs: FloatArray
    """(H,) nonnegative multipliers of the node's signs; zeros if the LP gave none."""
    price: float
    """Multiplier of the condition."""


def settled(leaves: Nodes, bounding: Bounding) -> tuple[Nodes, Tensor]:
    """Leaves with the multipliers of their LPs and the bounds from these, and the (P, m) points of the
    LPs."""
    count, moves = bounding.neurons.count, bounding.targets.domain.limit.shape[1]
    together = max(1, AT_ONCE // ((count + 2) * (count + moves + 2)))
    found = [_settled(part, bounding) for part in _parts(leaves, together)]
    nodes = found[0][0]
    for more, _ in found[1:]:
        nodes = nodes.joined(more)
    return nodes, torch.cat([points for _, points in found])


def _parts(nodes: Nodes, size: int) -> list[Nodes]:
    every = torch.arange(len(nodes), device=nodes.target.device)
    return [nodes.take(some) for some in every.split(size)]  # type: ignore[no-untyped-call]


def _settled(leaves: Nodes, bounding: Bounding) -> tuple[Nodes, Tensor]:
    targets, neurons = bounding.targets.take(leaves.target), bounding.neurons
    domain, (reads, outputs) = targets.domain, _linear(leaves, targets, neurons)
    signed = reads * leaves.sign[:, :, None]
    value = (targets.rows[:, None] @ outputs)[:, 0]
    value[:, -1] += targets.shift
    rows = torch.cat([domain.weights[:, None], signed[:, :, :-1]], dim=1)
    lower = torch.cat([domain.least[:, None], -signed[:, :, -1]], dim=1)
    lower[:, 1:] = torch.where(leaves.sign == 0, -torch.inf, lower[:, 1:])
    upper = torch.cat([domain.most[:, None], torch.full_like(lower[:, 1:], torch.inf)], dim=1)
    cost = targets.costs
    if targets.condition:
        rows = torch.cat([rows, value[:, None, :-1]], dim=1)
        lower = torch.cat([lower, torch.full_like(lower[:, :1], -torch.inf)], dim=1)
        upper = torch.cat([upper, -value[:, -1:]], dim=1)
    else:
        cost = cost + value[:, :-1]
    nothing = torch.zeros_like(domain.limit)
    method = InteriorPoint(LinearPrograms(cost, 0.0, rows, lower, upper, nothing, domain.limit))
    method.run(STEPS)
    y, points = method.multipliers, method.points
    signs = y[:, 1 : 1 + neurons.count].clamp(min=0.0)
    if targets.condition:  # those of a plane are counted for the price 1
        signs = signs / (-y[:, -1:]).clamp(min=TINY_PRICE)
    return bounding.with_multipliers(leaves, signs), points


def _linear(leaves: Nodes, targets: Targets, neurons: Neurons) -> tuple[Tensor, Tensor]:
    """(P, H, m + 1) inputs of ReLUs as affine functions of the moves, and (P, outputs, m + 1) outputs."""
    domain = targets.domain
    on = neurons.cut((leaves.lower >= 0.0).to(domain.origin.dtype))
    directions = domain.directions.expand(len(leaves), -1, -1)
    vectors = [torch.cat([directions, domain.origin[:, :, None]], dim=2)]
    for step in targets.planes.graph.steps:
        if isinstance(step.operation, Affine):
            total = vectors[0].new_zeros(len(leaves), len(step.operation.bias), directions.shape[2] + 1)
            for source, weight in zip(step.sources, step.operation.weights, strict=True):
                total = total + torch.as_tensor(weight).to(total) @ vectors[source]
            total[:, :, -1] += torch.as_tensor(step.operation.bias).to(total)
        else:
            (source,) = step.sources
            total = on[source][:, :, None] * vectors[source]
        vectors.append(total)
    return torch.cat([vectors[place] for place in neurons.places], dim=1), vectors[-1]


def leaf_proof(node: Nodes, bounding: Bounding, budget: Budget) -> LeafProof:
    """The exact solution of a leaf by an LP."""
    targets, neurons = bounding.targets.take(node.target), bounding.neurons
    node, ranges = bounding.ranged(node, targets)
    assert not unstable(node).any(), "a leaf has no neuron that may change sign"
    conditions = _signs(node, targets, ranges, neurons)
    plane = targets.planes.planes(targets.rows[:, None], ranges)
    slopes, offset = plane.slopes[0], plane.offset[0] + targets.shift
    cost, constant = targets.costs[0].cpu().numpy(), 0.0
    if targets.condition:
        conditions.append((slopes, offset))
    else:
        along, least = _over_moves(targets, (slopes, offset))
        cost, constant = cost + along[0], float(least[0])
        noise = gamma(4) * (np.abs(along[0]) + np.abs(cost)) @ targets.domain.limit[0].cpu().numpy()
        constant -= float(noise)
        if not (np.isfinite(constant) and np.all(np.abs(cost) < INFINITE_COST)):
            return LeafProof(-np.inf, None, 1.0, np.zeros(neurons.count), 0.0)
    program = _program(targets, conditions, cost)
    answer = SafeLp(program).minimise(program.cost, constant, budget)
    signs, price = np.zeros(neurons.count), 0.0
    multipliers = answer.multipliers if answer.ray is None else answer.ray
    if multipliers is not None:
        weights = np.maximum(-multipliers[1:], 0.0)  # of sides above; the first row is the set's own
        held = torch.nonzero(node.sign[0]).ravel().cpu().numpy()
        signs[held] = weights[: held.size]
        price = float(weights[-1]) if targets.condition else 0.0
    return LeafProof(answer.bound, answer.x, 1.0 if answer.ray is None else 0.0, signs, price)


def _signs(node: Nodes, targets: Targets, ranges: Ranges, neurons: Neurons) -> list[Plane]:
    """Planes below -sign z for the decided neurons, at most 0 in the node."""
    found = []
    for place, part in neurons.cut(node.sign).items():
        held = torch.nonzero(part[0]).ravel()
        if held.numel():
            rows = torch.zeros(held.numel(), part.shape[1], dtype=node.bound.dtype, device=part.device)
            rows[torch.arange(held.numel()), held] = -part[0, held].to(rows.dtype)
            plane = targets.planes.planes_at(place, rows, ranges)
            found.append((plane.slopes[0], plane.offset[0]))
    return found


def _over_moves(targets: Targets, plane: Plane) -> tuple[FloatArray, FloatArray]:
    """(S, m) slopes along moves, and (S,) offsets minus rounding and `give`."""
    domain = targets.domain
    slopes, offset = plane
    along = slopes @ domain.directions
    size = slopes.abs() @ domain.origin[0].abs() + offset.abs()
    size = size + (slopes.abs() @ domain.directions.abs()) @ domain.limit[0]
    noise = gamma(max(domain.directions.shape) + 8) * size + slopes.abs() @ domain.give[0]
    return along.cpu().numpy(), (offset + slopes @ domain.origin[0] - noise).cpu().numpy()


def _program(targets: Targets, conditions: list[Plane], cost: FloatArray) -> Mip:
    """min cost't with every plane at most 0, over the set's moves."""
    domain = targets.domain
    limit = domain.limit[0].cpu().numpy()
    rows, sides = [domain.weights[0].cpu().numpy()[None]], [domain.most[:1].cpu().numpy()]
    for plane in conditions:
        along, offset = _over_moves(targets, plane)
        usable = np.all(np.abs(along) <= LARGEST, axis=1) & (np.abs(offset) < INFINITY)
        rows.append(np.where(usable[:, None], along, 0.0))  # else, or where it is NaN, a plane says nothing
        sides.append(np.where(usable, -offset, np.inf))
    A, upper = np.concatenate(rows), np.concatenate(sides)
    tiny = np.abs(A) < SMALLEST  # entries that a Mip does not take: what they can do is allowed for
    upper = upper + np.where(tiny, np.abs(A), 0.0) @ limit * (1.0 + gamma(limit.size))
    lower = np.full(upper.size, -np.inf)
    lower[0] = float(domain.least[0])
    return Mip(
        cost=cost,
        A=sp.csr_array(np.where(tiny, 0.0, A)),
        row_lower=lower - np.where(tiny[0], np.abs(A[0]), 0.0) @ limit,
        row_upper=upper,
        lower=np.zeros(limit.size),
        upper=limit,
    )
