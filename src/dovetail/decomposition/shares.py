"""All shares of a problem, called together.

Prices go out and sums over blocks come back: per step of Newton's method one number, one per coupling side
and one per pair of sides. The answer itself travels once per choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import torch

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.decomposition.owners import columns_of
from dovetail.decomposition.plan import TemplatePlan
from dovetail.decomposition.prices import Smoothed
from dovetail.decomposition.shard import PricingOptions, Slopes, usual_spread
from dovetail.decomposition.share import (
    BlockSample,
    Column,
    CoreColumns,
    Range,
    ShareProof,
    UsualSizes,
    Which,
    make_share,
)
from dovetail.run.budget import Budget
from dovetail.run.processes import Recipe, Workers


def ranges(plan: TemplatePlan, workers: int) -> list[list[Range]]:
    """An equal part of every template for each worker; templates with fewer blocks than workers go to
    some."""
    found: list[list[Range]] = [[] for _ in range(workers)]
    for template, program in enumerate(plan.programs):
        border = np.linspace(0, program.count, workers + 1).round().astype(int)
        for mine, (first, last) in zip(found, pairwise(border), strict=True):
            if last > first:
                mine.append(Range(template, int(first), int(last), program.count))
    return [mine for mine in found if mine]


def recipes(
    plan: TemplatePlan,
    where: Sequence[Sequence[Range]],
    blocks: list[Block],
    options: PricingOptions,
    device: str,
    *,
    here: str = "cpu",
) -> list[list[Recipe]]:
    """The recipes of the shares of every worker, each on its `device`; the device of this process is
    `here`."""
    # the LP over all columns has as many in its basis as there are blocks and coupling sides
    options = replace(options, places=options.places - (-2 * plan.sides.count // plan.count))
    spreads = [usual_spread(program, blocks, here) for program in plan.programs]

    def recipe(r: Range) -> Recipe:
        program = plan.programs[r.template].part(r.first, r.last)
        return partial(make_share, program, r, blocks, options, device, spreads[r.template])

    return [[recipe(r) for r in mine] for mine in where]


class Shares:
    """All shares; one method for each method of `Share`."""

    def __init__(self, workers: Workers, size: int, patience: Budget) -> None:
        """`size` is the number of shares; `patience` limits the time to wait for answers."""
        self.workers, self._size, self._patience = workers, size, patience
        self._usual: list[UsualSizes] = self._same("usual")
        self.counts = [usual.count for usual in self._usual]
        self.steerable = np.any([usual.steerable for usual in self._usual], axis=0)
        """(R,) sides that small steps can change."""

    def _same(self, call: str, *arguments: object) -> list:  # type: ignore[type-arg]
        """The same call to all shares."""
        return self.workers.ask(call, [arguments] * self._size, self._patience)

    def _each(self, call: str, arguments: list[tuple[object, ...]]) -> list:  # type: ignore[type-arg]
        return self.workers.ask(call, arguments, self._patience)

    @property
    def stake(self) -> float:
        """The stake of a typical block."""
        return sum(usual.count * usual.stake for usual in self._usual) / sum(self.counts)

    @property
    def usual_use(self) -> FloatArray:
        """(R,) the use of a typical block."""
        return np.asarray(np.sum([u.count * u.use for u in self._usual], axis=0) / sum(self.counts))

    def price(
        self, which: Which, anchors: FloatArray, noise: float, unit: float, seed: int, budget: Budget,
        most: int | None = None,
    ) -> None:  # fmt: skip
        """New columns at the first of the prices, kept for all of them, by `most` descents per block."""
        self.renew_at(which, anchors, noise, unit, seed, budget)
        self._same("price", which, anchors, noise, unit, seed, budget, most)

    def renew_at(
        self, which: Which, anchors: FloatArray, noise: float, unit: float, seed: int, budget: Budget
    ) -> None:
        """The prices at which a replaced share is priced first, because it has no columns."""
        again = which if isinstance(which, BlockSample) else "all"
        asked = (again, anchors, noise, unit, seed, budget)
        self.workers.renew_by("price", [asked] * self._size)

    def smoothed(self, prices: FloatArray, tau: float, second: bool, sample: BlockSample | None) -> Smoothed:
        """The smoothed sum over all blocks, or those of the sample."""
        parts: list[Smoothed] = self._same("smoothed", prices, tau, second, sample)
        return sum(parts[1:], start=parts[0])

    def value(self, prices: FloatArray) -> float:
        """The sum over all blocks."""
        return float(sum(self._same("value", prices)))

    def prove(
        self, which: Which, prices: FloatArray, tolerance: float, most: int, unit: float, budget: Budget
    ) -> list[ShareProof | None]:
        """The proofs of each share."""
        return self._same("prove", which, prices, tolerance, most, unit, budget)

    def begin(self, prices: FloatArray, *, lasting: bool) -> FloatArray | None:
        """The total use of the cheapest columns at the prices; None if a block has none."""
        begun: list[tuple[FloatArray, bool]] = self._same("begin", prices, lasting)
        uses = np.sum([use for use, _ in begun], axis=0)
        return uses if all(complete for _, complete in begun) else None

    def core(self, most: int) -> list[CoreColumns]:
        """The columns of the `most` blocks nearest to indifference for each side, by share; all columns if
        there are no more."""
        nearest = np.sort(np.concatenate(self._same("nearest", most), axis=1), axis=1)[:, :most]
        every = nearest.shape[1] < most
        border = np.where(np.isfinite(nearest), nearest, -np.inf).max(axis=1, initial=-np.inf)
        border = np.full_like(border, np.inf) if every else border
        return self._same("core", border, most)

    def uses(self) -> FloatArray:
        """The total use of the chosen columns."""
        return np.asarray(np.sum(self._same("used"), axis=0))

    def put(self, moved: list[tuple[IntArray, IntArray]]) -> FloatArray:
        """Set other columns, blocks and places for each share; the total use afterwards."""
        return np.asarray(np.sum(self._each("put", [tuple(of_one) for of_one in moved]), axis=0))

    def slopes(self, most: int, reach: float) -> list[Slopes]:
        """The slopes of some blocks of each share, `most` in total."""
        return self._same("slopes", -(-most // self._size), reach)

    def step(self, steps: list[tuple[IntArray, FloatArray]]) -> FloatArray:
        """Move some blocks of each share; the total use afterwards."""
        return np.asarray(np.sum(self._each("step", [tuple(of_one) for of_one in steps]), axis=0))


class PointShares(Shares):
    """Shares of a problem that this process holds as a whole; `where` are the blocks of each."""

    def __init__(
        self,
        workers: Workers,
        where: Sequence[Range],
        plan: TemplatePlan,
        patience: Budget,
        device: str | None = None,
    ) -> None:
        """`device`: a GPU of shares in this process, where points are made."""
        super().__init__(workers, len(where), patience)
        self._where, self._plan, self._device = where, plan, device

    def least_costs(self, prices: FloatArray) -> FloatArray:
        """(C,) by component: the cost of the cheapest column of each block at the prices."""
        known = np.full(self._plan.count, np.inf)
        for mine, costs in zip(self._where, self._same("least_costs", prices), strict=True):
            known[self._plan.arrays[mine.template].component[mine.first : mine.last]] = costs
        return known

    def add(self, points: Sequence[FloatArray], prices: FloatArray, unit: float) -> None:
        """The blocks of some points, and descents from them, as columns."""
        columns = [
            np.stack([z[self._plan.arrays[mine.template].columns[mine.first : mine.last]] for z in points], 1)
            for mine in self._where
        ]
        self._each("add", [(of_share, prices, unit) for of_share in columns])

    def point(self) -> FloatArray:
        """The choice as a point of the problem."""
        if self._device is None:
            return point_of(self._plan, self._where, self._same("chosen"))
        z = torch.as_tensor(_without_blocks(self._plan), device=self._device)
        self._each("write", [(z, self._plan.arrays[mine.template].places) for mine in self._where])
        made = np.empty(len(z))  # numpy asks for large pages, torch does not
        torch.from_numpy(made).copy_(z)
        return made

    @property
    def in_words(self) -> str:
        """How shares are priced on GPUs; "" on CPUs."""
        return "; ".join(dict.fromkeys(filter(None, self._same("in_words"))))


def point_of(plan: TemplatePlan, where: Sequence[Range], columns: Sequence[Column]) -> FloatArray:
    """All columns of the problem, outputs as they were found."""
    z = _without_blocks(plan)
    for mine, (moves, outputs) in zip(where, columns, strict=True):
        places, program = plan.arrays[mine.template].places, plan.programs[mine.template]
        of_blocks = program.part(mine.first, mine.last), torch.as_tensor(moves), torch.as_tensor(outputs)
        for j, values in enumerate(columns_of(*of_blocks)):
            z[places.column(j, mine.first, mine.last)] = values.numpy()
    return z


def _without_blocks(plan: TemplatePlan) -> FloatArray:
    """A point with the columns outside all blocks set."""
    z = np.empty(plan.program.n_columns)
    for part in plan.uncovered:
        part.of(z)[...] = part.lower
    return z
