"""Components that are samples of networks over closed-form sets, at prices of the rows they share.

Components have one sample each. At prices on the rows that couple them the components are independent, and
each costs at least the cost of its moves and its output:

    a class the smaller of the other class's cost and of its own cost with the moves that reach it a value the
    least total cost of moves and network

The first is a condition, the second an objective, of `branching/sign_search.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch

from dovetail.bounds.box import Box
from dovetail.bounds.planes.domain import gamma
from dovetail.bounds.planes.moves import Moves
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.branching.targets import Targets
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack, tie_slack
from dovetail.core.mip import TOLERANCE
from dovetail.methods.component_prices.shared_rows import SharedRows, total
from dovetail.structure.boxes import class_limits
from dovetail.structure.components import SampleComponent
from dovetail.structure.move_sets import MoveSet, move_set, moves_of
from dovetail.structure.structure import Structure


@dataclass(frozen=True, eq=False)
class Group:
    """Components whose samples are of one network and whose inputs move in the same directions."""

    block: Block
    parts: list[SampleComponent]
    sets: list[MoveSet]
    planes: NetworkPlanes
    slack: FloatArray
    """(K, 2) of a class, (K, outputs) of values: how far the deployed network may be from its planes."""
    domain: Moves
    """(K) all that the host's rows allow."""


@dataclass(frozen=True, eq=False)
class Priced:
    """A group at prices: component k costs at least min(other[k], base[k] + its target's value)."""

    group: Group
    other: FloatArray
    base: FloatArray
    least: FloatArray
    """(K,) lower bounds of the targets' values, without a search."""
    asked: IntArray
    """The targets whose search may raise the bound."""
    targets: Targets | None
    """For the asked targets."""
    first: BoolArray
    """(K,) of a class: whether the condition is that of class 1."""

    @property
    def owners(self) -> IntArray:
        """(K,) their numbers among all components."""
        return np.array([one.number for one in self.group.parts], dtype=np.int64)

    @property
    def worth(self) -> float:
        """The least saving of an asked component's cheaper class; 1 for values, which have no classes."""
        saved = (self.other - self.base)[self.asked]
        least = float(np.min(saved, initial=np.inf, where=np.isfinite(saved)))
        return least if np.isfinite(least) else 1.0

    def bounds(self, values: FloatArray | None = None) -> FloatArray:
        """(K,) the least cost of each component, given `values` proved for the asked ones."""
        least = self.least.copy()
        if values is not None:
            least[self.asked] = np.maximum(least[self.asked], values)
        return np.asarray(np.minimum(self.other, self.base + least))


def groups(structure: Structure, box: Box, room: float, device: str) -> list[Group] | None:
    """All components in groups; None if some are not single samples of ReLU networks over such sets.

    Points violate rows by at most `room`, and are in the box.
    """
    ones, problem = structure.one_sample_each, structure.proved
    if ones is None:
        return None
    by_kind: dict[tuple[str, bytes], list[tuple[SampleComponent, MoveSet]]] = {}
    for part in ones:
        found = move_set(problem, part, box, room)
        if found is None:
            return None
        key = (part.block.name, found.directions.tobytes())
        by_kind.setdefault(key, []).append((part, found))
    planes = {block.name: _planes(structure, block, device) for block in problem.blocks}
    made = []
    for (name, _), members in by_kind.items():
        network = planes[name]
        if network is None:
            return None
        made.append(_group(members, network, box, device))
    return made


def _planes(structure: Structure, block: Block, device: str) -> NetworkPlanes | None:
    """Includes the deployed network's rounding; None for a network that decides among several classes."""
    planes = structure.planes(block, device, deployed=True)
    return None if planes is None or (block.classifies and planes.graph.outputs > 1) else planes


def _group(
    members: list[tuple[SampleComponent, MoveSet]], planes: NetworkPlanes, box: Box, device: str
) -> Group:
    parts, sets = [part for part, _ in members], [found for _, found in members]
    block = parts[0].block
    inputs = np.array([found.inputs for found in sets])
    domain = moves_of(sets, device)
    if planes.deployed is None:
        slack = block_slack(block, box.lower[inputs], box.upper[inputs])
        return Group(block, parts, sets, planes, slack, domain)
    of_inputs = planes.deployed.rate[0], planes.deployed.more[0]
    rate, more = (torch.as_tensor(part).to(domain.origin) for part in of_inputs)
    cast = torch.maximum(domain.lower.abs(), domain.upper.abs()) * rate + more
    slack = np.tile(tie_slack(block), (len(parts), 1))
    return Group(block, parts, sets, planes, slack, domain.wider(cast))


def priced(group: Group, cost: FloatArray, lower: FloatArray, upper: FloatArray) -> Priced:
    """A group where every column costs this much; outputs lie between `lower` and `upper` (per column)."""
    found = [one.costs(cost) for one in group.sets]
    costs, constant = np.array([c for c, _ in found]), np.array([c for _, c in found])
    device = group.domain.origin.device
    moves = torch.as_tensor(costs, device=device)
    count = len(group.sets)
    nothing = torch.zeros(count, 1, group.domain.origin.shape[1], dtype=torch.float64, device=device)
    least = group.domain.minimum(nothing, nothing[:, :, 0], moves)[:, 0].cpu().numpy()
    outputs = np.array([part.block.outputs[part.sample] for part in group.parts])
    if group.block.classifies:
        return _priced_class(group, moves, constant, least, cost, outputs[:, 0], lower, upper)
    rows = torch.as_tensor(cost[outputs], device=device)
    slip = (np.abs(cost[outputs]) * group.slack).sum(1)
    targets = Targets(
        group.planes,
        group.domain,
        moves,
        rows,
        torch.as_tensor(-slip * (1.0 + gamma(8)), device=device),
        False,
        torch.full((count,), torch.inf, dtype=torch.float64, device=device),
    )
    asked = np.flatnonzero(np.isfinite(slip))
    return Priced(
        group,
        np.full(count, np.inf),
        constant,
        np.full(count, -np.inf),
        asked,
        targets.take(torch.as_tensor(asked, device=device)) if asked.size else None,
        np.zeros(count, dtype=bool),
    )


