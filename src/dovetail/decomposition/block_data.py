"""The data of block programs as tensors: costs at given prices, use of the coupling constraints, own
constraints.

Tensors have one row per block, or one per descent. Where all rows are equal, one row is stored and expanded:
the first stride is 0, and the length is still the number of rows. The stride, not the length, shows whether
rows are repeated, so that a batch of a single row needs no special case.
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
"""Largest number of combinations of classes that are searched one by one."""
CLEARANCE = 2e-4
"""Distance of a logit from its threshold that descents aim at, in units of the spread of logits between
blocks; float32 is more exact."""
FLOAT_ROOM = 2e-6
"""Relative: margin with which conditions on outputs must hold, because float32 has seven digits. Conditions
on moves alone have no margin: "at most one channel" has no slack."""
SLIP = 0.5
"""Fraction of the margin by which a step may miss its condition: a step aims at the border itself, and
rounding would reject every other step along which the network is linear. (Water, 6x128, n = 10,000: 0.08 %
more.)"""
MISS = 0.1
"""Fraction of the margin by which float32 may violate a condition on moves alone; float64 and the tolerance
of the check decide later."""


@dataclass(frozen=True, eq=False)
class Target:
    """One class for every class output, with its conditions: on_values v + on_moves m >= least. Arrays have
    one row per block, a repeated one (see `repeated`) if all blocks have the same."""

    classes: Tensor
    """(q,) 0 or 1; 0 for outputs that are numbers."""
    on_values: Tensor
    """(N, C, q)."""
    on_moves: Tensor
    """(N, C, k)."""
    least: Tensor
    """(N, C)."""
    slip: Tensor
    """(N, C) tolerance of the conditions."""
    asks_moves: bool
    """Whether any condition is on moves."""


class BlockData:
    """The arrays of a template on a device, in the precision of the search; rows shared by all blocks are
    repeated (see `repeated`)."""

    dtype = torch.float32

    def __init__(self, program: MoveProgram, blocks: list[Block], device: str) -> None:
        self.device = device
        self.count, self.coordinates = program.count, program.coordinates
        self.lower, self.upper = self._tensor(program.lower), self._tensor(program.upper)
        self.whole = torch.as_tensor(program.whole, device=device)
        self.true_limits = self._exact(program.lower), self._exact(program.upper)
        """The moves in float64."""
        self.cost = self._tensor(program.cost)
        """(N, parts)."""
        self.use = self._tensor(program.use)
        self._true_use, self._true_cost = self._exact(program.use), self._exact(program.cost)
        """The stated limits in float64, for the use and cost of solutions."""
        self.true_conditions = tuple(
            self._exact(array) for array in (program.on_moves, program.on_outputs, program.least)
        )
        """(N, C, k) on moves, (N, C, q) on outputs, (N, C) least, in float64."""
        self.use_side = torch.as_tensor(program.use_side, device=device)
        self.use_part = torch.as_tensor(program.use_part, device=device)
        self.sides = program.sides.count
        self._side_by_side = np.array_equal(program.use_side, np.arange(self.sides))
        self.scale = torch.as_tensor(program.scale, dtype=self.dtype, device=device)
        """(k,) the typical size of a move in each coordinate."""
        self.classifies = torch.zeros(len(program.output_columns), dtype=torch.bool, device=device)
        self.class_groups = []
        for reading in program.networks:
            if blocks[reading.block].classifies:
                self.classifies[reading.outputs] = True
                self.class_groups.append(reading.outputs)
        self._program, self._blocks = program, blocks

    def _tensor(self, array: FloatArray) -> Tensor:
        """(N, ...) with one row per block, or one stored row for all if they are equal."""
        rows = torch.as_tensor(np.array(one_row(array)), dtype=self.dtype, device=self.device)
        return repeated(rows, self.count)

    def _exact(self, array: FloatArray) -> Tensor:
        """The same in float64, without a copy if possible."""
        rows = np.require(one_row(array), requirements="W")
        return repeated(torch.as_tensor(rows, device=self.device), self.count)

    def zeros(self, *shape: int) -> Tensor:
        """Zeros in the precision of the search."""
        return torch.zeros(shape, dtype=self.dtype, device=self.device)

    def part_costs(self, which: Tensor, prices: Tensor) -> Tensor:
        """(n, parts) the cost of one unit of each part at (R,) prices."""
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
        """(n, R) sums of entries by side."""
        if self._side_by_side:
            return taken
        return taken.new_zeros((len(taken), self.sides)).index_add_(1, self.use_side, taken)

    def true_uses(self, which: Tensor, parts: Tensor) -> Tensor:
        """The same in float64, from parts in float64."""
        return self._by_side(of(self._true_use, which) * parts[:, self.use_part])

    def true_costs(self, which: Tensor, parts: Tensor) -> Tensor:
        """(n,) in float64."""
        return (of(self._true_cost, which) * parts).sum(dim=1)

    def true_uses_of_parts(self, which: Tensor) -> Tensor:
        """(n, R, parts) the use of coupling rows by one unit of each part, in float64."""
        use, parts = of(self._true_use, which), self.cost.shape[1]
        uses = use.new_zeros((len(use), self.sides * parts))
        return uses.index_add_(1, self.use_side * parts + self.use_part, use).view(
            len(use), self.sides, parts
        )

    def within(self, which: Tensor, moves: Tensor) -> Tensor:
        """Moves in float64 clipped to their limits, which float32 may exceed in the last digit."""
        lower, upper = (of(limit, which) for limit in self.true_limits)
        return torch.minimum(torch.maximum(moves.double(), lower), upper)

    def costs(self, which: Tensor, parts: Tensor) -> Tensor:
        """(n,) in minimisation form, without prices."""
        return (of(self.cost, which) * parts).sum(dim=1)

    def targets(self, spread: Tensor) -> list[Target]:
        """All combinations of classes; `spread` (q,) is the typical spread of decision values."""
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
        """Combinations of decision values that must be nonnegative."""
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
    """Conditions with data for each block, followed by conditions that are equal for all blocks."""
    return np.concatenate([one, np.broadcast_to(other, (len(one), *other.shape[1:]))], axis=1)


def repeated(rows: Tensor, count: int) -> Tensor:
    """A tensor of `count` rows, stored as one row if all are equal."""
    return rows if rows.shape[0] == count else rows.expand(count, *rows.shape[1:])


def is_repeated(array: Tensor) -> bool:
    """Whether one row is stored for all."""
    return array.stride(0) == 0 and array.shape[0] > 0


def stored(array: Tensor) -> Tensor:
    """The one stored row, or all rows; broadcasts to the original."""
    return array[:1] if is_repeated(array) else array


def of(array: Tensor, which: Tensor) -> Tensor:
    """The rows with these numbers; a repeated row stays repeated."""
    if not is_repeated(array):
        return array[which]
    count = which.shape[0]
    return array[:count] if count <= array.shape[0] else repeated(array[:1], count)
