"""Sets of inputs given by moves from an origin: boxes, simplices and balls.

    x = origin + directions t + error,   0 <= t <= limit,   least <= weights't <= most,   |error| <= give

A box needs no weights; a box whose inputs have a fixed sum has one row of weights. An L1 ball has a move
up and a move down for each input, of weight 1; a priced ball has the costs of the moves as weights.

The minimum of a linear function over such a set is a fractional knapsack: one sort finds the price of the
weighted constraint. Any price proves a bound (weak duality), so that the bound does not depend on the
sort.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import torch
from torch import Tensor

from dovetail.bounds.box import UNIT
from dovetail.bounds.planes.domain import dots, gamma
from dovetail.bounds.planes.kernels import prices

OUTWARD = 1.0 + 4.0 * UNIT
"""Rounds a quotient up."""
MORE = 8
"""Number of operations in addition to a sum."""
STEEPEST = 1e12
"""Cap on multipliers of conditions that cannot be satisfied."""


@dataclass(frozen=True, eq=False)
class ConditionPrice:
    """The approximate least cost of satisfying a linear condition."""

    price: Tensor
    """(N,) the multiplier of the condition."""
    moves: Tensor
    """(N, m)."""
    possible: Tensor
    """(N,) whether any moves satisfy the condition."""


@dataclass(frozen=True, eq=False)
class Moves:
    """N sets of moves with the same directions."""

    directions: Tensor
    """(d, m)."""
    origin: Tensor
    """(N, d)."""
    limit: Tensor
    """(N, m), finite."""
    weights: Tensor
    """(N, m), never negative."""
    least: Tensor
    """(N,) minus infinity without a lower side."""
    most: Tensor
    """(N,) infinity without a row."""
    give: Tensor
    """(N, d)."""
    lower: Tensor
    upper: Tensor

    @classmethod
    def of(
        cls,
        directions: Tensor,
        origin: Tensor,
        limit: Tensor,
        weights: Tensor,
        least: Tensor,
        most: Tensor,
        give: Tensor,
    ) -> Moves:
        """Sets with limits that the row implies, and a box around each."""
        weighed = weights > 0.0
        implied = most.clamp(min=0.0)[:, None] / torch.where(weighed, weights, 1.0) * OUTWARD
        limit = torch.where(weighed, torch.minimum(limit, implied), limit)
        up, down = directions.clamp(min=0.0), (-directions).clamp(min=0.0)
        below, above = limit @ down.T, limit @ up.T
        noise = give + gamma(limit.shape[1] + MORE) * (origin.abs() + below + above)
        lower, upper = origin - below - noise, origin + above + noise
        return cls(directions, origin, limit, weights, least, most, give, lower, upper)

    def wider(self, more: Tensor) -> Moves:
        """Sets enlarged by (N, d) `more`."""
        parts = self.limit, self.weights, self.least, self.most
        return Moves.of(self.directions, self.origin, *parts, self.give + more)

    def of_kind(self, dtype: torch.dtype) -> Moves:
        """The same sets in another precision, for guesses without a proof."""
        return Moves(*(getattr(self, field.name).to(dtype) for field in fields(self)))

    def take(self, chosen: Tensor | slice) -> Moves:
        """A selection of the sets, with their shared data."""
        rows = (
            self.origin,
            self.limit,
            self.weights,
            self.least,
            self.most,
            self.give,
            self.lower,
            self.upper,
        )
        part = Moves(self.directions, *(part[chosen] for part in rows))
        vars(part).update({name: getattr(self, name) for name in ("_ball", "_has_least", "_signs")})
        return part

    def within(self, least: Tensor, most: Tensor) -> tuple[Moves, Tensor]:
        """The parts of the sets whose moves are between (N, m) `least` and `most`, counted from their own
        corners; and (N,) which of them are empty."""
        D = self.directions
        noise = gamma(least.shape[1] + MORE)
        origin = self.origin + least @ D.T
        give = self.give + noise * (self.origin.abs() + least @ D.abs().T)
        used = (self.weights * least).sum(1)
        room = noise * used
        left = self.most - used + room + noise * torch.where(self.most.isfinite(), self.most.abs(), 0.0)
        inside = Moves.of(
            D, origin, (most - least) * (1.0 + noise), self.weights, self.least - used - room, left, give
        )
        return inside, left < 0.0

    @cached_property
    def _ball(self) -> bool:
        """Whether in every set a single move can use up the row, so that no sorting is needed."""
        binding = (self.weights > 0.0) & (self.limit * self.weights < self.most[:, None])
        return not (self._has_least or bool(binding.any().item()))

    @cached_property
    def _has_least(self) -> bool:
        """Whether some row has a lower side."""
        return bool(self.least.isfinite().any().item())

    # ---- the least value of a linear function

    def minimum(self, slopes: Tensor, offsets: Tensor, costs: Tensor | None = None) -> Tensor:
        """(N, S) lower bounds of slopes x + offsets + costs't; costs (N, m), or (N, S, m)."""
        per_move, middle = self._per_move(slopes, costs)
        price = self._price(per_move.detach())
        gain = (per_move + price[:, :, None] * self.weights[:, None]).clamp(max=0.0)
        side = torch.where(price >= 0.0, self.most[:, None], self.least[:, None])
        row = torch.where(price == 0.0, 0.0, price * side)
        value = dots(gain, self.limit) - row + middle + offsets
        with torch.no_grad():
            noise = gamma(max(self.directions.shape) + MORE)
            total = price.abs() * (self.weights * self.limit).sum(1)[:, None] + row.abs() + offsets.abs()
            if costs is not None:
                spent = costs.abs() * (self.limit if costs.dim() == 2 else self.limit[:, None])
                total = total + (spent.sum(1)[:, None] if costs.dim() == 2 else spent.sum(2))
        return value - noise * total - dots(slopes.abs(), self.give + noise * self._input_scale)

    @cached_property
    def _input_scale(self) -> Tensor:
        """(N, d) the sizes that an input's slope is multiplied by, in the origin and over all moves."""
        moved = self.limit @ self.directions.abs().T
        return self.origin.abs() + (moved if self._signs else 2.0 * moved)

    @cached_property
    def _signs(self) -> bool:
        """Directions of one input each, by 1 or -1, whose products are exact."""
        one = (self.directions.abs().sum(0) == 1.0) & (self.directions.abs().amax(0) == 1.0)
        return bool(one.all().item())

    def _per_move(self, slopes: Tensor, costs: Tensor | None) -> tuple[Tensor, Tensor]:
        per_move = slopes @ self.directions
        if costs is not None:
            per_move = per_move + (costs if costs.dim() == 3 else costs[:, None])
        return per_move, (slopes * self.origin[:, None]).sum(2)

    def _price(self, per_move: Tensor) -> Tensor:
        """(N, S) the price of one unit of the row: the ratio of value to weight of the move that exhausts
        the row."""
        if not (self._ball or self._has_least):
            found = prices(per_move, self.weights, self.limit, self.most)
            if found is not None:
                return found
        weights = self.weights[:, None]
        weighed = weights > 0.0
        ratio = torch.where(weighed, -per_move / torch.where(weighed, weights, 1.0), -torch.inf)
        if self._ball:
            return torch.where(self.most.isfinite()[:, None], ratio.amax(2).clamp(min=0.0), 0.0)
        order = ratio.sort(2, descending=True)
        used = (weights * self.limit[:, None]).expand_as(ratio).gather(2, order.indices)
        used = used @ torch.ones(used.shape[2], used.shape[2], dtype=used.dtype, device=used.device).triu()
        price = self._ratio_at(order.values, used, self.most).clamp(min=0.0)
        if self._has_least:
            below = self._ratio_at(order.values, used, self.least)
            below = torch.where(self.least.isfinite()[:, None], below.clamp(max=0.0), 0.0)
            price = torch.where(price > 0.0, price, below)
        return torch.where(price.isfinite(), price, 0.0)

    @staticmethod
    def _ratio_at(ratio: Tensor, used: Tensor, side: Tensor) -> Tensor:
        """The ratio of the move that reaches this side of the row; 0 if none does."""
        reached = used >= side[:, None, None]
        place = reached.to(torch.uint8).argmax(2, keepdim=True)
        return torch.where(reached.any(2), ratio.gather(2, place)[:, :, 0], 0.0)

    def minimiser(self, slopes: Tensor, costs: Tensor | None = None) -> Tensor:
        """(N, m) approximate minimisers of slopes x + costs't, slopes (N, d)."""
        per_move = self._per_move(slopes[:, None], costs)[0][:, 0]
        weighed = self.weights > 0.0
        ratio = torch.where(weighed, per_move / torch.where(weighed, self.weights, 1.0), torch.inf)
        order = ratio.argsort(1)
        weight, limit = self.weights.gather(1, order), self.limit.gather(1, order)
        before = (weight * limit).cumsum(1) - weight * limit
        wanted = torch.where(ratio.gather(1, order) < 0.0, self.most[:, None], self.least[:, None])
        room = (wanted - before).clamp(min=0.0) / torch.where(weight > 0.0, weight, 1.0)
        filled = torch.zeros_like(limit).scatter(1, order, torch.minimum(limit, room.nan_to_num(0.0)))
        return torch.where(weighed, filled, torch.where(per_move < 0.0, self.limit, 0.0))

    # ---- the least cost at which a linear condition holds

    def condition_price(self, slopes: Tensor, offsets: Tensor, costs: Tensor) -> ConditionPrice:
        """For min costs't with slopes x + offsets <= 0; slopes (N, d), offsets (N,). The row is ignored: any
        nonnegative multiplier is valid in `minimum`, which includes it."""
        per_move, middle = self._per_move(slopes[:, None], None)
        gain, need = -per_move[:, 0], middle[:, 0] + offsets
        need = need - (slopes.abs() * self.give).sum(1)
        helps = gain > 0.0
        ratio = torch.where(helps, costs / torch.where(helps, gain, 1.0), torch.inf)
        order = ratio.sort(1)
        reach = (gain.clamp(min=0.0) * self.limit).gather(1, order.indices)
        reached = reach.cumsum(1)
        enough = reached >= need[:, None]
        place = enough.to(torch.uint8).argmax(1, keepdim=True)
        short = need - reached[:, -1]
        never = torch.where(short > 0.0, STEEPEST / short.clamp(min=1.0), 0.0)
        multiplier = torch.where(enough.any(1), order.values.gather(1, place)[:, 0], never)
        multiplier = torch.where(need > 0.0, multiplier, 0.0).nan_to_num(0.0, 0.0, 0.0)
        multiplier = multiplier.clamp(
            min=0.0
        )  # only moves that lower the value count; multipliers are nonnegative
        part = ((need[:, None] - (reached - reach)) / reach.clamp(min=torch.finfo(reach.dtype).tiny)).clamp(
            0.0, 1.0
        )
        moves = torch.zeros_like(gain).scatter(1, order.indices, part * self.limit.gather(1, order.indices))
        return ConditionPrice(multiplier, torch.where(helps, moves, 0.0), enough.any(1) | (need <= 0.0))

    def at(self, moves: Tensor) -> Tensor:
        """(N, d) the inputs at these moves."""
        return self.origin + moves @ self.directions.T
