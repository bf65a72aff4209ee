"""A block program as tensors: what blocks cost at prices, use of the coupling rows, and must satisfy.

Tensors have one row per block, or per descent. Where all rows are the same, one is stored and expanded: its
first stride is 0, and its length is still the number of rows. The stride, never the length, says whether rows
are repeated: a batch that has shrunk to one row is no special case.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.decomposition.move_program import MoveProgram, one_row

MOST_TARGETS = 8
"""Combinations of classes that are aimed at, one by one: each costs as much as all blocks without classes."""
CLEARANCE = 2e-4
"""Of a logit beyond its threshold, in units of how logits differ between blocks: float32 is off by less."""
FLOAT_ROOM = 2e-6
"""Relative: conditions on outputs are met with so much to spare, since float32 has seven digits. Conditions
on moves alone are not: at "at most one channel" nobody has anything to spare."""
SLIP = 0.5
"""Part of what is to spare that a step may fall short of: it aims at the border itself, and rounding would
take back every other step that a network is linear along. (Water, 6x128, n = 10,000: columns allow 0.08 %
more.)"""
MISS = 0.1
"""Part of that room by which float32 may miss a condition on moves alone: what it means is looked at in
float64, where the check's tolerance decides."""


@dataclass(frozen=True, eq=False)
class Target:
    """One class for every class output, and what holds then: on_values v + on_moves m >= least.

    Arrays have one row per block, a repeated one (see `repeated`) where all blocks have the same.
    """

    classes: Tensor
    """(q,) 0 or 1; 0 for numbers."""
    on_values: Tensor
    """(N, C, q)."""
    on_moves: Tensor
    """(N, C, k)."""
    least: Tensor
    """(N, C)."""
    slip: Tensor
    """(N, C) how much less counts as met."""
    asks_moves: bool
    """Whether any condition is one on moves."""


