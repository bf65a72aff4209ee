"""Lower bounds on the cost of blocks at given prices, by branch and bound over boxes of many blocks at once.

A box of a block is an interval for every continuous variable, the remaining values of every discrete
variable (`modes`) and the remaining classes of every network that classifies. Planes below the networks over
a box (`bounds.planes`) make the priced cost a sum of terms in one variable each, so that its minimum is found
term by term. Where one class remains, planes below the differences of its logits are conditions of the box.
The bound holds for the networks as deployed; rounding is deducted. The minimiser is a candidate solution.

A box is closed if its bound is within the tolerance of the block's best solution, or if a constraint cannot
be met in the box. All other boxes are halved. With one or two continuous variables and a few discrete ones
the proof costs no more than the search. With nine continuous variables the proof does not finish; the bound
reached by then is valid but weak.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from dovetail.bounds.box import UNIT
from dovetail.bounds.planes.domain import Boxes, gamma
from dovetail.bounds.planes.network_planes import NetworkPlanes, Ranges
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack, block_steps, tie_slack
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.problem import Problem
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.decomposition.block_data import BlockData, of
from dovetail.decomposition.modes import Digit
from dovetail.decomposition.move_program import MoveProgram, NetworkReading
from dovetail.decomposition.networks import TemplateNetworks
from dovetail.decomposition.owners import uploaded
from dovetail.networks.graph import Affine
from dovetail.run import work
from dovetail.run.budget import Budget
from dovetail.structure.networks import required_graph

ROOTS, ROWS = 512, 1024
"""Number of blocks, and of their boxes, at a time."""
RELATIVE = 1e-9
"""Relative to the terms of a condition: more than float64 rounding."""
BISECTIONS, STEEPER = 10, 64.0
"""Steps of the search for the multiplier of a condition, and its range around the ratio of slopes."""
TREES = 10
"""Factor on the number of boxes for blocks with trees only, whose boxes end at the cuts. (Price ladders and
customers, n = 1,000, 30 trees of depth 4: of 200 blocks 200 and 197 are proved by 850 and 500 boxes for each,
none by 400.)"""
LEAVES = 1 << 22
"""Largest number of boxes processed together."""
STEP_EFFORT, BOX_EFFORT = 2.2e-3, 4e-5
"""Seconds of a step, and of each of its boxes, for each network or ensemble (see `Work.effort`)."""
PROBED = 64
"""Number of blocks whose inputs are used to compare a network with its graph."""


@dataclass(frozen=True, eq=False)
class BlockBounds:
    """Bounds of some blocks at prices."""

    lower: Tensor
    """(n,) a lower bound of the block's cost; minus infinity if unknown."""
    closed: Tensor
    """(n,) whether the bound is within the tolerance of the block's best point."""
    moves: Tensor
    """(n, k) the best point found."""
    better: Tensor
    """(n,) whether the point improves the known one by more than the tolerance."""
    boxes: int


@dataclass(frozen=True, eq=False)
class _Cells:
    """Boxes of some blocks."""

    owner: Tensor
    low: Tensor
    """(n, F) lower limits of the free coordinates."""
    high: Tensor
    left: Tensor
    """(n, levels of all digits, then classes of all networks) whether a level or a class remains."""
    bound: Tensor
    """(n,) a proved bound of the box, possibly of its parent."""

    def take(self, which: Tensor | slice) -> _Cells:
        """A selection of the boxes."""
        return _Cells(*(array[which] for array in vars(self).values()))

    @classmethod
    def joined(cls, parts: Sequence[_Cells]) -> _Cells:
        """Concatenated boxes."""
        return cls(*(torch.cat(arrays) for arrays in zip(*(vars(p).values() for p in parts), strict=True)))