def _priced_class(
    group: Group,
    moves: torch.Tensor,
    constant: FloatArray,
    least: FloatArray,
    cost: FloatArray,
    outputs: IntArray,
    lower: FloatArray,
    upper: FloatArray,
) -> Priced:
    """The class that costs less needs a search, or the only one that the bounds of the output allow: the
    other class may be reached by the least moves."""
    on_output = cost[outputs]
    may_be_0, may_be_1 = lower[outputs] < 0.5, upper[outputs] > 0.5
    first = np.where(may_be_0 & may_be_1, on_output <= 0.0, may_be_1)
    own, rest = np.where(first, on_output, 0.0), np.where(first, 0.0, on_output)
    other = np.where(np.where(first, may_be_0, may_be_1), constant + least + rest, np.inf)
    base = np.where(np.where(first, may_be_1, may_be_0), constant + own, np.inf)
    slack = np.where(first, group.slack[:, 0], group.slack[:, 1])
    cutoff = other - base
    asked = np.flatnonzero((cutoff > least) & np.isfinite(slack) & np.isfinite(base))
    targets = None
    if asked.size:
        device = moves.device
        chosen = torch.as_tensor(asked, device=device)
        limit = torch.as_tensor(cutoff[asked], device=device)
        dearest = (moves.abs() * group.domain.limit).sum(1)[chosen] + 1.0  # no point is beyond this limit
        limit = torch.minimum(limit, dearest)
        targets = Targets(
            group.planes,
            _ball(group.domain.take(chosen), moves[chosen], limit),
            moves[chosen],
            torch.as_tensor(np.where(first, -1.0, 1.0)[asked, None], device=device),
            torch.as_tensor(-slack[asked] * (1.0 + gamma(8)), device=device),
            True,
            limit,
        )
    return Priced(group, other, base, least, asked, targets, first)


def _ball(domain: Moves, costs: torch.Tensor, cutoff: torch.Tensor) -> Moves:
    """If no row limits the moves and all of them have a cost, moves beyond the cutoff do not matter."""
    if domain.most.isfinite().any() or domain.least.isfinite().any() or (costs < 0.0).any():
        return domain
    if not cutoff.isfinite().all():
        return domain
    most = cutoff.clamp(min=0.0) * (1.0 + gamma(8))
    return Moves.of(domain.directions, domain.origin, domain.limit, costs, domain.least, most, domain.give)


@dataclass(frozen=True, eq=False)
class CoupledProblem(SharedRows):
    """Components that are each a sample of a network over a closed-form set."""

    groups: list[Group]
    lower: FloatArray
    """Bounds of all columns, including known classes."""
    upper: FloatArray

    @classmethod
    def of(cls, structure: Structure, device: str = "cpu") -> CoupledProblem | None:
        """For all points that the check accepts; None if some component is not a single sample of a ReLU
        network over a closed-form set."""
        rows = SharedRows.of_structure(structure)
        found = groups(structure, rows.box, TOLERANCE, device)
        if found is None:
            return None
        lower, upper, _ = class_limits(structure.proved, rows.box.lower, rows.box.upper)
        own = {field.name: getattr(rows, field.name) for field in fields(rows)}
        own["size"] = _sizes(rows.size, found)
        return cls(**own, groups=found, lower=lower, upper=upper)

    def at(self, prices: FloatArray) -> PricedProblem:
        """The problem at (R,) prices on the coupling rows; negative prices count as 0."""
        prices = np.where(np.isfinite(prices), np.maximum(prices, 0.0), 0.0)
        cost = self.cost_at(prices)
        parts = [priced(group, cost, self.lower, self.upper) for group in self.groups]
        return PricedProblem(self, parts, self.constant(prices))


def _sizes(size: FloatArray, made: list[Group]) -> FloatArray:
    """(columns,) the largest absolute value of each; for outputs without bounds, their networks' ranges."""
    size = size.copy()
    for group in made:
        outputs = np.array([part.block.outputs[part.sample] for part in group.parts])
        if group.block.classifies or np.all(np.isfinite(size[outputs])):
            continue
        reach = group.planes.ranges(group.domain).size(len(group.planes.graph.steps)).cpu().numpy()
        size[outputs] = np.minimum(size[outputs], reach + group.slack)
    return size


@dataclass(frozen=True, eq=False)
class PricedProblem:
    """All components at prices."""

    problem: CoupledProblem
    parts: list[Priced]
    constant: float

    def least(self, values: list[FloatArray | None]) -> FloatArray:
        """(C,) lower bounds of each component's cost, given the results of searches for the asked targets of
        each part."""
        found = np.full(self.problem.parts.count, -np.inf)
        for part, value in zip(self.parts, values, strict=True):
            found[part.owners] = part.bounds(value)
        return found

    def bound(self, values: list[FloatArray | None]) -> float:
        """The step of the objective."""
        return total(self.constant, self.least(values))
