"""Many small linear programs of one shape, solved together.

Each program has the form

    min  cost z + offset   s.t.  row_lower <= rows z <= row_upper,   lower <= z <= upper

Any multipliers y prove a lower bound, with reduced costs r = cost - rows' y (Neumaier and Shcherbina, as
in `dual_value.py`). Rounding errors are deducted from the bound:

    cost z  >=  sum_i min(y_i row_i) + sum_j min(r_j z_j)

A primal-dual interior-point method (Mehrotra) finds the multipliers of all programs together.

Constraints become variables, t = rows z between the limits of the constraints, so that every variable has
two finite bounds and the only equations are rows z - t = 0. One step solves one system with as many
equations as constraints. The method may be inexact: `proved` computes rigorous bounds from its multipliers.
An infeasible LP shows by multipliers that grow until their bound exceeds any cutoff.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dovetail.bounds.planes.domain import gamma
from dovetail.core.deadline import require_time

MORE = 4
"""Number of operations in addition to a sum: products, the cost, the offset."""


@dataclass(frozen=True, eq=False)
class LinearPrograms:
    """N programs over n columns with finite bounds, m rows each."""

    cost: Tensor
    """(n,), or (N, n)."""
    offset: float
    rows: Tensor
    """(N, m, n)."""
    row_lower: Tensor
    """(N, m), perhaps infinite; so is `row_upper`."""
    row_upper: Tensor
    lower: Tensor
    """(N, n), finite; so is `upper`."""
    upper: Tensor

    def within(self, lower: Tensor, upper: Tensor) -> LinearPrograms:
        """The same rows over other boxes."""
        return replace(self, lower=lower, upper=upper)

    def take(self, chosen: Tensor) -> LinearPrograms:
        """A selection of the programs, by index."""
        return LinearPrograms(
            self.cost if self.cost.ndim == 1 else self.cost[chosen],
            self.offset,
            self.rows[chosen],
            self.row_lower[chosen],
            self.row_upper[chosen],
            self.lower[chosen],
            self.upper[chosen],
        )


@dataclass(frozen=True, eq=False)
class Proved:
    """What multipliers prove for N programs."""

    bound: Tensor
    """(N,) a lower bound of the cost; minus infinity if no bound is proved."""
    reduced: Tensor
    """(N, n): cost z >= bound + reduced_j (z_j - lower_j) where reduced_j > 0, and likewise from `upper`."""
    multipliers: Tensor
    """(N, m) the multipliers used."""

    def take(self, chosen: Tensor) -> Proved:
        """The bounds of a selection of the programs, by index."""
        return Proved(self.bound[chosen], self.reduced[chosen], self.multipliers[chosen])


def proved(programs: LinearPrograms, multipliers: Tensor) -> Proved:
    """The bounds by these multipliers, which may be any; multipliers of missing sides are dropped."""
    p = programs
    y = torch.nan_to_num(multipliers, nan=0.0, posinf=0.0, neginf=0.0)
    side = torch.where(y > 0.0, p.row_lower, p.row_upper)
    y = torch.where(torch.isfinite(side), y, 0.0)
    by_rows = y * torch.where(torch.isfinite(side), side, 0.0)
    reduced = p.cost - (y[:, None, :] @ p.rows)[:, 0]
    sizes = p.cost.abs() + (y.abs()[:, None, :] @ p.rows.abs())[:, 0]
    reach = torch.maximum(p.lower.abs(), p.upper.abs())
    m, n = p.rows.shape[1:]
    by_columns = torch.minimum(reduced * p.lower, reduced * p.upper)
    total = by_rows.sum(1) + by_columns.sum(1) + p.offset
    noise = gamma(m + MORE) * (sizes * reach).sum(1)
    noise = noise + gamma(m + n + MORE) * (by_rows.abs().sum(1) + (sizes * reach).sum(1) + abs(p.offset))
    bound = torch.nan_to_num(total - noise, nan=-torch.inf, neginf=-torch.inf, posinf=-torch.inf)
    return Proved(bound, reduced, y)


STEPS = 14
"""Largest number of steps; four digits take about eight, all digits twelve."""
STEP_FRACTION = 0.995
"""The fraction of the way to the nearest bound that a step goes."""
NARROW = 1e-9
"""Smallest width of a scaled column: equations need an interior too."""
DONE = 1e-9
"""Average complementarity, relative to the largest cost, at which multipliers are good for eight digits."""
FAR = 1e6
"""The start of infeasible rows, in units of their own width."""
DECIDED = 1e-9
"""A row that varies by less than this fraction within the box gets no multiplier."""
RIDGE = 1e-13
"""Relative, added to the diagonal of the system, because rows may be copies of each other."""


def multipliers(programs: LinearPrograms) -> tuple[Tensor, Tensor]:
    """(N, m) near-optimal multipliers, and (N, n) points."""
    method = InteriorPoint(programs)
    method.run(STEPS)
    return method.multipliers, method.points


class InteriorPoint:
    """The state of the method for N programs: columns relative to their width, rows and costs of size one."""

    def __init__(self, p: LinearPrograms) -> None:
        self._lower, self._span = p.lower, (p.upper - p.lower).clamp(min=0.0)
        rows = p.rows * self._span[:, None, :]
        size = rows.abs().amax(2)
        reach = torch.maximum(p.lower.abs(), p.upper.abs())
        self._decided = size <= DECIDED * (p.rows.abs() * reach[:, None, :]).amax(2)
        self._row_size = torch.where(self._decided, 1.0, size)
        self._rows = rows / self._row_size[:, :, None]
        self._shift, row_width = self._row_sides(p)
        self._width = torch.cat([torch.ones_like(self._span), row_width], 1)
        cost = p.cost * self._span
        self._unit_cost = cost.abs().amax(1, keepdim=True).clamp(min=1e-12)
        self._cost = torch.cat([cost / self._unit_cost, torch.zeros_like(row_width)], 1)
        self._n = p.rows.shape[2]
        self._v = 0.5 * self._width
        self._y = torch.zeros_like(self._row_size)
        self._below = self._above = torch.ones_like(self._v)
        self._complementarity = torch.ones_like(self._v[:, :1])

    def _row_sides(self, p: LinearPrograms) -> tuple[Tensor, Tensor]:
        """Limits and widths of rows, counted from the columns' lower bounds."""
        at_lower = (p.rows @ p.lower[:, :, None])[:, :, 0]
        least, most = self._rows.clamp(max=0.0).sum(2), self._rows.clamp(min=0.0).sum(2)
        begin, end = (p.row_lower - at_lower) / self._row_size, (p.row_upper - at_lower) / self._row_size
        # a side of a row that no point of the box reaches has multiplier 0, apart from rounding
        self._may_begin, self._may_end = begin > least, end < most
        begin = torch.maximum(begin, least - 1.0).clamp(-FAR, FAR)
        end = torch.minimum(end, most + 1.0).clamp(-FAR, FAR)
        return begin, (end - begin).clamp(min=NARROW)

    @property
    def multipliers(self) -> Tensor:
        """(N, m) multipliers of the original rows."""
        y = torch.where(self._decided, 0.0, self._y * self._unit_cost / self._row_size)
        return y.clamp(min=0.0) * self._may_begin + y.clamp(max=0.0) * self._may_end

    @property
    def points(self) -> Tensor:
        """(N, n) points."""
        return self._lower + self._span * self._v[:, : self._n]

    @property
    def gap(self) -> Tensor:
        """(N,) an estimate of the gap of the bound by these multipliers."""
        return (self._complementarity * self._unit_cost)[:, 0] * (2 * self._v.shape[1])

    def run(self, steps: int) -> None:
        """Run this number of steps, or fewer if all programs are solved."""
        for _ in range(steps):
            require_time()
            self._step()
            if bool((self._complementarity < DONE).all()):
                break

    def take(self, chosen: Tensor) -> InteriorPoint:
        """The state of some of the programs."""
        other = object.__new__(InteriorPoint)
        other.__dict__ = {
            name: value[chosen] if isinstance(value, Tensor) else value for name, value in vars(self).items()
        }
        return other

    def put(self, chosen: Tensor, part: InteriorPoint) -> None:
        """Put back the state of some programs."""
        for name in ("_v", "_y", "_below", "_above", "_complementarity"):
            vars(self)[name] = vars(self)[name].index_copy(0, chosen, vars(part)[name])

    def _times(self, v: Tensor) -> Tensor:
        """rows z - t."""
        return (self._rows @ v[:, : self._n, None])[:, :, 0] - v[:, self._n :]

    def _transposed(self, y: Tensor) -> Tensor:
        return torch.cat([(y[:, None, :] @ self._rows)[:, 0], -y], 1)

    def _step(self) -> None:
        """One predictor-corrector step: the predictor (without centring) determines the centring parameter
        (Mehrotra)."""
        low, high, below, above = self._v, self._width - self._v, self._below, self._above
        weight = 1.0 / (below / low + above / high)
        factor = self._factor(weight)
        primal = self._shift - self._times(self._v)
        dual = self._cost - self._transposed(self._y) - below + above

        def direction(near: Tensor, far: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
            h = dual - near / low + far / high
            right = primal + self._times(weight * h)
            dy = torch.cholesky_solve(right[:, :, None], factor)[:, :, 0].nan_to_num(0.0, 0.0, 0.0)
            dv = weight * (self._transposed(dy) - h)
            return dv, dy, (near - below * dv) / low, (far + above * dv) / high

        gap_low, gap_high = below * low, above * high
        count = 2 * low.shape[1]
        mean = (gap_low + gap_high).sum(1, keepdim=True) / count
        dv, _, dbelow, dabove = direction(-gap_low, -gap_high)
        a, b = _length(dv, low, high), _length_of_multipliers(dbelow, below, dabove, above)
        after = (below + b * dbelow) * (low + a * dv) + (above + b * dabove) * (high - a * dv)
        centre = mean * (after.sum(1, keepdim=True) / count / mean).clamp(0.0, 1.0) ** 3
        dv, dy, dbelow, dabove = direction(centre - gap_low - dbelow * dv, centre - gap_high + dabove * dv)
        going = (self._complementarity >= DONE).to(low.dtype)  # solved programs stay as they are
        a = going * _length(dv, low, high)
        b = going * _length_of_multipliers(dbelow, below, dabove, above)
        self._v, self._y = low + a * dv, self._y + b * dy
        self._below, self._above = below + b * dbelow, above + b * dabove
        self._complementarity = mean

    def _factor(self, weight: Tensor) -> Tensor:
        system = (self._rows * weight[:, None, : self._n]) @ self._rows.mT
        diagonal = system.diagonal(dim1=1, dim2=2)
        diagonal += weight[:, self._n :] + RIDGE * diagonal.amax(1, keepdim=True) + 1e-30
        factor: Tensor = torch.linalg.cholesky_ex(system).L
        return factor


def _length(dv: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """(N, 1) the longest step until a column reaches a bound."""
    fastest = torch.maximum(-dv / low, dv / high).amax(1, keepdim=True)
    return (STEP_FRACTION / fastest.clamp(min=1e-12)).clamp(max=1.0)


def _length_of_multipliers(dbelow: Tensor, below: Tensor, dabove: Tensor, above: Tensor) -> Tensor:
    fastest = torch.maximum(-dbelow / below, -dabove / above).amax(1, keepdim=True)
    return (STEP_FRACTION / fastest.clamp(min=1e-12)).clamp(max=1.0)
