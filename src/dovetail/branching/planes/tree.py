"""Branch and bound over the inputs that all networks read together: exact for few inputs, whatever the depth.

    repeat: take the open boxes of lowest bound, many at a time
            planes below and above every output that costs; rows and planes shrink the box
            multipliers of its LP say which slopes of ReLUs make the planes best; new planes shrink it again
            what is left gets planes of the other outputs, too
            multipliers of the new LP give a bound; reduced costs shrink the box; the rest is split in two

Idea: on a small box a network is nearly linear, and a box of five columns needs few splits to be small. Width
and depth hardly matter, and smooth activations are as good as ReLUs. Weakness: the number of boxes grows with
the number of inputs; beyond ten there is little hope.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from dovetail.bounds.batch_lps import InteriorPoint, Proved, proved
from dovetail.branching.planes import shrinking
from dovetail.branching.planes.plan import Plan
from dovetail.branching.planes.pool import Pool
from dovetail.branching.planes.relaxation import Relaxation, Relaxed
from dovetail.branching.planes.splitting import exact, is_open, relaxation_error, scores, split
from dovetail.branching.planes.stages import Stages
from dovetail.core.arrays import FloatArray
from dovetail.core.deadline import require_time
from dovetail.run import work
from dovetail.run.budget import Budget

FEW = 32
"""Boxes that cost as much as one: fewer are split further before their planes are computed."""
MOSTLY = 0.8
"""Boxes of a batch that are split again without a look at their halves, where so many were left open: these
would mostly be open as well."""
BATCH, DEVICE_BATCH = 512, 16384
"""Boxes at a time, at most: larger batches waste boxes that the first ones would have made needless."""
CELLS = 2**22
"""Numbers in the rows of one batch, at most (32 MB)."""
PASSES = 3
"""Over the rows of a box: planes bound an output, the host's rows another one, and that its inputs."""
LEAF = 0.05
"""A box whose LP is this close to the truth, as a part of the gap that counts as closed, is not split."""
NEAR = 100.0
"""The same for boxes whose LP is worth solving to the end."""
FIRST_STEPS, LAST_STEPS = 6, 9
"""Of the interior-point method: most boxes are split whatever the last digits of their bound."""
CEILING = 1e-9
"""Of the sizes of all costs: farther above them than sums of thousands of products round."""


@dataclass(frozen=True, eq=False)
class _Batch:
    """Boxes that are at work."""

    relaxed: Relaxed
    bound: Tensor
    was_open: Tensor
    """Whether a box had anything to split when its planes were computed."""

    def __len__(self) -> int:
        return len(self.bound)

    def take(self, chosen: Tensor) -> _Batch:
        """Some of them, by index."""
        return _Batch(self.relaxed.take(chosen), self.bound[chosen], self.was_open[chosen])


