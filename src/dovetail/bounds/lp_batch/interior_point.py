"""Multipliers of many small LPs at a time, by a primal-dual interior-point method (Mehrotra).

Rows become columns of their own, t = rows z between the rows' sides, so that every column has two finite
bounds and the only equations are rows z - t = 0; one step is one system of the size of the rows. Nothing here
has to be exact: what the multipliers prove is `proved`'s matter. An LP that has no solution is one whose
multipliers grow until their bound is beyond any cutoff.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dovetail.bounds.lp_batch.linear_programs import LinearPrograms

STEPS = 14
"""At most; four digits take about eight, all of them twelve."""
TO_THE_WALL = 0.995
"""How much of the way to the nearest bound a step goes."""
NARROW = 1e-9
"""Least width of a scaled column: equations need an inside as well."""
DONE = 1e-9
"""Average complementarity, relative to the largest cost, at which multipliers are good for eight digits."""
DECIDED = 1e-12
"""A row that moves by less than this part of itself within the box has nothing to say of a multiplier."""
RIDGE = 1e-13
"""Added to the diagonal of the system, relative: rows may be copies of each other."""


def multipliers(programs: LinearPrograms, steps: int = STEPS) -> tuple[Tensor, Tensor]:
    """(N, m) multipliers and (N, n) points near the optimum."""
    scaled = _Scaled(programs)
    state = scaled.start()
    for _ in range(steps):
        state = scaled.step(state)
        if bool((state.complementarity < DONE).all()):
            break
    y = state.y * scaled.unit_cost / scaled.row_size
    return torch.where(scaled.decided, 0.0, y), scaled.point(state)


@dataclass(frozen=True, eq=False)
class _State:
    v: Tensor
    """(N, n + m) columns and rows, between 0 and `width`."""
    y: Tensor
    below: Tensor
    """(N, n + m) multipliers of the lower bounds; `above` of the upper ones."""
    above: Tensor
    complementarity: Tensor


class _Scaled:
    """Columns as parts of their width, rows and costs of size one."""

    def __init__(self, p: LinearPrograms) -> None:
        self.lower, self.span = p.lower, (p.upper - p.lower).clamp(min=0.0)
        rows = p.rows * self.span[:, None, :]
        size = rows.abs().amax(2)
        reach = torch.maximum(p.lower.abs(), p.upper.abs())
        self.decided = size <= DECIDED * (p.rows.abs() * reach[:, None, :]).amax(2)
        self.row_size = torch.where(self.decided, 1.0, size)
        self.rows = rows / self.row_size[:, :, None]
        at_lower = (p.rows @ p.lower[:, :, None])[:, :, 0]
        least = torch.minimum(self.rows, torch.zeros_like(self.rows)).sum(2)
        most = self.rows.clamp(min=0.0).sum(2)
        row_lower = torch.maximum((p.row_lower - at_lower) / self.row_size, least - 1.0)
        row_upper = torch.minimum((p.row_upper - at_lower) / self.row_size, most + 1.0)
        self.shift = row_lower.clamp(min=-1e6, max=1e6)
        row_width = (row_upper.clamp(min=-1e6, max=1e6) - self.shift).clamp(min=NARROW)
        self.width = torch.cat([torch.ones_like(self.span), row_width], 1)
        cost = p.cost * self.span
        self.unit_cost = cost.abs().amax(1, keepdim=True).clamp(min=1e-12)
        self.cost = torch.cat([cost / self.unit_cost, torch.zeros_like(row_width)], 1)
        self.n = p.rows.shape[2]

    def start(self) -> _State:
        """The middle, with multipliers that balance each other."""
        v = 0.5 * self.width
        y = torch.zeros_like(self.row_size)
        ones = torch.ones_like(v)
        return _State(v, y, ones, ones, torch.ones_like(v[:, 0]))

    def point(self, state: _State) -> Tensor:
        """In the columns' own units."""
        return self.lower + self.span * state.v[:, : self.n]

    def _times(self, v: Tensor) -> Tensor:
        """rows z - t."""
        return (self.rows @ v[:, : self.n, None])[:, :, 0] - v[:, self.n :]

    def _transposed(self, y: Tensor) -> Tensor:
        return torch.cat([(y[:, None, :] @ self.rows)[:, 0], -y], 1)

    def step(self, s: _State) -> _State:
        """Where the step without centring would lead says how much centring is needed (Mehrotra)."""
        low, high = s.v, self.width - s.v
        weight = 1.0 / (s.below / low + s.above / high)
        system = (self.rows * weight[:, None, : self.n]) @ self.rows.mT
        diagonal = weight[:, self.n :] + RIDGE * system.diagonal(dim1=1, dim2=2).amax(1, keepdim=True) + 1e-30
        system = system + torch.diag_embed(diagonal)
        factor, _ = torch.linalg.cholesky_ex(system)
        primal = self.shift - self._times(s.v)
        dual = self.cost - self._transposed(s.y) - s.below + s.above

        def direction(near: Tensor, far: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
            h = dual - near / low + far / high
            right = primal + self._times(weight * h)
            dy = torch.cholesky_solve(right[:, :, None], factor)[:, :, 0]
            dv = weight * (self._transposed(dy) - h)
            return dv, dy, (near - s.below * dv) / low, (far + s.above * dv) / high

        gap_low, gap_high = s.below * low, s.above * high
        count = 2 * s.v.shape[1]
        mean = (gap_low + gap_high).sum(1, keepdim=True) / count
        dv, _, dbelow, dabove = direction(-gap_low, -gap_high)
        a, b = _length(dv, low, high), _length_dual(dbelow, dabove, s)
        after = (s.below + b * dbelow) * (low + a * dv) + (s.above + b * dabove) * (high - a * dv)
        centre = mean * (after.sum(1, keepdim=True) / count / mean).clamp(0.0, 1.0) ** 3
        dv, dy, dbelow, dabove = direction(centre - gap_low - dbelow * dv, centre - gap_high + dabove * dv)
        a, b = _length(dv, low, high), _length_dual(dbelow, dabove, s)
        return _kept(
            s, _State(s.v + a * dv, s.y + b * dy, s.below + b * dbelow, s.above + b * dabove, mean[:, 0])
        )


def _length(dv: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """How far a step may go before some column is at a bound, (N, 1)."""
    fastest = torch.maximum(-dv / low, dv / high).amax(1, keepdim=True)
    return (TO_THE_WALL / fastest.clamp(min=1e-12)).clamp(max=1.0)


def _length_dual(dbelow: Tensor, dabove: Tensor, s: _State) -> Tensor:
    fastest = torch.maximum(-dbelow / s.below, -dabove / s.above).amax(1, keepdim=True)
    return (TO_THE_WALL / fastest.clamp(min=1e-12)).clamp(max=1.0)


def _kept(before: _State, after: _State) -> _State:
    """The step, but for programs in which numbers ran out."""
    fine = torch.isfinite(after.v).all(1) & torch.isfinite(after.y).all(1)
    fine = fine & torch.isfinite(after.below).all(1) & torch.isfinite(after.above).all(1)
    fine = fine & (before.complementarity >= DONE)
    here = fine[:, None]
    return _State(
        torch.where(here, after.v, before.v),
        torch.where(here, after.y, before.y),
        torch.where(here, after.below, before.below),
        torch.where(here, after.above, before.above),
        torch.where(fine, after.complementarity, torch.zeros_like(after.complementarity)),
    )