class BlockProof:
    """Proofs for the blocks of a shard."""

    def __init__(
        self,
        program: MoveProgram,
        blocks: list[Block],
        data: BlockData,
        digits: list[Digit],
        rests: list[Tensor] | None = None,
    ) -> None:
        """`rests`: as in `TemplateNetworks`. `UnsupportedError` if a network has no planes."""
        self._program, self._data, self._device = program, data, data.device
        self._digits = [digit for digit in digits if not digit.jumps]
        by_digits = [digit.columns for digit in self._digits]
        held = np.concatenate([np.zeros(0, dtype=np.int64), *by_digits])
        self._free = np.setdiff1d(np.arange(program.coordinates), held)
        """The continuous coordinates of boxes, with integers of many values among them."""
        self._whole = torch.as_tensor(program.whole[self._free], device=self._device)
        if rests is None:
            rests = [uploaded(reading.at_rest, self._device) for reading in program.networks]
        self._networks = TemplateNetworks(program, blocks, self._device, torch.float64, rests)
        self._readings = [
            _reading(blocks[reading.block], reading, rest, program, self._device)
            for reading, rest in zip(program.networks, rests, strict=True)
        ]
        sizes = [len(digit.levels) for digit in self._digits] + [r.classes_to_divide for r in self._readings]
        first = np.cumsum([0, *sizes])
        spans = [slice(int(a), int(b)) for a, b in pairwise(first)]
        self._levels, count = int(first[-1]), len(self._digits)
        self._spans, self._class_spans = spans[:count], spans[count:]
        self._operations = 4 * (program.coordinates + sum(len(r.size) for r in program.networks) + 8)
        """Largest number of operations in sequence for the cost of a box."""

    def prove(
        self, which: Tensor, prices: Tensor, known: Tensor, tolerance: float, most: int, budget: Budget
    ) -> BlockBounds:
        """Bounds of blocks with points of `known` cost at (R,) prices, with at most `most` boxes for each,
        or `TREES` times this number."""
        parts, boxes = [], most
        if all(isinstance(reading, _ReadingTrees) for reading in self._readings):
            boxes *= TREES
        for some in torch.arange(len(which), device=which.device).split(ROOTS):  # type: ignore[no-untyped-call]
            batch = _Batch(self, which[some], prices.double(), known[some].double(), tolerance)
            batch.run(boxes * len(some), budget)
            parts.append(batch.found())
        lower, closed, moves, better = (
            torch.cat([getattr(part, name) for part in parts])
            for name in ("lower", "closed", "moves", "better")
        )
        return BlockBounds(lower, closed, moves, better, sum(part.boxes for part in parts))


@dataclass(frozen=True, eq=False)
class _Forms:
    """S sums of terms of one move each, for n boxes: the increase per unit to the right and to the left of
    0."""

    right: Tensor
    """(n, S, k)."""
    left: Tensor
    constant: Tensor
    """(n, S)."""

    def at(self, moves: Tensor) -> Tensor:
        """(n, S) values at (n, k) moves."""
        there = self.right @ moves.clamp(min=0.0)[..., None] + self.left @ (-moves).clamp(min=0.0)[..., None]
        return there[..., 0] + self.constant

    def terms(self, moves: Tensor, columns: IntArray) -> Tensor:
        """(n, S, places, columns) terms of some columns at (n, places, columns) moves."""
        right, left = (array[:, :, None, columns] for array in (self.right, self.left))
        return right * moves[:, None].clamp(min=0.0) + left * (-moves[:, None]).clamp(min=0.0)

    def one(self, which: Tensor, number: Tensor | int) -> _Forms:
        """One form for each box."""
        return _Forms(*(array[which, number][:, None] for array in vars(self).values()))

    def plus(self, times: Tensor, other: _Forms) -> _Forms:
        """The sum with (n,) times the other."""
        right, left = (
            one + times[:, None, None] * more
            for one, more in ((self.right, other.right), (self.left, other.left))
        )
        return _Forms(right, left, self.constant + times[:, None] * other.constant)

    def steepest(self) -> Tensor:
        """(n,) the largest coefficient."""
        return torch.maximum(self.right.abs(), self.left.abs()).amax(dim=(1, 2))


