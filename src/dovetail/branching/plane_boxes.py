"""The open boxes that planes bound, many at a time: one of the two frontiers of a tree.

    repeat: take the open boxes of lowest bound, many at a time
            planes below and above every output; their slopes at ReLUs are the best for the multipliers of
            the box that was divided; rows and planes shrink the box
            multipliers of its LP give a bound, and serve its parts; the rest is split in two

Idea: on a small box a network is nearly linear, and a box of five columns needs few splits to be small. Width
and depth hardly matter, and smooth activations are as good as ReLUs. Weakness: the number of boxes grows with
the number of inputs. There is no Python object for a box.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from dovetail.bounds.batch_lps import InteriorPoint, Proved, proved
from dovetail.bounds.planes.domain import gamma
from dovetail.branching.effort import of_plane_box, of_plane_step
from dovetail.branching.frontier import Frontier, Parts
from dovetail.branching.model import Model
from dovetail.branching.pace import Pace
from dovetail.branching.planes import PlaneRows, Prices, Relaxed, first_box
from dovetail.core.arrays import FloatArray
from dovetail.core.deadline import require_time
from dovetail.run import work

BATCH, DEVICE_BATCH = 512, 16384
"""Largest number of boxes at a time: larger batches waste boxes that the first ones would have made needless.
As many boxes as cost a step are split before their planes are computed: with at most 1, 32 and 128, function
2 took 1.07, 0.78 and 0.51 s by counts until the proof, doses 2 0.91, 0.82 and 0.75."""
MORE = 4
"""The same in batches that cost a step: with 512 boxes each, however large, control 2 took 4.1 s instead of
3.1, and no problem was slower."""
CELLS = 2**22
"""Largest number of entries in the rows of one batch (32 MB)."""
PASSES = 3
"""Passes over the rows of a box, because planes bound outputs, rows bound other outputs, and these bound
inputs (with 1, function 2 took 3,632 boxes instead of 3,120, and four others as many)."""
LEAF = 0.05
"""A box whose LP is this close to the truth, as a fraction of the allowed gap, is not divided (five problems
took as many boxes with 1)."""
FIRST_STEPS, LAST_STEPS = 6, 9
"""Steps of the interior-point method: most boxes are divided whatever the last digits of their bound."""
PAD = 1e-11
"""Relative to the terms of a computation: bounds by rows are relaxed by this."""
WHOLE = 1e-6
"""An integer's new bound within this distance of a whole number keeps this number; larger than rounding."""
TINY = 1e-12
"""Relative to a row: smaller entries are not divided by."""
CEILING = 1e-9
"""Relative to all costs: a margin above the rounding of sums of thousands of products."""


@dataclass(frozen=True, eq=False)
class _Boxes(Parts):
    """N boxes of one model."""

    lower: Tensor
    """(N, columns)."""
    upper: Tensor
    rows: Tensor
    """(N, host rows) the prices of the box that was divided into these; 0 at first."""
    planes: Tensor
    """(N, planes)."""


@dataclass(frozen=True, eq=False)
class _Batch:
    """Boxes that are processed together."""

    relaxed: Relaxed
    bound: Tensor
    was_open: Tensor
    """Whether a box could be divided when its planes were computed."""

    def __len__(self) -> int:
        return len(self.bound)

    def take(self, chosen: Tensor) -> _Batch:
        """A selection of the boxes, by index."""
        return _Batch(self.relaxed.take(chosen), self.bound[chosen], self.was_open[chosen])


