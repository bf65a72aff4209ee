"""Boxes tightened by single rows and by reduced costs: only points that a row or the cutoff excludes are
lost."""

from __future__ import annotations

import torch
from torch import Tensor

from dovetail.bounds.batch_lps import LinearPrograms, Proved
from dovetail.bounds.planes.domain import gamma

PAD = 1e-11
"""Relative to the terms of a computation: new bounds are relaxed by this."""
WHOLE = 1e-6
"""An integer's new bound within this distance of a whole number keeps this number; larger than rounding."""
TINY = 1e-12
"""Relative to a row: smaller entries are not divided by."""

Box = tuple[Tensor, Tensor]


def by_rows(programs: LinearPrograms, integer: Tensor, most: float) -> Box:
    """Tighten by each row separately and by cost z + offset <= most; empty boxes have crossed bounds."""
    below, above = row_limits(programs, most)
    return tidied(programs.lower, programs.upper, below.amax(1), above.amin(1), integer)


def row_limits(programs: LinearPrograms, most: float) -> Box:
    """(N, rows + 1, columns) the limits of each row by itself; the cost comes last."""
    p = programs
    count = len(p.lower)
    cost = p.cost.expand(count, 1, -1)
    ceiling = torch.full((count, 1), most - p.offset, dtype=p.lower.dtype, device=p.lower.device)
    rows = torch.cat([p.rows, cost], 1)
    row_lower = torch.cat([p.row_lower, torch.full_like(ceiling, -torch.inf)], 1)
    row_upper = torch.cat([p.row_upper, ceiling], 1)
    at_lower, at_upper = rows * p.lower[:, None, :], rows * p.upper[:, None, :]
    least, greatest = torch.minimum(at_lower, at_upper), torch.maximum(at_lower, at_upper)
    sizes = torch.maximum(at_lower.abs(), at_upper.abs()).sum(2, keepdim=True)
    unit = gamma(rows.shape[2] + 4)
    # the range of one column's part, given the rest of the row
    room_up = row_upper[:, :, None] - (least.sum(2, keepdim=True) - least)
    room_up = room_up + unit * (sizes + row_upper[:, :, None].abs())
    room_down = row_lower[:, :, None] - (greatest.sum(2, keepdim=True) - greatest)
    room_down = room_down - unit * (sizes + row_lower[:, :, None].abs())
    usable = rows.abs() > TINY * rows.abs().amax(2, keepdim=True)
    positive = rows > 0.0
    divisor = torch.where(usable, rows, 1.0)
    up, down = room_up / divisor, room_down / divisor
    above = torch.where(usable, torch.where(positive, up, down), torch.inf)
    below = torch.where(usable, torch.where(positive, down, up), -torch.inf)
    above = torch.nan_to_num(above, nan=torch.inf, posinf=torch.inf, neginf=-torch.inf)
    below = torch.nan_to_num(below, nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
    return below, above


def by_reduced_costs(programs: LinearPrograms, proof: Proved, integer: Tensor, most: float) -> Box:
    """Tighten by cost z >= bound + reduced_j (z_j - lower_j): points farther away cost more than `most`."""
    p = programs
    room = (most - proof.bound).clamp(min=0.0)[:, None] * (1.0 + PAD)
    reduced = proof.reduced
    usable = reduced.abs() > 0.0
    step = torch.where(usable, room / torch.where(usable, reduced.abs(), 1.0), torch.inf)
    above = torch.where(reduced > 0.0, p.lower + step, torch.inf)
    below = torch.where(reduced < 0.0, p.upper - step, -torch.inf)
    return tidied(p.lower, p.upper, below, above, integer)


def tidied(lower: Tensor, upper: Tensor, below: Tensor, above: Tensor, integer: Tensor) -> Box:
    """The box with new limits, slightly relaxed, and rounded for integers."""
    pad = PAD * (1.0 + torch.maximum(lower.abs(), upper.abs()))
    below, above = below - pad, above + pad
    below = torch.where(integer, torch.ceil(below - WHOLE), below)
    above = torch.where(integer, torch.floor(above + WHOLE), above)
    return torch.maximum(lower, below), torch.minimum(upper, above)