class _Batch:
    """Some blocks whose boxes are processed together."""

    def __init__(
        self, proof: BlockProof, which: Tensor, prices: Tensor, known: Tensor, tolerance: float
    ) -> None:
        self._proof, self._which, self._tolerance, self._known = proof, which, tolerance, known
        data, program, device = proof._data, proof._program, which.device
        self._k = k = program.coordinates
        self._cost, self._rough = data.true_part_costs(which, prices), program.rounding(prices.cpu().numpy())
        self._lower, self._upper = (of(limit, which) for limit in data.true_limits)
        self._on_moves, self._on_outputs, self._asked = (of(array, which) for array in data.true_conditions)
        self._values = [
            torch.minimum(
                self._lower[:, None, digit.columns] + torch.as_tensor(digit.levels, device=device),
                self._upper[:, None, digit.columns],
            )
            for digit in proof._digits
        ]
        """For every digit: (n, levels, columns)."""
        self.best, self.point = known.clone(), self._lower.new_zeros((len(which), k))
        self._proved = torch.full_like(known, torch.inf)
        """The lowest bound of the finished boxes."""
        self._open = torch.zeros_like(known, dtype=torch.bool)
        self.boxes = 0
        self._rooted()

    def _rooted(self) -> None:
        """The root box of every block; conditions on one digit alone exclude levels."""
        n, free = len(self._which), self._proof._free
        left = torch.ones((n, self._proof._levels), dtype=torch.bool, device=self._which.device)
        kept = []
        for c in range(self._asked.shape[1]):
            touched = self._on_moves[:, c].ne(0.0).any(dim=0).nonzero().ravel().cpu().numpy()
            alone = [d for d, digit in enumerate(self._proof._digits) if set(touched) <= set(digit.columns)]
            if not alone or bool(self._on_outputs[:, c].ne(0.0).any()):
                kept.append(c)
                continue
            d = alone[0]
            terms = self._values[d] * self._on_moves[:, c, None, self._proof._digits[d].columns]
            room = TOLERANCE + RELATIVE * terms.abs().sum(dim=2)
            left[:, self._proof._spans[d]] &= terms.sum(dim=2) >= self._asked[:, c, None] - room
        self._kept = kept
        self._cells = _Cells(
            torch.arange(n, device=left.device), self._lower[:, free], self._upper[:, free], left,
            torch.full_like(self._known, -torch.inf),
        )  # fmt: skip

    def run(self, most: int, budget: Budget) -> None:
        """Process boxes until all are finished, or the limit is reached."""
        cells = self._cells
        finite = torch.isfinite(cells.high - cells.low).all(dim=1)
        self._end(cells.take(~finite))
        cells = cells.take(finite)
        while len(cells.owner) and self.boxes < most and not budget.over:
            now, cells = cells.take(slice(-ROWS, None)), cells.take(slice(None, -ROWS))
            self.boxes += len(now.owner)
            work.count(effort=len(self._proof._readings) * (STEP_EFFORT + BOX_EFFORT * len(now.owner)))
            now, points, possible, spread = self._bounded(now)
            now, points, spread = now.take(possible), points[possible], spread[possible]
            self._try(now.owner, points)
            done = (now.bound >= self.best[now.owner] - self._tolerance) | (spread <= 0.0).all(dim=1)
            self._end(now.take(done))
            cells = _Cells.joined([cells, *self._halved(now.take(~done), spread[~done])])
        self._end(cells)

    def _end(self, cells: _Cells) -> None:
        self._proved.scatter_reduce_(0, cells.owner, cells.bound, "amin")
        self._open[cells.owner[cells.bound < self.best[cells.owner] - self._tolerance]] = True

    def found(self) -> BlockBounds:
        """The bounds at the end."""
        lower = torch.where(torch.isfinite(self._proved), self._proved, -torch.inf)
        better = self.best < self._known - self._tolerance
        return BlockBounds(lower, ~self._open & torch.isfinite(lower), self.point, better, self.boxes)

    def _bounded(self, cells: _Cells) -> tuple[_Cells, Tensor, Tensor, Tensor]:
        """Boxes with their own bounds, (n, k) points that attain them, (n,) whether a box may contain a
        point, and (n, free, digits and networks) the spread that each coordinate causes in the inputs of
        networks; for the classes of a network infinity where their costs differ."""
        proof, owner, k = self._proof, cells.owner, self._k
        n, kept = len(owner), self._kept
        right = torch.cat([self._cost[owner, None, :k], -self._on_moves[owner][:, kept]], dim=1)
        left = torch.cat([self._cost[owner, None, k : 2 * k], self._on_moves[owner][:, kept]], dim=1)
        rows = torch.cat([self._cost[owner, None, 2 * k : -1], -self._on_outputs[owner][:, kept]], dim=1)
        constant = torch.zeros_like(rows[..., 0])
        constant[:, 0] = self._cost[owner, -1]
        size, slopes, steep = constant.abs(), torch.zeros_like(right), torch.zeros_like(right)
        coordinates = len(proof._free) + len(proof._digits)
        spread = cells.low.new_zeros((n, coordinates + len(proof._readings)))
        most = torch.zeros_like(rows[:, 0])
        remaining, of_classes = cells.left.clone(), []
        for r, (reading, span) in enumerate(zip(proof._readings, proof._class_spans, strict=True)):
            box = self._inputs_of(reading, cells, spread)
            below = reading.below(self._which[owner], box, rows[:, :, reading.outputs], cells.left[:, span])
            slopes, steep = slopes + below.slopes, steep + below.steep
            constant, size = constant + below.constant, size + below.size
            most[:, reading.outputs] = below.most
            if below.classes is not None:
                remaining[:, span] = below.classes.possible
                spread[:, coordinates + r] = torch.where(below.classes.differ, torch.inf, 0.0)
                of_classes.append(below.classes)
        cells = replace(cells, left=remaining)
        nothing = [torch.zeros_like(found.slopes) for found in of_classes]
        right, left = torch.cat([right, *nothing], dim=1), torch.cat([left, *nothing], dim=1)
        slopes, steep, constant, size = (
            torch.cat([of_rows, *(getattr(found, name) for found in of_classes)], dim=1)
            for name, of_rows in (
                ("slopes", slopes),
                ("steep", steep),
                ("constant", constant),
                ("size", size),
            )
        )
        widest, rough = self._widest(cells), torch.as_tensor(self._rough, device=owner.device)
        size = size + ((torch.maximum(right.abs(), left.abs()) + steep) @ widest[..., None])[..., 0]
        noise = gamma(proof._operations) * size
        by_moves = widest @ (rough[:k] + rough[k : 2 * k])
        noise[:, 0] += gamma(16) * (by_moves + most @ rough[2 * k : -1] + rough[-1])
        forms = _Forms(right + slopes, left - slopes, constant - noise)
        bound, moves = self._least(cells, forms)
        possible = torch.ones(n, dtype=torch.bool, device=owner.device)
        for span in [*proof._spans, *proof._class_spans]:
            possible &= cells.left[:, span].any(dim=1) | (span.start == span.stop)
        if forms.constant.shape[1] > 1:
            held = slice(1, 1 + len(kept))
            asked = torch.zeros_like(forms.constant[:, 1:])
            asked[:, : len(kept)] = self._asked[owner][:, kept] - (TOLERANCE + RELATIVE * size[:, held])
            possible &= ~(bound[:, 1:] + asked > 0.0).any(dim=1)  # NaN gives no bound
            forms.constant[:, 1:] += asked
            with_one, moves = self._with_condition(cells, forms, moves, noise)
            bound[:, 0] = torch.fmax(bound[:, 0], with_one)
        own = torch.fmax(bound[:, 0] + self._both(owner), cells.bound)
        return replace(cells, bound=own), moves, possible, spread

    def _with_condition(
        self, cells: _Cells, forms: _Forms, moves: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor]:
        """(n,) bounds of boxes with a multiplier for the condition that the cheapest point violates most,
        and (n, k) moves of least cost that satisfy the condition's plane."""
        missed, worst = forms.at(moves)[:, 1:].max(dim=1)
        best, mine = torch.full_like(missed, -torch.inf), (missed > 0.0).nonzero().ravel()
        if not len(mine):
            return best, moves
        some, cost, held = cells.take(mine), forms.one(mine, 0), forms.one(mine, 1 + worst[mine])
        of_cost, of_held = noise[mine, 0], noise[mine, 1 + worst[mine]]
        ratio = (cost.steepest() / held.steepest().clamp(min=1e-300)).clamp(1e-12, 1e12)
        low, high = ratio / STEEPER, ratio * STEEPER
        bound, moves = best[mine], moves.clone()
        for _ in range(BISECTIONS):
            multiplier = (low * high).sqrt()
            both = cost.plus(multiplier, held)
            value, there = self._least(some, both)
            value = value[:, 0] - gamma(4) * (both.constant[:, 0].abs() + value[:, 0].abs())
            bound = torch.fmax(bound, value - multiplier * of_held - of_cost)
            meets = held.at(there)[:, 0] <= 0.0
            high, low = torch.where(meets, multiplier, high), torch.where(meets, low, multiplier)
            moves[mine[meets]] = there[meets]
        return best.index_copy(0, mine, bound), moves

    def _both(self, owner: Tensor) -> Tensor:
        """(n,) the possible gain of a pair of columns that move both ways at once."""
        k, cost = self._k, self._cost[owner]
        together = (cost[:, :k] + cost[:, k : 2 * k]).clamp(max=0.0)
        reach = torch.minimum(self._upper, -self._lower).clamp(min=0.0)[owner]
        return torch.where(together < 0.0, together * reach, 0.0).sum(dim=1)

    def _widest(self, cells: _Cells) -> Tensor:
        """(n, k) the largest move in each box, which is finite."""
        return torch.maximum(self._lower.abs(), self._upper.abs())[cells.owner]

    def _inputs_of(self, reading: _ReadingPlanes | _ReadingTrees, cells: _Cells, spread: Tensor) -> Boxes:
        """The input ranges of a network in each box; adds to the (n, free and digits) `spread`."""
        proof, free = self._proof, self._proof._free
        by_free = reading.by_moves[:, free]
        middle, half = 0.5 * (cells.low + cells.high), 0.5 * (cells.high - cells.low)
        at = reading.at_rest[self._which[cells.owner]]
        centre, around = at + middle @ by_free.T, half @ by_free.abs().T
        size = at.abs() + torch.maximum(cells.low.abs(), cells.high.abs()) @ by_free.abs().T
        low, high = centre - around, centre + around
        width = cells.high - cells.low
        width = torch.where(width > reading.narrow, width, 0.0)
        spread[:, : len(free)] += width * (reading.weight @ by_free.abs())
        for d, (digit, span) in enumerate(zip(proof._digits, proof._spans, strict=True)):
            given = (self._values[d] @ reading.by_moves[:, digit.columns].T)[cells.owner]
            there = cells.left[:, span, None]
            least = torch.where(there, given, torch.inf).amin(dim=1)
            most = torch.where(there, given, -torch.inf).amax(dim=1)
            several = there.sum(dim=1) > 1
            spread[:, len(free) + d] += (
                torch.where(several, most - least, 0.0).clamp(min=0.0) @ reading.weight
            )
            spread[:, len(free) + d] += several[:, 0] * torch.finfo(torch.float64).tiny
            low, high = low + least, high + most
            size = size + given.abs().amax(dim=1)
        noise = gamma(proof._operations) * size
        return Boxes(low - noise, high + noise)

    def _least(self, cells: _Cells, forms: _Forms) -> tuple[Tensor, Tensor]:
        """(n, S) least values of forms, and (n, k) moves where the first one is least."""
        free, low, high = self._proof._free, cells.low, cells.high
        moves, value = low.new_zeros((len(low), self._k)), forms.constant
        if len(free):
            ends = torch.stack([low, high, torch.minimum(low.clamp(min=0.0), high)], dim=1)
            terms = forms.terms(ends, free)
            value = value + terms.amin(dim=2).sum(dim=2)
            moves[:, free] = ends.gather(1, terms[:, 0].argmin(dim=1, keepdim=True))[:, 0]
        for d, (digit, span) in enumerate(zip(self._proof._digits, self._proof._spans, strict=True)):
            levels = self._values[d][cells.owner]
            of_levels = forms.terms(levels, digit.columns).sum(dim=3)
            of_levels = torch.where(cells.left[:, None, span], of_levels, torch.inf)
            value = value + of_levels.amin(dim=2)
            best = of_levels[:, 0].argmin(dim=1)
            moves[:, digit.columns] = levels[torch.arange(len(levels), device=best.device), best]
        return value, moves

    def _try(self, owner: Tensor, moves: Tensor) -> None:
        """Keep the points that improve the best ones and satisfy their conditions."""
        proof = self._proof
        moves = torch.where(proof._data.whole, moves.round(), moves)
        outputs = proof._networks.values(self._which[owner], moves)
        for reading in proof._readings:
            if reading.classifies:
                outputs[:, reading.outputs] = reading.classes(outputs[:, reading.outputs])
        met = (self._on_moves[owner] @ moves[..., None] + self._on_outputs[owner] @ outputs[..., None])[
            ..., 0
        ]
        cost = (self._cost[owner] * proof._data.parts(moves, outputs)).sum(dim=1)
        cost = torch.where((met >= self._asked[owner]).all(dim=1), cost, torch.inf)
        self.best.scatter_reduce_(0, owner, cost, "amin")
        mine = (cost <= self.best[owner]) & (cost < self._known[owner])
        self.point[owner[mine]] = moves[mine]

    def _halved(self, cells: _Cells, spread: Tensor) -> list[_Cells]:
        """Both halves of each box, divided where the spread is largest."""
        if not len(cells.owner):
            return []
        proof, count = self._proof, len(self._proof._free)
        choice = spread.argmax(dim=1)
        one_high, other_low = cells.high.clone(), cells.low.clone()
        mine = (choice < count).nonzero().ravel()
        j = choice[mine]
        middle = 0.5 * (cells.low[mine, j] + cells.high[mine, j])
        whole = proof._whole[j] if count else mine.bool()
        one_high[mine, j] = torch.where(whole, middle.floor(), middle)
        other_low[mine, j] = torch.where(whole, middle.floor() + 1.0, middle)
        one_left, other_left = cells.left.clone(), cells.left.clone()
        for d, span in enumerate([*proof._spans, *proof._class_spans]):
            mine = (choice == count + d).nonzero().ravel()
            there = cells.left[mine, span]
            first = there.cumsum(dim=1) <= there.sum(dim=1, keepdim=True) // 2
            one_left[mine, span], other_left[mine, span] = there & first, there & ~first
        return [replace(cells, high=one_high, left=one_left), replace(cells, low=other_low, left=other_left)]


