"""Rows of a descent: what stays the same in all steps, where each row stands, and those that still go on.

Half of all steps are taken back, and many rows have nothing left to win after some: slopes are asked for only
where a step was kept, and rows that are done leave the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from dovetail.decomposition.block_data import is_repeated, of, repeated

LEAVING = 0.125
"""Part of a batch that leaves it at once: the others are copied then."""
Slopes = Callable[[Tensor | None], tuple[Tensor, Tensor | None]]
"""Numbers of rows (None: all) -> (m, k) slopes of their kept conditions, and of their outputs' cost if that
varies."""


@dataclass(frozen=True, eq=False)
class DescentRows:
    """What stays the same in all steps of a descent: arrays with n rows, repeated ones (see
    `repeated`) where all descents have the same."""

    rests: list[Tensor]
    """What networks read of blocks at rest."""
    lower: Tensor
    upper: Tensor
    right: Tensor
    left: Tensor
    """(n, k) what a move costs on either side of 0."""
    of_numbers: Tensor
    """(n, q) what outputs that are numbers cost; 0 for classes."""
    fixed: Tensor
    """(n,) what the classes that are aimed at cost, and what does not depend on anything."""
    on_values: Tensor
    on_moves: Tensor | None
    least: Tensor
    slip: Tensor
    """(n, C) see `Target`."""
    some_free: bool
    """Whether a move to some side costs less than nothing."""

    def __post_init__(self) -> None:
        count = self.rests[0].shape[0]
        for name, one in vars(self).items():
            if isinstance(one, Tensor) and one.shape[0] != count:  # one row for all, or an error
                object.__setattr__(self, name, repeated(one, count))

    def some(self, which: Tensor) -> DescentRows:
        """Those of some rows."""
        fields = vars(self).items()
        arrays: dict[str, Any] = {name: of(one, which) for name, one in fields if isinstance(one, Tensor)}
        return replace(self, rests=[of(rest, which) for rest in self.rests], **arrays)

    def price(self, moves: Tensor) -> Tensor:
        """(n,) what moves cost, without outputs."""
        up, down = moves.clamp(min=0.0), moves.clamp(max=0.0)
        if is_repeated(self.right):
            return up @ self.right[0] - down @ self.left[0]
        return (up * self.right - down * self.left).sum(dim=1)


@dataclass(eq=False)
class Stand:
    """What rows are at some moves."""

    moves: Tensor
    outputs: Tensor | None
    """(n, q); None where all are classes, which are those that are aimed at."""
    spent: Tensor
    """(n,) what the moves alone cost."""
    cost: Tensor
    lack: Tensor
    """How much conditions are missed by, in all; 0 where they are met."""
    short: Tensor
    """(n,) what the kept condition lacks; negative where it has room."""


@dataclass(eq=False)
class Looked(Stand):
    """With a way to the slopes of those rows that stay there."""

    slopes: Slopes


@dataclass(eq=False)
class DescentState(Stand):
    """Where each row has got to, and the networks to first order there."""

    gain: Tensor
    """(n, k) slope of the kept condition."""
    slope: Tensor | None
    """(n, k) slope of the cost of outputs."""

    @classmethod
    def at(cls, new: Looked, *, slopes: bool) -> DescentState:
        """Where rows begin; without `slopes` they also end there."""
        gain, slope = new.slopes(None) if slopes else (new.moves, None)
        return cls(new.moves, new.outputs, new.spent, new.cost, new.lack, new.short, gain, slope)

    def update(self, new: Looked, kept: Tensor, *, slopes: bool) -> None:
        """Take over rows; after the last step nobody asks for `slopes`."""
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
        """(n,) what a step to a goal saves to first order, where so much is spent; infinite where conditions
        are missed still. Within a smaller region it saves no more.
        """
        saved = self.spent - spent
        if self.slope is not None:
            saved = saved + (self.slope * (self.moves - goal)).sum(dim=1)
        return torch.where(self.lack > 0.0, torch.inf, saved)

    def some(self, which: Tensor) -> DescentState:
        """That of some rows."""
        return DescentState(
            self.moves[which], None if self.outputs is None else self.outputs[which],
            self.spent[which], self.cost[which], self.lack[which], self.short[which], self.gain[which],
            None if self.slope is None else self.slope[which],
        )  # fmt: skip


class Batch:
    """Rows that still go on, and where the others ended."""

    def __init__(self, rows: DescentRows, state: DescentState, radius: Tensor) -> None:
        self.rows, self.state, self.radius = rows, state, radius
        self._whole, self._at = (state, radius), torch.arange(len(radius), device=radius.device)

    def leave(self, done: Tensor) -> Tensor | None:
        """Numbers of rows that go on without those that are done; None while these are too few to matter."""
        going = (~done).nonzero().ravel()
        if len(going) > (1.0 - LEAVING) * len(done):
            return None
        self._whole, self._at = self.end(), self._at[going]
        self.rows, self.state = self.rows.some(going), self.state.some(going)
        self.radius = self.radius[going]
        return going

    def end(self) -> tuple[DescentState, Tensor]:
        """Of all rows: where they are, and their trust regions."""
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
