"""Components that are samples of networks over closed-form sets: what each costs at prices, all in a batch.

Of ReLU networks by branching over signs, which is bounds of thousands of nodes a second; of others, and on a
GPU, by branching over moves. Components that ask the same are searched once. What the sets leave out
(integers, all rows but one, bounds of outputs) may make points cheaper than any column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from dovetail.bounds.planes.moves import Moves
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.methods.component_prices.coupled_problem import CoupledProblem, Group, Priced
from dovetail.methods.relu_branching.move_search import MoveSearch
from dovetail.methods.relu_branching.neuron_ranges import known_neurons
from dovetail.methods.relu_branching.nodes import KnownNeurons
from dovetail.methods.relu_branching.search import ReluSearch, SearchOptions
from dovetail.methods.relu_branching.targets import Neurons, Targets, is_relu_network
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.structure.move_sets import MoveSet

NUDGE = 1e-4
"""Relative: so much farther than a point on a class's very edge, lest rounding put it on the other side."""
DEVICE_NODES, DEVICE_CELLS = 32768, 131072
"""Bounded at a time on a GPU, of either search: with fewer cells it waits for Python."""
FEW_NEURONS = 64
"""On a GPU: with more of them cells of moves are better than signs of neurons (measured: 2x16 and 4x32)."""
VALUE_STEPS = 12
"""Per node, for the least of a network's output: more than for classes, since there are more signs to choose
from, and a better bound of a node saves half of what is below it."""
RANGES_SHARE = 0.05
"""Of the time left when the first proof begins, for what neurons behind the first layer can read: 1.5 of 45
seconds bring it to within a few hundredths (wine, two layers of 32)."""

Search = ReluSearch | MoveSearch


class SignOracle:
    """Of one problem."""

    def __init__(self, context: SolveContext, coupled: CoupledProblem, batch: int) -> None:
        self.context, self.coupled, self._batch = context, coupled, batch
        self._ranges: list[KnownNeurons | None] | None = None

    def at(self, prices: FloatArray, known: FloatArray) -> SignProof:
        """Of (R,) prices, where the cheapest column of each component costs so much."""
        return SignProof(self, prices, known)

    def search(self, number: int, targets: Targets, asked: IntArray, tolerance: float) -> Search:
        """Of some targets of a group, over signs of ReLUs where there are few of them; over moves for other
        networks, and on a GPU."""
        graph, on_cpu = targets.planes.graph, targets.shift.device.type == "cpu"
        nodes, cells = (self._batch, self._batch) if on_cpu else (DEVICE_NODES, DEVICE_CELLS)
        if not (is_relu_network(graph) and (on_cpu or Neurons(graph).count <= FEW_NEURONS)):
            return MoveSearch(targets, batch=cells, tolerance=tolerance)
        if targets.condition:
            return ReluSearch(targets, SearchOptions(batch=nodes, tolerance=tolerance))
        options = SearchOptions(batch=nodes, steps=VALUE_STEPS, tolerance=tolerance, single=True)
        ranges = self._known_ranges[number]
        return ReluSearch(targets, options, None if ranges is None else ranges.take(torch.as_tensor(asked)))

    @property
    def _known_ranges(self) -> list[KnownNeurons | None]:
        """Of each group of values, over all that the host's rows allow: they hold at any prices."""
        if self._ranges is None:
            left = self.context.budget
            budget, groups = left.part(RANGES_SHARE * left.left), self.coupled.groups
            self._ranges = [
                self._ranges_of(group, budget.part(budget.left / (len(groups) - turn)))
                for turn, group in enumerate(groups)
            ]
        return self._ranges

    @staticmethod
    def _ranges_of(group: Group, budget: Budget) -> KnownNeurons | None:
        if group.block.classifies or not is_relu_network(group.planes.graph):
            return None
        first, like = _distinct(_of_sets(group.domain))
        found = known_neurons(group.planes, group.domain.take(torch.as_tensor(first)), budget)
        return found.take(torch.as_tensor(like))


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
        """The most that can be proved, by the points met so far."""
        values = zip(self._searches, self._known, strict=True)
        return self._at.bound([known if one is None else _values(one, "reachable") for one, known in values])

    @property
    def nodes(self) -> int:
        """Of all searches."""
        return sum(one[0].nodes for one in self._searches if one is not None)

    @property
    def left_out(self) -> int:
        """Components that were given up for want of memory."""
        return sum(one[0].left_out for one in self._searches if one is not None)

    def run(self, tolerance: float, budget: Budget, enough: Callable[[], bool]) -> str:
        """All searches, each to within this of what a cheaper class saves; what ended them."""
        asked = [turn for turn, part in enumerate(self._at.parts) if part.targets is not None]
        ended = []
        for turn in asked:
            part, targets = self._at.parts[turn], self._at.parts[turn].targets
            assert targets is not None
            first, like = kinds_of(targets)
            chosen = torch.as_tensor(first, device=targets.shift.device)
            search = self._oracle.search(
                turn, targets.take(chosen), part.asked[first], tolerance * part.worth
            )
            search.know(torch.as_tensor(self._known[turn][first]))
            self._searches[turn] = search, like
        for place, turn in enumerate(asked):
            found = self._searches[turn]
            assert found is not None
            part_of_time = budget.part(budget.left / (len(asked) - place))
            ended.append(found[0].run(part_of_time, lambda search: enough()))
        return "; ".join(dict.fromkeys(one for one in ended if one not in ("closed", "enough"))) or "closed"

    def point(self) -> FloatArray:
        """The cheapest one met, of all components at once."""
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
        """What that point violates and the sets leave out; "" for nothing."""
        problem, mip = self._oracle.context.problem, self._oracle.coupled.mip
        z = problem.predict(self.point())
        return next(filter(None, (one.violated(mip, z) for one in self._met)), "")


def kinds_of(targets: Targets) -> tuple[IntArray, IntArray]:
    """The first target of each kind, and for each its kind's place among those."""
    asked = targets.costs, targets.rows, targets.shift, targets.cutoff
    return _distinct((*asked, *_of_sets(targets.domain)))


def _of_sets(domain: Moves) -> tuple[Tensor, ...]:
    """All that tells sets with the same directions apart."""
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
