"""The rows of a batch of descents: constant data, current positions, and which rows continue.

Half of all steps are rejected, and many rows soon cannot improve any further: slopes are computed only after
an accepted step, and finished rows leave the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from dovetail.decomposition.block_data import is_repeated, of, repeated

LEAVING = 0.125
"""Fraction of a batch that leaves at once, because the others are copied then."""
Slopes = Callable[[Tensor | None], tuple[Tensor, Tensor | None]]
"""Numbers of rows (None: all) -> (m, k) slopes of their active conditions, and of their outputs' cost if
that varies."""


@dataclass(frozen=True, eq=False)
class DescentRows:
    """The constant data of descents: arrays with n rows, repeated ones (see `repeated`) if all are equal."""

    rests: list[Tensor]
    """The inputs of networks at rest."""
    lower: Tensor
    upper: Tensor
    right: Tensor
    left: Tensor
    """(n, k) the cost of a move on either side of 0."""
    of_numbers: Tensor
    """(n, q) the cost of numeric outputs; 0 for classes."""
    fixed: Tensor
    """(n,) the cost of the classes aimed at, and constant costs."""
    on_values: Tensor
    on_moves: Tensor | None
    least: Tensor
    slip: Tensor
    """(n, C) tolerance of conditions (see `Target`)."""
    some_free: bool
    """Whether a move to some side has a negative cost."""

    def __post_init__(self) -> None:
        count = self.rests[0].shape[0]
        for name, one in vars(self).items():
            if isinstance(one, Tensor) and one.shape[0] != count:  # one row for all, or an error
                object.__setattr__(self, name, repeated(one, count))

    def some(self, which: Tensor) -> DescentRows:
        """The data of some rows."""
        fields = vars(self).items()
        arrays: dict[str, Any] = {name: of(one, which) for name, one in fields if isinstance(one, Tensor)}
        return replace(self, rests=[of(rest, which) for rest in self.rests], **arrays)

    def price(self, moves: Tensor) -> Tensor:
        """(n,) the cost of moves, without outputs."""
        up, down = moves.clamp(min=0.0), moves.clamp(max=0.0)
        if is_repeated(self.right):
            return up @ self.right[0] - down @ self.left[0]
        return (up * self.right - down * self.left).sum(dim=1)


@dataclass(eq=False)
class RowValues:
    """The values of rows at some moves."""

    moves: Tensor
    outputs: Tensor | None
    """(n, q) outputs; None if all are the classes aimed at."""
    spent: Tensor
    """(n,) the cost of the moves alone."""
    cost: Tensor
    lack: Tensor
    """Total violation of conditions; 0 if satisfied."""
    short: Tensor
    """(n,) violation of the active condition; negative with slack."""


@dataclass(eq=False)
class RowValuesAndSlopes(RowValues):
    """Values with a function for the slopes of the rows that stay there."""

    slopes: Slopes


@dataclass(eq=False)
class DescentState(RowValues):
    """The current position of each row, and the networks to first order there."""

    gain: Tensor
    """(n, k) slope of the active condition."""
    slope: Tensor | None
    """(n, k) slope of the cost of outputs."""

    @classmethod
    def at(cls, new: RowValuesAndSlopes, *, slopes: bool) -> DescentState:
        """The initial state; without `slopes` the rows take no further step."""
        gain, slope = new.slopes(None) if slopes else (new.moves, None)
        return cls(new.moves, new.outputs, new.spent, new.cost, new.lack, new.short, gain, slope)

    def update(self, new: RowValuesAndSlopes, kept: Tensor, *, slopes: bool) -> None:
        """Move rows to new positions; after the last step no `slopes` are needed."""
        column = kept[:, None]
        self.moves = torch.where(column, new.moves, self.moves)
        if self.outputs is not None and new.outputs is not None:
            self.outputs = torch.where(column, new.outputs, self.outputs)
        self.spent = torch.where(kept, new.spent, self.spent)
        self.cost = torch.where(kept, new.cost, self.cost)
        self.lack = torch.where(kept, new.lack, self.lack)
        self.short = torch.where(kept, new.short, self.short)
        if slopes:
            which = kept.nonzero().ravel()
            gain, slope = new.slopes(which)
            self.gain.index_copy_(0, which, gain)
            if self.slope is not None and slope is not None:
                self.slope.index_copy_(0, which, slope)

    def promise(self, goal: Tensor, spent: Tensor) -> Tensor:
        """(n,) the first-order gain of a step to a goal; infinite while conditions are violated."""
        saved = self.spent - spent
        if self.slope is not None:
            saved = saved + (self.slope * (self.moves - goal)).sum(dim=1)
        return torch.where(self.lack > 0.0, torch.inf, saved)

    def some(self, which: Tensor) -> DescentState:
        """The state of some rows."""
        return DescentState(
            self.moves[which], None if self.outputs is None else self.outputs[which],
            self.spent[which], self.cost[which], self.lack[which], self.short[which], self.gain[which],
            None if self.slope is None else self.slope[which],
        )  # fmt: skip


class Batch:
    """The rows that continue, and the end of the others."""

    def __init__(self, rows: DescentRows, state: DescentState, radius: Tensor) -> None:
        self.rows, self.state, self.radius = rows, state, radius
        self._whole, self._at = (state, radius), torch.arange(len(radius), device=radius.device)

    def leave(self, done: Tensor) -> Tensor | None:
        """Numbers of the rows that continue when finished ones leave; None while these are few."""
        going = (~done).nonzero().ravel()
        if len(going) > (1.0 - LEAVING) * len(done):
            return None
        self._whole, self._at = self.end(), self._at[going]
        self.rows, self.state = self.rows.some(going), self.state.some(going)
        self.radius = self.radius[going]
        return going

    def end(self) -> tuple[DescentState, Tensor]:
        """The positions and trust regions of all rows."""
        (whole, radius), now, at = self._whole, self.state, self._at
        if len(at) == len(radius):
            return now, self.radius
        outputs = None
        if whole.outputs is not None and now.outputs is not None:
            outputs = whole.outputs.index_copy(0, at, now.outputs)
        ended = replace(
            whole, moves=whole.moves.index_copy(0, at, now.moves), outputs=outputs,
            cost=whole.cost.index_copy(0, at, now.cost), lack=whole.lack.index_copy(0, at, now.lack),
        )  # fmt: skip
        return ended, radius.index_copy(0, at, self.radius)