class PlaneBoxes:
    """The open boxes of one model, (N, columns) tensors, with the bounds proved by their parents."""

    def __init__(self, rows: PlaneRows, device: str, allowed: Callable[[float], float]) -> None:
        """`allowed`: the allowed gap."""
        self._device, self._allowed = device, allowed
        endless = torch.full((1,), -torch.inf, dtype=torch.float64, device=device)
        box, none = (rows.lower[None], rows.upper[None]), endless[:, None].expand(1, 0)
        self._open = Frontier(_Boxes(torch.zeros_like(endless), endless, *box, none, none))
        self.leaves = math.inf
        """The lowest bound of boxes that cannot be divided."""
        self.left: list[FloatArray] = []
        """Points of these boxes that were not checked yet."""
        self.boxes, self.pace = 0, Pace()
        """Counts so far."""
        self._load(rows)

    @classmethod
    def of(
        cls, model: Model, device: str, allowed: Callable[[float], float], goal: float
    ) -> PlaneBoxes | None:
        """The boxes of a model; None if planes give no bound for it."""
        box = first_box(model, goal)
        return None if box is None else cls(PlaneRows(model, *box, device), device, allowed)

    def use(self, model: Model, bound: float, goal: float) -> None:
        """Continue with other rows, in a smaller box; no point costs less than `bound`."""
        parts = self._open.parts
        self._open.parts = replace(parts, bound=parts.bound.clamp(min=bound))
        if (box := first_box(model, goal)) is not None:
            rows = PlaneRows(model, *box, self._device)
            lower, upper = torch.maximum(parts.lower, rows.lower), torch.minimum(parts.upper, rows.upper)
            self._open.parts = replace(self._open.parts, lower=lower, upper=upper)
            self._load(rows)

    def _load(self, rows: PlaneRows) -> None:
        self._rows, self._ceiling = rows, _ceiling(rows)
        parts = self._open.parts
        if (parts.rows.shape[1], parts.planes.shape[1]) != (len(rows.host_rows), rows.planes):
            none = parts.lower.new_zeros(len(parts), 1)
            known = none.expand(-1, len(rows.host_rows)), none.expand(-1, rows.planes)
            self._open.parts = replace(parts, rows=known[0].clone(), planes=known[1].clone())
        most = BATCH if self._device == "cpu" else DEVICE_BATCH
        self._step, self._each = of_plane_step(rows.networks), of_plane_box(rows.cells, rows.entries)
        self._few = int(min(most, 1.0 + self._step / self._each))
        self._batch = max(self._few, min(most, CELLS // rows.cells, MORE * self._few))

    def __len__(self) -> int:
        return len(self._open)

    @property
    def bound(self) -> float:
        """A lower bound of all points that cost less than the goals so far; infinity: there are none."""
        return min(float(self._open.parts.bound.min()) if len(self) else math.inf, self.leaves)

    @property
    def effort(self) -> float:
        """Effort of the next step in seconds, by counts."""
        return self._step + self._each * min(self._batch, len(self))

    def step(self, goal: float) -> list[FloatArray]:
        """Process the lowest boxes; returns the point of the lowest LP. Interrupted boxes stay open."""
        self._target = min(goal, self.leaves, self._ceiling)
        self._gap = self._allowed(self.bound)
        self._open.close(self._open.parts.bound >= self._target)
        if not len(self):
            return []
        effort, taken = self.effort, self._open.lowest(self._batch)
        try:
            points = self._process(taken)
        except BaseException:
            self._open.add(taken)
            raise
        self.boxes += len(taken)
        self.pace.add(effort, self.bound)
        work.count(nodes=len(taken), effort=effort)
        return points

    def _process(self, taken: _Boxes) -> list[FloatArray]:
        rows, target = self._rows, self._target
        relaxed = rows.bare(taken.lower, taken.upper)
        batch = _Batch(relaxed, taken.bound, rows.open(relaxed.programs).any(1))
        known = Prices(taken.rows, taken.planes)
        batch = self._shrunk(replace(batch, relaxed=rows.with_networks(relaxed, known)))
        if not len(batch):
            return []
        proof, points = self._solved(batch.relaxed)
        bound = torch.maximum(batch.bound, proof.bound)
        relaxed, kept = batch.relaxed, ~(bound >= target)  # NaN closes no box
        score = rows.scores(relaxed, proof, points)
        leaf = kept & (rows.exact(relaxed, proof, points, LEAF * self._gap) | ~batch.was_open)
        if bool(leaf.any()):
            self.leaves = min(self.leaves, float(bound[leaf].min()))
            self.left += _point(points, bound, leaf)
        kept &= ~leaf
        programs, prices = relaxed.programs, relaxed.prices(proof)
        box = programs.lower, programs.upper
        boxes = _Boxes(torch.zeros_like(bound), bound, *box, prices.rows, prices.planes)
        self._split(boxes.take(kept), score[kept])
        return _point(points, bound, kept)

    def _shrunk(self, batch: _Batch) -> _Batch:
        """Tighten by single rows; empty boxes are dropped."""
        programs = batch.relaxed.programs
        ceiling = torch.full_like(programs.row_upper[:, :1], self._target - programs.offset)
        single = _SingleRows(programs.rows, programs.row_lower, programs.row_upper, self._rows.integer)
        cost = programs.cost.expand(len(programs.rows), 1, -1)
        of_cost = _SingleRows(cost, torch.full_like(ceiling, -torch.inf), ceiling, self._rows.integer)
        for _ in range(PASSES):
            require_time()
            lower, upper = single.tightened(programs.lower, programs.upper)
            programs = programs.within(*of_cost.tightened(lower, upper))
        kept = ~(programs.lower > programs.upper).any(1) & ~(batch.bound >= self._target)
        relaxed = batch.relaxed.within(programs.lower, programs.upper)
        return replace(batch, relaxed=relaxed).take(torch.nonzero(kept).ravel())

    def _solved(self, relaxed: Relaxed) -> tuple[Proved, Tensor]:
        """Bounds and points of the LPs; only those that may decide something are solved well."""
        programs, target = relaxed.programs, self._target
        method = InteriorPoint(programs)
        method.run(FIRST_STEPS)
        proof = proved(programs, method.multipliers)
        near = (proof.bound < target) & (proof.bound + method.gap >= target)
        near |= ~self._rows.open(programs).any(1)
        chosen = torch.nonzero(near).ravel()
        if len(chosen):
            part = method.take(chosen)
            part.run(LAST_STEPS)
            method.put(chosen, part)
            proof = proved(programs, method.multipliers)
        return proof, method.points

    def _split(self, boxes: _Boxes, score: Tensor) -> None:
        """Divide twice, or until there are a few boxes. Most halves are open as well: divided once at first,
        ensemble 2 is at 9.9 % after 3 s by counts, and at 6.1."""
        times = 2
        shrunk = score.amax(1) <= 0.0  # single points have better planes than their boxes
        self._open.add(boxes.take(shrunk))
        boxes, score = boxes.take(~shrunk), score[~shrunk]
        while len(boxes):
            lower, upper, score = split(boxes.lower, boxes.upper, score, self._rows.integer)
            fine = ~(lower > upper).any(1)
            boxes = replace(boxes.joined(boxes), lower=lower, upper=upper).take(fine)
            score = score[fine]
            times -= 1
            enough = len(boxes) + len(self) >= self._few and times <= 0
            if enough or bool((score.amax(1) <= 0.0).any()):
                break
        self._open.add(boxes)


class _SingleRows:
    """Boxes tightened by single rows: only points that a row excludes are lost."""

    def __init__(self, rows: Tensor, row_lower: Tensor, row_upper: Tensor, integer: Tensor) -> None:
        """(N, m, n) rows with (N, m) limits."""
        self._positive, self._negative = rows.clamp(min=0.0), rows.clamp(max=0.0)
        self._size, self._rises = rows.abs(), rows > 0.0
        self._usable = self._size > TINY * self._size.amax(2, keepdim=True)
        self._inverse = 1.0 / torch.where(self._usable, rows, 1.0)
        self._lower, self._upper, self._integer = row_lower, row_upper, integer

    def tightened(self, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
        """(N, n) boxes within these; empty ones have crossed bounds."""
        reach = torch.maximum(lower.abs(), upper.abs())
        noise, unit = _product(self._size, reach), gamma(lower.shape[1] + 4)
        # how far a row's least and greatest values are from its limits, which a column's part may use up
        above = self._upper - _product(self._positive, lower) - _product(self._negative, upper)
        below = self._lower - _product(self._positive, upper) - _product(self._negative, lower)
        above = (above + unit * (noise + self._upper.abs())).nan_to_num(torch.inf, torch.inf, -torch.inf)
        below = (below - unit * (noise + self._lower.abs())).nan_to_num(-torch.inf, torch.inf, -torch.inf)
        above, below = above[:, :, None], below[:, :, None]
        up = torch.where(self._rises, above, below) * self._inverse
        down = torch.where(self._rises, below, above) * self._inverse
        highest = lower + torch.where(self._usable, up, torch.inf).amin(1)
        lowest = upper + torch.where(self._usable, down, -torch.inf).amax(1)
        pad = PAD * (1.0 + reach)
        lowest = torch.where(self._integer, torch.ceil(lowest - pad - WHOLE), lowest - pad)
        highest = torch.where(self._integer, torch.floor(highest + pad + WHOLE), highest + pad)
        return torch.fmax(lower, lowest), torch.fmin(upper, highest)


def _product(rows: Tensor, x: Tensor) -> Tensor:
    """(N, m) products of (N, m, n) and (N, n)."""
    return torch.bmm(rows, x[:, :, None])[:, :, 0]


def split(lower: Tensor, upper: Tensor, score: Tensor, integer: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both halves of every box, divided at the middle of its best column, with scores. A column of width 0
    has no score."""
    best = score.argmax(1, keepdim=True)
    low, high = lower.gather(1, best), upper.gather(1, best)
    middle = 0.5 * (low + high)
    whole = integer[best]
    left_end = torch.where(whole, torch.floor(middle), middle)
    right_start = torch.where(whole, torch.floor(middle) + 1.0, middle)
    left_upper, right_lower = upper.scatter(1, best, left_end), lower.scatter(1, best, right_start)
    left, right = (
        score.scatter(1, best, torch.where(begin < end, 0.5 * score.gather(1, best), 0.0))
        for begin, end in ((low, left_end), (right_start, high))
    )
    return torch.cat([lower, right_lower]), torch.cat([left_upper, upper]), torch.cat([left, right])


def _point(points: Tensor, bound: Tensor, chosen: Tensor) -> list[FloatArray]:
    """The point of the lowest box, unless its LP failed."""
    if not bool(chosen.any()):
        return []
    best = int(torch.where(chosen, bound, torch.inf).argmin())
    point = points[best].cpu().numpy().copy()
    return [point] if np.all(np.isfinite(point)) else []


def _ceiling(rows: PlaneRows) -> float:
    """A cost above that of every point of the first box: a box whose bound reaches this cost is empty."""
    parts = torch.maximum(rows.cost * rows.lower, rows.cost * rows.upper)
    return float(parts.sum() + rows.offset) + CEILING * (1.0 + float(parts.abs().sum()))