@dataclass(frozen=True, eq=False)
class _ClassConditions:
    """The classes that are possible in boxes, and what a box with one remaining class asks: forms of moves
    that are at most 0 wherever the network gives the class."""

    possible: Tensor
    """(n, classes)."""
    differ: Tensor
    """(n,) whether several classes are possible and their costs differ."""
    slopes: Tensor
    """(n, C, k); 0 where several classes remain."""
    steep: Tensor
    constant: Tensor
    """(n, C); minus 1 where several classes remain."""
    size: Tensor


@dataclass(frozen=True, eq=False)
class _FormBounds:
    """Lower bounds of S forms in a network's outputs: slopes of moves, and a constant."""

    slopes: Tensor
    steep: Tensor
    """(n, S, k) absolute terms of the slopes."""
    constant: Tensor
    size: Tensor
    """(n, S) absolute terms of the constant."""
    most: Tensor
    """(n, q) the largest absolute output."""
    classes: _ClassConditions | None = None


class _ReadingTrees:
    """One tree ensemble of the blocks, as deployed, by the leaves that a box reaches. Boxes are enlarged by
    the tolerance of the check, because trees jump at cuts."""

    def __init__(
        self, block: Block, reading: NetworkReading, rest: Tensor, ensemble: TreeEnsemble, device: str
    ) -> None:
        self.outputs, self.classifies = torch.as_tensor(reading.outputs, device=device), block.classifies
        self._block, self._ensemble, self._device = block, ensemble, device
        self.at_rest, self.by_moves = rest.double(), uploaded(reading.by_moves, device)
        self._off = TOLERANCE * (reading.by_moves != 0.0).any(axis=1) + 16 * UNIT * reading.size
        spans = [np.ptp(cuts) if len(cuts) else 0.0 for cuts in ensemble.cuts]
        counts = [len(cuts) for cuts in ensemble.cuts]
        weight = np.array(counts) / np.where(np.array(spans) > 0.0, spans, 1.0)
        self.weight = torch.as_tensor(weight, device=device)
        """(d,) approximate weight of each input: cuts by length."""
        self.narrow = 2.0 * TOLERANCE
        """Boxes narrower than this are not divided."""
        self._leaves = _Leaves.of(ensemble)
        self.classes_to_divide = 0

    def below(self, which: Tensor, box: Boxes, rows: Tensor, left: Tensor) -> _FormBounds:
        """Lower bounds as in `_ReadingPlanes.below`, with slopes 0."""
        lower, upper = box.lower.cpu().numpy() - self._off, box.upper.cpu().numpy() + self._off
        some = max(1, LEAVES // self._leaves.size)
        found = [self._ranges(lower[i : i + some], upper[i : i + some]) for i in range(0, len(lower), some)]
        low, high = (
            torch.as_tensor(np.concatenate(of), device=self._device) for of in zip(*found, strict=True)
        )
        nothing = rows.new_zeros((*rows.shape[:2], self.by_moves.shape[1]))
        if not self.classifies:
            least = torch.minimum(rows * low[:, None], rows * high[:, None]).sum(dim=2)
            most = torch.maximum(low.abs(), high.abs())
            return _FormBounds(nothing, nothing, least, (rows.abs() * most[:, None]).sum(dim=2), most)
        if len(self.outputs) == 1:
            possible = torch.cat([low < self._block.threshold, high >= self._block.threshold], dim=1)
            costs = torch.cat([torch.zeros_like(rows), rows], dim=2)
        else:
            possible, costs = high >= low.amax(dim=1, keepdim=True), rows
        value = torch.where(possible[:, None], costs, torch.inf).amin(dim=2)
        return _FormBounds(nothing, nothing, value, costs.abs().amax(dim=2), torch.ones_like(rows[:, 0]))

    def _ranges(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, outputs) output ranges of boxes, rounding included."""
        ends = self._leaves.ends(lower, upper)
        return self._ensemble.output_range(*(self._ensemble.summed(end) for end in ends))

    def classes(self, values: Tensor) -> Tensor:
        """The classes of decision values."""
        return _classes(values)


@dataclass(frozen=True, eq=False)
class _Leaves:
    """The leaves of all trees with their boxes. Limits are numbers among the cuts of their feature, stored
    in the smallest integer type, which makes comparisons fast."""

    cuts: tuple[FloatArray, ...]
    """The sorted cuts of each feature."""
    low: IntArray
    """(outputs, features, trees, leaves) the cut that a leaf lies above; -1 for none. The leaves of a tree
    are in the order of their values; places without a leaf are never reached."""
    high: IntArray
    """The cut that a leaf does not lie above."""
    value: FloatArray
    """(outputs, trees, leaves) the values of the leaves."""

    @classmethod
    def of(cls, ensemble: TreeEnsemble) -> _Leaves:
        """The leaves of an ensemble."""
        low = np.full((len(ensemble.feature), ensemble.features), -np.inf)
        high, level = -low, ensemble.roots
        while level.size:
            level = level[~ensemble.is_leaf[level]]
            left, right, feature = ensemble.left[level], ensemble.right[level], ensemble.feature[level]
            for child in (left, right):
                low[child], high[child] = low[level], high[level]
            at = ensemble.threshold[level]
            high[left, feature] = np.minimum(high[left, feature], at)
            low[right, feature] = np.maximum(low[right, feature], at)
            level = np.concatenate([left, right])
        cuts = ensemble.cuts
        leaves = np.flatnonzero(ensemble.is_leaf)
        places = np.bincount(ensemble.tree_of[leaves], minlength=ensemble.trees).max()
        shape = ensemble.value.shape[1], ensemble.trees, places
        below = np.full((shape[0], ensemble.features, *shape[1:]), max(map(len, cuts), default=0) + 1)
        above, value = np.full_like(below, -1), np.zeros(shape)
        for output in range(shape[0]):
            order = leaves[np.lexsort((ensemble.value[leaves, output], ensemble.tree_of[leaves]))]
            tree = ensemble.tree_of[order]
            place = np.arange(len(order)) - np.searchsorted(tree, tree)
            value[output, tree, place] = ensemble.value[order, output]
            for j, at in enumerate(cuts):
                below[output, j, tree, place] = np.where(
                    low[order, j] > -np.inf, np.searchsorted(at, low[order, j]), -1
                )
                above[output, j, tree, place] = np.searchsorted(at, high[order, j])
        short = np.min_scalar_type(-int(below.max(initial=1)) - 1)
        return cls(cuts, below.astype(short), above.astype(short), value)

    @property
    def size(self) -> int:
        """Number of places for leaves, over all trees."""
        return max(1, int(self.value[0].size))

    def ends(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, trees, outputs) the least and the largest value of the leaves that boxes reach."""
        sides = [
            [np.searchsorted(at, side[:, j]).astype(self.low.dtype)[:, None, None] for side in (lower, upper)]
            for j, at in enumerate(self.cuts)
        ]
        least, most = [], []
        for low, high, value in zip(self.low, self.high, self.value, strict=True):
            reached = np.ones((len(lower), *value.shape), dtype=bool)
            for (first, last), below, above in zip(sides, low, high, strict=True):
                reached &= first <= above
                reached &= last > below
            tree = np.arange(len(value))
            least.append(value[tree, reached.argmax(axis=2)])
            most.append(value[tree, -1 - reached[:, :, ::-1].argmax(axis=2)])
        return np.stack(least, axis=2), np.stack(most, axis=2)


def _reading(
    block: Block, reading: NetworkReading, rest: Tensor, program: MoveProgram, device: str
) -> _ReadingPlanes | _ReadingTrees:
    trees = block.description.trees
    if trees is None:
        return _ReadingPlanes(block, reading, rest, program, device)
    return _ReadingTrees(block, reading, rest, trees(), device)


def _classes(values: Tensor) -> Tensor:
    if values.shape[1] == 1:
        return (values >= 0.0).to(values)
    return torch.nn.functional.one_hot(values.argmax(dim=1), values.shape[1]).to(values)


class _ReadingPlanes:
    """One network of the blocks, as deployed."""

    def __init__(
        self, block: Block, reading: NetworkReading, rest: Tensor, program: MoveProgram, device: str
    ) -> None:
        d, q = reading.by_moves.shape[0], len(reading.outputs)
        self.outputs, self.classifies = torch.as_tensor(reading.outputs, device=device), block.classifies
        some = slice(None, None, max(1, program.count // PROBED))
        reach = np.minimum(
            np.maximum(np.abs(program.lower[some]), np.abs(program.upper[some])), 4.0 * program.scale
        )
        around = reach @ np.abs(reading.by_moves).T
        low, high = (reading.at_rest[some] - around).min(axis=0), (reading.at_rest[some] + around).max(axis=0)
        free = np.full(q, np.inf)
        mip = Mip(np.zeros(d + q), lower=np.append(low, -free), upper=np.append(high, free))
        alone = replace(block, inputs=np.arange(d)[None], outputs=d + np.arange(q)[None])
        graph = required_graph(Problem(mip), alone)
        steps = None if block.classifies and q > 1 else block_steps(alone, graph)
        self._planes, self._block, self._device = NetworkPlanes(graph, device, steps), alone, device
        self.at_rest, self.by_moves = rest.double(), uploaded(reading.by_moves, device)
        self._rough = gamma(16) * torch.as_tensor(reading.size, device=device)
        first = graph.steps[0].operation
        weight = np.abs(first.weights[0]).sum(axis=0) if isinstance(first, Affine) else np.ones(d)
        self.weight = torch.as_tensor(weight, device=device)
        """(d,) approximate weight of each input."""
        self.narrow = 0.0
        self.classes_to_divide = max(2, q) if self.classifies else 0

    def below(self, which: Tensor, box: Boxes, rows: Tensor, left: Tensor) -> _FormBounds:
        """Lower bounds of (n, S, q) forms of its outputs over boxes of its inputs with (n, classes) left."""
        planes, off = self._planes, self._rough.expand(len(which), -1)
        if (deployed := planes.deployed) is not None:
            rate, more = (
                torch.as_tensor(of[0], device=self._device) for of in (deployed.rate, deployed.more)
            )
            off = off + torch.maximum(box.lower.abs(), box.upper.abs()) * rate + more
        box = Boxes(box.lower - off, box.upper + off)
        if deployed is not None:
            slack = torch.as_tensor(tie_slack(self._block), device=self._device).expand(len(which), -1)
        else:
            low, high = box.lower.cpu().numpy(), box.upper.cpu().numpy()
            slack = torch.as_tensor(block_slack(self._block, low, high), device=self._device)
        ranges = planes.ranges(box)
        if self.classifies:
            return self._of_classes(which, box, ranges, rows, slack, off, left)
        found = planes.planes(rows, ranges)
        at = self.at_rest[which]
        constant = found.offset + (found.slopes @ at[..., None])[..., 0]
        steep = found.slopes.abs()
        slip = (steep @ off[..., None] + rows.abs() @ slack[..., None])[..., 0]
        size = found.offset.abs() + (steep @ at.abs()[..., None])[..., 0] + slip
        most = ranges.size(len(planes.graph.steps)) + slack
        return _FormBounds(
            found.slopes @ self.by_moves, steep @ self.by_moves.abs(), constant - slip, size, most
        )

    def _of_classes(
        self,
        which: Tensor,
        box: Boxes,
        ranges: Ranges,
        rows: Tensor,
        slack: Tensor,
        off: Tensor,
        left: Tensor,
    ) -> _FormBounds:
        """Lower bounds over the classes that remain and are possible in a box."""
        planes, q, n = self._planes, len(self.outputs), len(rows)
        one = torch.eye(planes.graph.outputs, dtype=torch.float64, device=rows.device)
        if q == 1:  # class 0: the logit is at most 0, class 1: its negative is
            pairs, slack = torch.cat([one, -one])[:, None], slack[:, [1, 0], None]
            costs = torch.cat([torch.zeros_like(rows), rows], dim=2)
        else:  # class k: logit j less logit k is at most 0 for every j
            pairs, slack, costs = one[None] - one[:, None], slack.view(n, q, q), rows
        found = planes.planes(pairs.flatten(0, 1), ranges)
        least = box.minimum(found.slopes, found.offset).view(slack.shape)
        possible = (least <= slack).all(dim=2)
        possible = (possible | torch.isnan(least).flatten(1).any(dim=1, keepdim=True)) & left
        value = torch.where(possible[:, None], costs, torch.inf).amin(dim=2)
        dearest = torch.where(possible[:, None], costs, -torch.inf).amax(dim=2)
        alone = possible.sum(dim=1) == 1
        every, given = torch.arange(n, device=rows.device), possible.to(torch.uint8).argmax(dim=1)
        slopes = torch.where(
            alone[:, None, None], found.slopes.view(n, *pairs.shape[:2], -1)[every, given], 0.0
        )
        offset = found.offset.view(n, *pairs.shape[:2])[every, given]
        at, steep = self.at_rest[which], slopes.abs()
        slip = (steep @ off[..., None])[..., 0] + slack[every, given]
        constant = offset + (slopes @ at[..., None])[..., 0] - slip
        size = offset.abs() + (steep @ at.abs()[..., None])[..., 0] + slip
        classes = _ClassConditions(
            possible, (dearest > value).any(dim=1), slopes @ self.by_moves, steep @ self.by_moves.abs(),
            torch.where(alone[:, None], constant, -1.0), size,
        )  # fmt: skip
        nothing = rows.new_zeros((*rows.shape[:2], self.by_moves.shape[1]))
        size, most = costs.abs().amax(dim=2), torch.ones_like(rows[:, 0])
        return _FormBounds(nothing, nothing, value, size, most, classes)

    def classes(self, values: Tensor) -> Tensor:
        """The classes of decision values."""
        return _classes(values)