class PlanesTree:
    """The open boxes of one problem, and what was proved of the others; asked as `Tree` is."""

    def __init__(self, plan: Plan, device: str, allowed: Callable[[float], float]) -> None:
        """`allowed`: the gap that counts as closed, where no point is below a bound."""
        self._allowed = allowed
        self._relaxation = r = Relaxation(plan.mip, plan.network, plan.lower, plan.upper, device)
        self._stages = Stages(plan, r, device)
        self._pool = Pool(
            r.root_lower[None],
            r.root_upper[None],
            torch.full((1,), -torch.inf, dtype=torch.float64, device=device),
        )
        self._ceiling, self._lowest = _ceiling(r), math.inf
        self.leaves = math.inf
        """The lowest bound of boxes that nothing can divide."""
        self.left: list[FloatArray] = []
        """A point of these boxes that nobody has looked at."""
        self._cells = (len(r.host_rows) + len(r.slack)) * r.n_columns
        most = BATCH if device == "cpu" else DEVICE_BATCH
        self._batch = max(FEW, min(most, CELLS // self._cells))
        self.columns = plan.mip.n_columns
        """Of the problem itself: the first ones."""
        self.boxes, self.promise = 0, math.inf

    def __len__(self) -> int:
        return len(self._pool)

    @property
    def bound(self) -> float:
        """What no point is below; infinity: there is none."""
        return min(self._pool.least, self.leaves, self._lowest)

    def step(self, goal: float, budget: Budget) -> list[FloatArray]:
        """The lowest boxes; the point of the lowest LP. Boxes that are interrupted stay open."""
        self._lowest = min(self._lowest, goal)
        self._target, self._gap = min(self._lowest, self._ceiling), self._allowed(self._pool.least)
        self._pool.drop(self._target)
        if not len(self._pool):
            return []
        taken = self._pool.take(self._batch)
        try:
            points = self._process(*taken)
        except BaseException:
            self._pool.add(*taken)
            raise
        self.boxes += len(taken[0])
        work.count(nodes=len(taken[0]), effort=2.9e-2 + 6.3e-7 * self._cells * len(taken[0]))
        return points

    def _process(self, lower: Tensor, upper: Tensor, bound: Tensor) -> list[FloatArray]:
        relaxation, target, taken = self._relaxation, self._target, len(lower)
        batch = self._bounded(lower, upper, bound)
        if not len(batch):
            return []
        proof, points = self._solved(batch.relaxed)
        bound = torch.maximum(batch.bound, proof.bound)
        programs = batch.relaxed.programs
        lower, upper = shrinking.by_reduced_costs(programs, proof, relaxation.integer, target)
        relaxed = batch.relaxed.within(lower, upper)
        kept = ~(bound >= target) & ~(lower > upper).any(1)  # NaN closes no box
        score = scores(relaxation, relaxed, proof, points)
        done = exact(relaxation, relaxed.programs, proof, relaxed.apart, points, LEAF * self._gap)
        leaf = kept & (done | ~batch.was_open)
        if bool(leaf.any()):
            self.leaves = min(self.leaves, float(bound[leaf].min()))
            self.left += self._point(points, bound, leaf)
        kept &= ~leaf
        times = 2 if int(kept.sum()) > MOSTLY * taken else 1
        self._split(lower[kept], upper[kept], bound[kept], score[kept], times)
        return self._point(points, bound, kept)

    def _bounded(self, lower: Tensor, upper: Tensor, bound: Tensor) -> _Batch:
        """With planes, of the networks that cost first; boxes that these close are left out."""
        first = self._stages.first
        relaxed = first.relaxed(lower, upper)
        batch = self._shrunk(_Batch(relaxed, bound, is_open(self._relaxation, relaxed.programs).any(1)))
        if first.has_slopes and len(batch):
            batch = self._shrunk(self._steeper(batch))
        if self._stages.several and len(batch):
            batch = self._shrunk(replace(batch, relaxed=self._stages.completed(batch.relaxed)))
        return batch

    def _point(self, points: Tensor, bound: Tensor, chosen: Tensor) -> list[FloatArray]:
        """That of the lowest of some boxes, unless its LP came to nothing."""
        if not bool(chosen.any()):
            return []
        best = int(torch.where(chosen, bound, torch.inf).argmin())
        point = points[best].cpu().numpy().copy()
        return [point] if np.all(np.isfinite(point)) else []

    def _shrunk(self, batch: _Batch) -> _Batch:
        """By single rows; boxes that are empty are left out."""
        programs, integer, target = batch.relaxed.programs, self._relaxation.integer, self._target
        for _ in range(PASSES):
            require_time()
            programs = programs.within(*shrinking.by_rows(programs, integer, target))
        kept = ~(programs.lower > programs.upper).any(1) & ~(batch.bound >= target)
        relaxed = batch.relaxed.within(programs.lower, programs.upper)
        return replace(batch, relaxed=relaxed).take(torch.nonzero(kept).ravel())

    def _steeper(self, batch: _Batch) -> _Batch:
        """With slopes that suit the prices of a first LP, where that one does not close the box itself."""
        method = InteriorPoint(batch.relaxed.programs)
        method.run(FIRST_STEPS)
        proof = proved(batch.relaxed.programs, method.multipliers)
        batch = replace(batch, bound=torch.maximum(batch.bound, proof.bound))
        weak = torch.nonzero(batch.bound < self._target).ravel()
        batch = batch.take(weak)
        return replace(batch, relaxed=self._stages.first.steeper(batch.relaxed, proof.take(weak)))

    def _solved(self, relaxed: Relaxed) -> tuple[Proved, Tensor]:
        """What the LPs prove, and their points; only those that may decide something are solved well."""
        programs, target = relaxed.programs, self._target
        method = InteriorPoint(programs)
        method.run(FIRST_STEPS)
        proof = proved(programs, method.multipliers)
        error = relaxation_error(self._relaxation, programs, proof, relaxed.apart, method.points)
        near = error <= NEAR * self._gap
        near |= (proof.bound < target) & (proof.bound + method.gap >= target)
        near |= ~is_open(self._relaxation, programs).any(1)
        chosen = torch.nonzero(near).ravel()
        if len(chosen):
            part = method.take(chosen)
            part.run(LAST_STEPS)
            method.put(chosen, part)
            proof = proved(programs, method.multipliers)
        return proof, method.points

    def _split(self, lower: Tensor, upper: Tensor, bound: Tensor, score: Tensor, times: int) -> None:
        """So many times, or until there are a few."""
        shrunk = score.amax(1) <= 0.0  # to a point, which has better planes than the box it comes from
        self._pool.add(lower[shrunk], upper[shrunk], bound[shrunk])
        lower, upper, bound, score = lower[~shrunk], upper[~shrunk], bound[~shrunk], score[~shrunk]
        while len(lower):
            lower, upper, score = split(lower, upper, score, self._relaxation.integer)
            bound = torch.cat([bound, bound])
            fine = ~(lower > upper).any(1)
            lower, upper, bound, score = lower[fine], upper[fine], bound[fine], score[fine]
            times -= 1
            enough = len(lower) + len(self._pool) >= FEW and times <= 0
            if enough or bool((score.amax(1) <= 0.0).any()):
                break
        self._pool.add(lower, upper, bound)


def _ceiling(relaxation: Relaxation) -> float:
    """More than any point of the first box costs: a box whose bound reaches it is empty."""
    cost, lower, upper = relaxation.cost, relaxation.root_lower, relaxation.root_upper
    parts = torch.maximum(cost * lower, cost * upper)
    return float(parts.sum() + relaxation.offset) + CEILING * (1.0 + float(parts.abs().sum()))
