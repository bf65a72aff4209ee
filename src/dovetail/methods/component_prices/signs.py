"""Components that are samples of networks over closed-form sets: lower bounds of their costs at prices, all
in one batch.

ReLU networks are bounded by branching over signs, at thousands of nodes per second; other networks, and all
networks on a GPU, by branching over moves. Components with equal targets are searched once. The restrictions
that sets leave out (integers, all rows but one, bounds of outputs) may make points cheaper than any column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from dovetail.bounds.planes.moves import Moves
from dovetail.branching.move_search import MoveSearch
from dovetail.branching.neuron_ranges import known_neurons
from dovetail.branching.sign_nodes import KnownNeurons, Nodes
from dovetail.branching.sign_search import BYTES, SearchOptions, SignSearch
from dovetail.branching.targets import Neurons, Targets, is_relu_network
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.methods.component_prices.coupled_problem import CoupledProblem, Priced
from dovetail.methods.component_prices.kinds import MORE
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.structure.move_sets import MoveSet

NUDGE = 1e-4
"""Relative: points are moved this far beyond the border of a class, so that rounding cannot put them on the
other side."""
DEVICE_NODES, DEVICE_CELLS = 32768, 131072
"""Number of cells bounded at a time on a GPU, of either search: with fewer the GPU waits for Python."""
FEW_NEURONS = 64
"""On a GPU: with more of them cells of moves are better than signs of neurons (measured: 2x16 and 4x32)."""
VALUE_STEPS = 12
"""Steps per node if a network's output is minimised: more than for classes, since there are more signs to
choose from, and a better bound of a node saves half of what is below it."""
RANGES = 4096
"""Number of nodes for the ranges of neurons behind the first layer, before any other search: with a
quarter and with eight times as many a block of wine_2x16 takes 9.5 and 11.2 CPU s, with none 29.8."""

Search = SignSearch | MoveSearch


class SignOracle:
    """Proves least costs of the components of one problem."""

    def __init__(self, context: SolveContext, coupled: CoupledProblem, batch: int) -> None:
        self.context, self.coupled, self._batch = context, coupled, batch
        self._ranges: list[KnownNeurons | None] = [None] * len(coupled.groups)
        self.nodes = 0
        """The nodes of all finished proofs."""
        self._divided: list[_Divided | None] = [None] * len(coupled.groups)
        """The divided sets of each group of values at the last prices, with which the search at new prices
        begins."""

    def at(self, prices: FloatArray, known: FloatArray) -> SignProof:
        """A proof at (R,) prices; `known` is the cost of the cheapest column of each component."""
        return SignProof(self, prices, known)

    def search(self, number: int, targets: Targets, asked: IntArray, tolerance: float) -> Search:
        """A search for some targets of a group: over signs of ReLUs if these are few, and over moves for
        other networks and on a GPU."""
        graph, on_cpu = targets.planes.graph, targets.shift.device.type == "cpu"
        nodes, cells = (self._batch, self._batch) if on_cpu else (DEVICE_NODES, DEVICE_CELLS)
        count = Neurons(graph).count
        if not (is_relu_network(graph) and (on_cpu or count <= FEW_NEURONS)):
            return MoveSearch(targets, batch=cells, tolerance=tolerance)
        options = SearchOptions(batch=nodes, tolerance=tolerance)
        if targets.condition:
            return SignSearch(targets, options)
        kept = options.most_nodes * BYTES * count
        options = replace(options, steps=VALUE_STEPS, single=True, record_bytes=kept)
        ranges, before = self.known_ranges(number), self._divided[number]
        known = None if ranges is None else ranges.take(torch.as_tensor(asked))
        return SignSearch(targets, options, known, None if before is None else before.of(asked))

    def ended(self, number: int, search: Search, asked: IntArray, like: IntArray) -> None:
        """Take note of how a search has divided the sets of the `asked`, which are `like` its targets."""
        if isinstance(search, SignSearch) and not search.targets.condition:
            self._divided[number] = _Divided(search, asked, like)

    def known_ranges(self, number: int) -> KnownNeurons | None:
        """The ranges of neurons of a group of values, over all points that the host's rows allow; they
        hold at any prices. With many sets they are computed only after proofs have taken the same time."""
        group, found = self.coupled.groups[number], self._ranges[number]
        if group.block.classifies or found is not None:
            return found
        first, like = _distinct(_of_sets(group.domain))
        sizes = Neurons(group.planes.graph).sizes
        if len(first) * (sizes[0] ** 2 + 2 * sum(sizes[1:])) > max(RANGES, self.nodes):  # pairs, and roots
            return None
        domain = group.domain.take(torch.as_tensor(first))
        found = known_neurons(group.planes, domain, self.context.budget, RANGES)
        self._ranges[number] = found.take(torch.as_tensor(like))
        return self._ranges[number]


@dataclass(frozen=True, eq=False)
class _Divided:
    """Sets of a group, and the search that has divided them."""

    search: SignSearch
    asked: IntArray
    """Members of the group, in their order."""
    like: IntArray
    """The target to which each set belongs."""

    def of(self, members: IntArray) -> Nodes | None:
        """The parts of some members' sets, as targets in that order; without those that were not asked. None
        where they were not kept."""
        nodes = self.search.divided
        if nodes is None:
            return None
        nodes = nodes.take(nodes.bound < torch.inf)
        found = [nodes.take(nodes.target < 0)]
        for number, member in enumerate(members):
            place = int(np.searchsorted(self.asked, member))
            if place < self.asked.size and self.asked[place] == member:
                mine = nodes.take(nodes.target == int(self.like[place]))
                found.append(replace(mine, target=torch.full_like(mine.target, number)))
        return found[0].joined(*found[1:])


class SignProof:
    """All components at prices."""

    def __init__(self, oracle: SignOracle, prices: FloatArray, known: FloatArray) -> None:
        self._oracle, self._at = oracle, oracle.coupled.at(prices)
        self._known = [_known(part, known) for part in self._at.parts]
        self.reachable = self._at.bound(list(self._known))
        """The most that can be proved."""
        self._searches: list[tuple[Search, IntArray] | None] = [None] * len(self._at.parts)
        self._met: list[MoveSet] = []

    @property
    def lower(self) -> float:
        """What is proved."""
        return self._at.bound([_values(one, "lower") for one in self._searches])

    @property
    def current(self) -> float:
        """The largest bound that can be proved, according to the points found so far."""
        values = zip(self._searches, self._known, strict=True)
        return self._at.bound([known if one is None else _values(one, "reachable") for one, known in values])

    @property
    def nodes(self) -> int:
        """The number of nodes of all searches."""
        return sum(one[0].nodes for one in self._searches if one is not None)

    @property
    def left_out(self) -> int:
        """Components that were given up for want of memory."""
        return sum(one[0].left_out for one in self._searches if one is not None)

    def run(self, tolerance: float, budget: Budget, enough: Callable[[], bool], most: int) -> str:
        """Run all searches to this tolerance, relative to the saving of a cheaper class, with at most
        `most` further nodes; returns the reason for the end. It may be called again to go on."""
        asked = [turn for turn, part in enumerate(self._at.parts) if part.targets is not None]
        for turn in asked:
            if self._searches[turn] is None:
                self._begin(turn, tolerance)
        ended = []
        for place, turn in enumerate(asked):
            (search, like), left = self._found(turn), len(asked) - place
            part = budget.part(budget.left / left)
            ended.append(search.run(part, partial(_may_end, search.nodes + most // left, enough)))
            self._oracle.ended(turn, search, self._at.parts[turn].asked, like)
        if "enough" in ended and not enough():
            return MORE
        return "; ".join(dict.fromkeys(one for one in ended if one not in ("closed", "enough"))) or "closed"

    def _begin(self, turn: int, tolerance: float) -> None:
        part, targets = self._at.parts[turn], self._at.parts[turn].targets
        assert targets is not None
        first, like = kinds_of(targets)
        chosen = targets.take(torch.as_tensor(first, device=targets.shift.device))
        search = self._oracle.search(turn, chosen, part.asked[first], tolerance * part.worth)
        known = np.full(first.size, np.inf)  # components of one kind have the same points
        np.minimum.at(known, like, self._known[turn])
        search.know(torch.as_tensor(known))
        self._searches[turn] = search, like

    def _found(self, turn: int) -> tuple[Search, IntArray]:
        found = self._searches[turn]
        assert found is not None
        return found

    def point(self) -> FloatArray:
        """The point that consists of the cheapest points found for all components."""
        mip, z = self._oracle.context.problem.mip, self._oracle.context.incumbent.x
        z = np.clip(np.zeros(mip.n_columns), mip.lower, mip.upper) if z is None else z.copy()
        self._met = []
        for part, found in zip(self._at.parts, self._searches, strict=True):
            if found is None:
                continue
            search, like = found
            farther = 1.0 + NUDGE if part.group.block.classifies else 1.0
            moves = farther * search.best_moves.cpu().numpy()
            for k in np.flatnonzero(search.met.cpu().numpy()[like]):
                one = part.group.sets[part.asked[k]]
                z[one.inputs], z[one.columns] = one.values(moves[like[k]], mip)
                self._met.append(one)
        return z

    @property
    def violated(self) -> str:
        """The restrictions that the sets ignore and that this point violates; "" if there are none."""
        problem, mip = self._oracle.context.problem, self._oracle.coupled.mip
        z = problem.predict(self.point())
        return next(filter(None, (one.violated(mip, z) for one in self._met)), "")


def _may_end(last: int, enough: Callable[[], bool], search: Search) -> bool:
    return search.nodes >= last or enough()


def kinds_of(targets: Targets) -> tuple[IntArray, IntArray]:
    """The first target of each kind, and for each its kind's place among those."""
    asked = targets.costs, targets.rows, targets.shift, targets.cutoff
    return _distinct((*asked, *_of_sets(targets.domain)))


def _of_sets(domain: Moves) -> tuple[Tensor, ...]:
    """All data that distinguish sets with the same directions."""
    return domain.origin, domain.limit, domain.weights, domain.least, domain.most, domain.give


def _distinct(parts: Sequence[Tensor]) -> tuple[IntArray, IntArray]:
    """The first of each kind of K things of these parts, and for each its kind's place among those."""
    table = torch.cat([part.reshape(len(part), -1) for part in parts], dim=1).cpu().numpy()
    _, first, like = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return first, like.ravel()


def _values(found: tuple[Search, IntArray] | None, name: str) -> FloatArray | None:
    return None if found is None else getattr(found[0], name).cpu().numpy()[found[1]]


def _known(part: Priced, known: FloatArray) -> FloatArray:
    """(asked,) values of targets that the cheapest columns have."""
    owners = part.owners[part.asked]
    cheaper = known[owners] < part.other[part.asked]  # a column that has the class asked for
    cutoff = np.inf if part.targets is None else part.targets.cutoff.cpu().numpy()
    return np.where(cheaper, known[owners] - part.base[part.asked], cutoff)
