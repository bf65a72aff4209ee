"""Many small LPs over boxes, and the bound that multipliers of their rows prove, rounding taken off.

    min  cost z + offset   s.t.  row_lower <= rows z <= row_upper,   lower <= z <= upper

For any multipliers y, with reduced costs r = cost - rows' y (Neumaier and Shcherbina, as in `dual_value.py`):

    cost z  >=  sum_i min(y_i row_i) + sum_j min(r_j z_j)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dovetail.bounds.planes.domain import gamma

MORE = 4
"""Operations beside a sum itself: products, the cost, the offset."""


@dataclass(frozen=True, eq=False)
class LinearPrograms:
    """N programs over n columns with finite bounds, m rows each."""

    cost: Tensor
    """(n,)."""
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
        """Some of the programs, by index."""
        return LinearPrograms(
            self.cost,
            self.offset,
            self.rows[chosen],
            self.row_lower[chosen],
            self.row_upper[chosen],
            self.lower[chosen],
            self.upper[chosen],
        )


@dataclass(frozen=True, eq=False)
class Proved:
    """What multipliers prove of N programs."""

    bound: Tensor
    """(N,) no z has a lower cost; minus infinity where nothing is proved."""
    reduced: Tensor
    """(N, n): cost z >= bound + reduced_j (z_j - lower_j) where reduced_j > 0, and likewise from `upper`."""
    multipliers: Tensor
    """(N, m) those that were used."""

    def take(self, chosen: Tensor) -> Proved:
        """Of some of the programs, by index."""
        return Proved(self.bound[chosen], self.reduced[chosen], self.multipliers[chosen])


def proved(programs: LinearPrograms, multipliers: Tensor) -> Proved:
    """The bounds by these multipliers, whatever they are; those of missing sides are dropped."""
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
