"""Blocks at prices by branching over signs instead of a MIP, alike blocks once.

A MIP over 64 open neurons comes to nothing in a minute; thousands of cheap bounds a second come farther
(wine, two layers of 32: the gap after 15 seconds is 10 % instead of 33 %; two layers of 16: 2 % after three
seconds, where MIPs took 18).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dovetail.bounds.planes.moves import Moves
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.methods.certified_prices.coupled_problem import CoupledProblem, Priced
from dovetail.methods.relu_branching.neuron_ranges import known_neurons
from dovetail.methods.relu_branching.search import ReluSearch, SearchOptions
from dovetail.methods.relu_branching.sign_pairs import KnownNeurons
from dovetail.methods.relu_branching.targets import Targets
from dovetail.run.bound import Bound
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext

OPTIONS = SearchOptions(batch=1024, steps=12, tolerance=1e-4, single=True)
"""More steps per node than for small networks: there are more signs to choose from, and a better bound of a
node saves half of what is below it. A ten-thousandth is far less than what prices leave, and far more than
what single precision takes."""

RANGES_SHARE = 0.05
"""Of the time left when the first proof begins, for what neurons behind the first layer can read: 1.5 of 45
seconds bring it to within a few hundredths (wine, two layers of 32)."""
LOOK = 0.2
"""Seconds from one look at the bound, and at whether all is over, to the next."""


@dataclass(frozen=True, eq=False)
class SignsAnswer:
    """What blocks cost at some prices."""

    bound: float
    """Of the objective."""
    least: FloatArray
    """(components,) each costs no less."""
    z: FloatArray | None
    """A point of the cheapest blocks met."""
    closed: bool
    """The searches came to their ends."""
    room: float
    """What they may leave, all together, between what is proved and points that they have met."""


def neurons_of(coupled: CoupledProblem, budget: Budget) -> list[KnownNeurons]:
    """Of each group of components, over all that the host's rows allow: they hold at any prices."""
    budget = budget.part(RANGES_SHARE * budget.left)
    found = []
    for turn, group in enumerate(coupled.groups):
        first, like = _distinct(_of_sets(group.domain))
        part = budget.part(budget.left / (len(coupled.groups) - turn))
        ranges = known_neurons(group.planes, group.domain.take(torch.as_tensor(first)), part)
        found.append(ranges.take(torch.as_tensor(like)))
    return found


def blocks_at(
    context: SolveContext,
    coupled: CoupledProblem,
    ranges: list[KnownNeurons],
    prices: FloatArray,
    known: FloatArray,
    budget: Budget,
) -> SignsAnswer:
    """The bound at these prices, raised as it grows, and a point of the cheapest blocks met.

    `ranges` are those of `neurons_of`; `known` (components,) is what the cheapest point of each
    component known costs at these prices.
    """
    at = coupled.at(prices)
    z = None if context.incumbent.x is None else context.incumbent.x.copy()
    values: list[FloatArray | None] = [None] * len(at.parts)
    closed = True
    for turn, part in enumerate(at.parts):
        if part.targets is None:
            continue
        targets = part.targets
        first, like = kinds_of(targets)
        search = ReluSearch(
            targets.take(torch.as_tensor(first)),
            OPTIONS,
            ranges[turn].take(torch.as_tensor(part.asked[first])),
        )
        owners = np.array([one.number for one in part.group.parts])[part.asked]
        search.know(torch.as_tensor((known[owners] - part.base[part.asked])[first]))
        part_of_time = budget.part(budget.left / (len(at.parts) - turn))
        ended = ""
        while ended in ("", "enough") and not context.over:
            ended = search.run(part_of_time, _for_a_moment())
            values[turn] = search.lower.cpu().numpy()[like]
            bound = Bound(at.bound(values), "prices", prices=coupled.row_prices(prices))
            context.incumbent.raise_bound(bound)
        closed &= ended == "closed"
        if z is not None:
            _put_in(z, part, search, like, coupled)
    least = np.full(known.size, -np.inf)
    for part, value in zip(at.parts, values, strict=True):
        least[[one.number for one in part.group.parts]] = part.bounds(value)
    return SignsAnswer(at.bound(values), least, z, closed, known.size * OPTIONS.tolerance)


def _for_a_moment() -> Callable[[ReluSearch], bool]:
    until = time.perf_counter() + LOOK
    return lambda search: time.perf_counter() > until


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


def _put_in(z: FloatArray, part: Priced, search: ReluSearch, like: IntArray, coupled: CoupledProblem) -> None:
    """Inputs of the blocks whose search met a point that was not known."""
    moves, met = search.best_moves.cpu().numpy(), search.met.cpu().numpy()
    for k in np.flatnonzero(met[like]):
        one = part.group.sets[part.asked[k]]
        z[one.inputs], z[one.columns] = one.values(moves[like[k]], coupled.mip)