class BlockData:
    """The arrays of a template on a device, in the format of the search; rows that all blocks
    have in common are repeated (see `repeated`)."""

    dtype = torch.float32

    def __init__(self, program: MoveProgram, blocks: list[Block], device: str) -> None:
        self.device = device
        self.count, self.coordinates = program.count, program.coordinates
        self.lower, self.upper = self._tensor(program.lower), self._tensor(program.upper)
        self.whole = torch.as_tensor(program.whole, device=device)
        self.true_limits = self._exact(program.lower), self._exact(program.upper)
        """Of moves, in float64."""
        self.cost = self._tensor(program.cost)
        """(N, parts)."""
        self.use = self._tensor(program.use)
        self._true_use, self._true_cost = self._exact(program.use), self._exact(program.cost)
        """As they were stated, in float64: what a point uses and costs is counted so."""
        self.true_conditions = tuple(
            self._exact(array) for array in (program.on_moves, program.on_outputs, program.least)
        )
        """(N, C, k) on moves, (N, C, q) on outputs, (N, C) least, in float64."""
        self.use_side = torch.as_tensor(program.use_side, device=device)
        self.use_part = torch.as_tensor(program.use_part, device=device)
        self.sides = program.sides.count
        self._side_by_side = np.array_equal(program.use_side, np.arange(self.sides))
        self.scale = torch.as_tensor(program.scale, dtype=self.dtype, device=device)
        """(k,) what a move of usual size is, coordinate by coordinate."""
        self.classifies = torch.zeros(len(program.output_columns), dtype=torch.bool, device=device)
        self.class_groups = []
        for reading in program.networks:
            if blocks[reading.block].classifies:
                self.classifies[reading.outputs] = True
                self.class_groups.append(reading.outputs)
        self._program, self._blocks = program, blocks

    def _tensor(self, array: FloatArray) -> Tensor:
        """(N, ...) of as many rows, or of one for all; a repeated one where all are the same."""
        rows = torch.as_tensor(np.array(one_row(array)), dtype=self.dtype, device=self.device)
        return repeated(rows, self.count)

    def _exact(self, array: FloatArray) -> Tensor:
        """The same in float64, without a copy if it can be."""
        rows = np.require(one_row(array), requirements="W")
        return repeated(torch.as_tensor(rows, device=self.device), self.count)

    def zeros(self, *shape: int) -> Tensor:
        """In the format of the search."""
        return torch.zeros(shape, dtype=self.dtype, device=self.device)

    def part_costs(self, which: Tensor, prices: Tensor) -> Tensor:
        """(n, parts) what one unit of each part costs at (R,) prices."""
        return self._part_costs(self.cost, self.use, which, prices)

    def true_part_costs(self, which: Tensor, prices: Tensor) -> Tensor:
        """The same in float64."""
        return self._part_costs(self._true_cost, self._true_use, which, prices)

    def _part_costs(self, costs: Tensor, uses: Tensor, which: Tensor, prices: Tensor) -> Tensor:
        cost, use = (stored(of(array, which)) for array in (costs, uses))
        total = cost.expand(max(len(cost), len(use)), -1).clone()
        priced = (use * prices[self.use_side]).expand(len(total), -1)
        return repeated(total.index_add_(1, self.use_part, priced), len(which))

    def parts(self, moves: Tensor, outputs: Tensor) -> Tensor:
        """(n, 2 k + q + 1)."""
        one = torch.ones_like(moves[:, :1])
        return torch.cat([moves.clamp(min=0.0), (-moves).clamp(min=0.0), outputs, one], dim=1)

    def uses(self, which: Tensor, parts: Tensor) -> Tensor:
        """(n, R) of the coupling rows."""
        return self._by_side(of(self.use, which) * parts[:, self.use_part])

    def _by_side(self, taken: Tensor) -> Tensor:
        """(n, R) of entries, added up; where each side has one, in order, there is nothing to add."""
        if self._side_by_side:
            return taken
        return taken.new_zeros((len(taken), self.sides)).index_add_(1, self.use_side, taken)

    def true_uses(self, which: Tensor, parts: Tensor) -> Tensor:
        """The same in float64, of parts in float64."""
        return self._by_side(of(self._true_use, which) * parts[:, self.use_part])

    def true_costs(self, which: Tensor, parts: Tensor) -> Tensor:
        """(n,) in float64."""
        return (of(self._true_cost, which) * parts).sum(dim=1)

    def true_uses_of_parts(self, which: Tensor) -> Tensor:
        """(n, R, parts) of the coupling rows by one unit of each part, in float64."""
        use, parts = of(self._true_use, which), self.cost.shape[1]
        uses = use.new_zeros((len(use), self.sides * parts))
        return uses.index_add_(1, self.use_side * parts + self.use_part, use).view(
            len(use), self.sides, parts
        )

    def within(self, which: Tensor, moves: Tensor) -> Tensor:
        """Moves in float64 within their limits, which float32 may be beyond by its last digit."""
        lower, upper = (of(limit, which) for limit in self.true_limits)
        return torch.minimum(torch.maximum(moves.double(), lower), upper)

    def costs(self, which: Tensor, parts: Tensor) -> Tensor:
        """(n,) in minimisation form, without prices."""
        return (of(self.cost, which) * parts).sum(dim=1)

    def targets(self, spread: Tensor) -> list[Target]:
        """All combinations of classes; `spread` (q,) is how far apart decision values usually are."""
        combinations: list[list[tuple[int, float]]] = [[]]
        for group in self.class_groups:
            one_hot = [[(int(j), float(j == hot)) for j in group] for hot in group]
            choices = one_hot if len(group) > 1 else [[(int(group[0]), 0.0)], [(int(group[0]), 1.0)]]
            combinations = [left + right for left in combinations for right in choices]
        return [self._target(dict(combination), spread) for combination in combinations[:MOST_TARGETS]]

    def _target(self, classes: dict[int, float], spread: Tensor) -> Target:
        program, q = self._program, len(self._program.output_columns)
        y = np.zeros(q)
        y[list(classes)] = list(classes.values())
        numbers = ~self.classifies.cpu().numpy()
        on_outputs, given_moves = one_row(program.on_outputs), one_row(program.on_moves)
        least = one_row(program.least) - on_outputs @ y
        room = FLOAT_ROOM * (1.0 + np.where(np.isfinite(least), np.abs(least), 0.0))
        by_outputs = np.any(on_outputs * numbers != 0.0, axis=2)
        spare, slipped = np.where(by_outputs, room, 0.0), np.where(by_outputs, SLIP * room, MISS * room)
        decided = [row for group in self.class_groups for row in self._class_rows(group, classes, q)]
        clearance = [CLEARANCE * float(spread[int(np.argmax(np.abs(row)))]) for row in decided]
        k, extra = self.coordinates, len(decided)
        clear = np.array(clearance).reshape(1, extra)
        joined = (
            (on_outputs * numbers, np.array(decided).reshape(1, extra, q)),
            (given_moves, np.zeros((1, extra, k))),
            (least + spare, clear),
            (slipped, SLIP * clear),
        )
        on_values, on_moves, limits, slip = (self._tensor(_beside(one, other)) for one, other in joined)
        aims = torch.as_tensor(y, dtype=self.dtype, device=self.device)
        return Target(aims, on_values, on_moves, limits, slip, bool(np.any(given_moves)))

    def _class_rows(self, group: np.ndarray, classes: dict[int, float], q: int) -> list[np.ndarray]:
        """Combinations of decision values that must not be negative."""
        if len(group) == 1:
            row = np.zeros(q)
            row[group[0]] = 1.0 if classes[int(group[0])] else -1.0
            return [row]
        hot = next(int(j) for j in group if classes[int(j)])
        rows = []
        for other in group:
            if other != hot:
                row = np.zeros(q)
                row[hot], row[other] = 1.0, -1.0
                rows.append(row)
        return rows


def _beside(one: FloatArray, other: FloatArray) -> FloatArray:
    """Conditions of blocks, and others that are the same for all."""
    return np.concatenate([one, np.broadcast_to(other, (len(one), *other.shape[1:]))], axis=1)


def repeated(rows: Tensor, count: int) -> Tensor:
    """`count` rows of a tensor that has as many, or one that stands for all."""
    return rows if rows.shape[0] == count else rows.expand(count, *rows.shape[1:])


def is_repeated(array: Tensor) -> bool:
    """Whether one row is stored for all."""
    return array.stride(0) == 0 and array.shape[0] > 0


def stored(array: Tensor) -> Tensor:
    """The one row that is repeated, or all rows: it broadcasts to what was given."""
    return array[:1] if is_repeated(array) else array


def of(array: Tensor, which: Tensor) -> Tensor:
    """The rows with these numbers; a repeated row stays repeated."""
    if not is_repeated(array):
        return array[which]
    count = which.shape[0]
    return array[:count] if count <= array.shape[0] else repeated(array[:1], count)
