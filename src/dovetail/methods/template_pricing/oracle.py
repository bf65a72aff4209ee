"""Pricing: all blocks at once look for their cheapest points at given prices, by sequential linear steps.

One step: the networks are linearised, the condition that is missed most (or met with least to spare) is kept,
and the block's linear program within the trust region has a closed form: every coordinate goes to where it is
cheapest, and what the condition still lacks is bought coordinate by coordinate, the cheapest per unit first
(a fractional knapsack). Steps that neither mend conditions nor save cost are taken back.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dovetail.methods.template_pricing.block_data import BlockData, Target, of
from dovetail.methods.template_pricing.networks import TemplateNetworks

GROW, SHRINK = 1.6, 0.35
"""Of the trust region after a step that was kept, or not."""
WIDEST = 4.0
"""Of the trust region in usual moves: a free move has no size."""
LEAST_SLOPE = 1e-9
"""A condition does not depend on a coordinate whose slope is less."""


@dataclass(frozen=True, eq=False)
class Found:
    """Per row: the cheapest point that meets all conditions; cost is infinite where there was none."""

    moves: Tensor
    outputs: Tensor
    cost: Tensor
    """At the prices it was looked for at."""


@dataclass(eq=False)
class _State:
    """Where each row stands, and the networks to first order there."""

    moves: Tensor
    outputs: Tensor
    cost: Tensor
    lack: Tensor
    """How much conditions are missed by, in all; 0 where they are met."""
    short: Tensor
    """(n,) what the kept condition lacks; negative where it has room."""
    gain: Tensor
    """(n, k) slope of that condition."""
    slope: Tensor | None
    """(n, k) slope of the cost of outputs."""

    def update(self, other: _State, kept: Tensor) -> None:
        """Take over rows."""
        column = kept[:, None]
        self.moves = torch.where(column, other.moves, self.moves)
        self.outputs = torch.where(column, other.outputs, self.outputs)
        self.cost = torch.where(kept, other.cost, self.cost)
        self.lack = torch.where(kept, other.lack, self.lack)
        self.short = torch.where(kept, other.short, self.short)
        self.gain = torch.where(column, other.gain, self.gain)
        if self.slope is not None and other.slope is not None:
            self.slope = torch.where(column, other.slope, self.slope)


class Oracle:
    """Descents of many rows: each a block with a start, a trust region, a target and prices of its own."""

    def __init__(self, data: BlockData, networks: TemplateNetworks, steps: int) -> None:
        self._data, self._networks, self._steps = data, networks, steps
        numbers = data.cost[:, 2 * data.coordinates : -1][:, ~data.classifies]
        coupled = data.use_part >= 2 * data.coordinates
        inputs_only = (~data.classifies).nonzero().ravel() + 2 * data.coordinates
        priced = bool(torch.isin(data.use_part[coupled], inputs_only).any())
        self.values_cost = bool((numbers != 0.0).any()) or priced
        """Whether outputs that are numbers cost anything, alone or by their use."""

    def descend(
        self, which: Tensor, start: Tensor, radius: Tensor, part_costs: Tensor, target: Target
    ) -> Found:
        """From (n, k) starts, with (n,) radii in usual moves, at (n or 1, parts) costs."""
        data, k = self._data, self._data.coordinates
        lower, upper = of(data.lower, which), of(data.upper, which)
        state = self._look(which, self._within(start, lower, upper), part_costs, target)
        best = Found(state.moves, state.outputs, torch.where(state.lack <= 0.0, state.cost, torch.inf))
        for _ in range(self._steps):
            size = radius[:, None] * data.scale
            size = torch.where(data.whole, size.round(), size)  # at last they stay, and the others go on
            low, high = torch.maximum(lower, state.moves - size), torch.minimum(upper, state.moves + size)
            right, left = part_costs[:, :k], part_costs[:, k : 2 * k]
            if state.slope is not None:
                right, left = right + state.slope, left - state.slope
            goal = _cheapest(low, high, right, left, state)
            new = self._look(which, self._within(goal, lower, upper), part_costs, target)
            kept = torch.where(
                state.lack > 0.0, new.lack < state.lack, (new.lack <= 0.0) & (new.cost < state.cost)
            )
            radius = torch.where(kept, (radius * GROW).clamp(max=WIDEST), radius * SHRINK)
            state.update(new, kept)
            better = (state.lack <= 0.0) & (state.cost < best.cost)
            best = Found(
                torch.where(better[:, None], state.moves, best.moves),
                torch.where(better[:, None], state.outputs, best.outputs),
                torch.where(better, state.cost, best.cost),
            )
        return best

    def _within(self, moves: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
        moves = torch.where(self._data.whole, moves.round(), moves)
        return torch.minimum(torch.maximum(moves, lower), upper)

    def _look(self, which: Tensor, moves: Tensor, part_costs: Tensor, target: Target) -> _State:
        data, k = self._data, self._data.coordinates
        values, pull = self._networks.linearised(which, moves)
        outputs = torch.where(data.classifies, target.classes, values)
        parts = data.parts(moves, outputs)
        cost = (part_costs * parts).sum(dim=1)
        slope = None
        if self.values_cost:
            weights = (part_costs[:, 2 * k : -1] * ~data.classifies).expand(len(moves), -1)
            slope = pull(weights)
        on_values = of(target.on_values, which)
        if on_values.shape[1] == 0:
            nothing = torch.zeros_like(cost)
            return _State(moves, outputs, cost, nothing, nothing - 1.0, torch.zeros_like(moves), slope)
        slack = (on_values * values[:, None, :]).sum(dim=2) - of(target.least, which)
        on_moves = of(target.on_moves, which)
        slack = slack + (on_moves * moves[:, None, :]).sum(dim=2)
        worst = slack.argmin(dim=1)
        rows = torch.arange(len(moves), device=moves.device)
        chosen = on_values.expand(len(moves), -1, -1)[rows, worst]
        gain = pull(chosen) + on_moves.expand(len(moves), -1, -1)[rows, worst]
        lack = (-slack).clamp(min=0.0).sum(dim=1)
        return _State(moves, outputs, cost, lack, -slack[rows, worst], gain, slope)


def _cheapest(low: Tensor, high: Tensor, right: Tensor, left: Tensor, state: _State) -> Tensor:
    """(n, k) moves between `low` and `high` at least cost that make up for what the condition lacks, to first
    order: `right` and `left` are what a move costs on either side of 0.
    """
    rest = torch.minimum(torch.maximum(low.new_zeros(()), low), high)
    base = torch.where(right < 0.0, high, torch.where(left < 0.0, low, rest))
    gain = state.gain
    missing = state.short - (gain * (base - state.moves)).sum(dim=1)
    rises = gain > 0.0
    room = torch.where(rises, high - base, base - low)
    price = torch.where(rises, torch.where(base < 0.0, -left, right), torch.where(base > 0.0, -right, left))
    size = gain.abs()
    amount = torch.where(size > LEAST_SLOPE, size * room, 0.0)
    order = torch.argsort(price / size.clamp(min=LEAST_SLOPE), dim=1)
    sorted_amount = amount.gather(1, order)
    before = sorted_amount.cumsum(dim=1) - sorted_amount
    bought = torch.minimum((missing[:, None] - before).clamp(min=0.0), sorted_amount)
    taken = torch.zeros_like(amount).scatter_(1, order, bought) / size.clamp(min=LEAST_SLOPE)
    return base + torch.where(rises, taken, -taken)
