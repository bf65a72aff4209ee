"""Boxes tightened by single rows: only points that a row or the cutoff excludes are lost."""

from __future__ import annotations

import torch
from torch import Tensor

from dovetail.bounds.batch_lps import LinearPrograms
from dovetail.bounds.planes.domain import gamma

PAD = 1e-11
"""Relative to the terms of a computation: new bounds are relaxed by this."""
WHOLE = 1e-6
"""An integer's new bound within this distance of a whole number keeps this number; larger than rounding."""
TINY = 1e-12
"""Relative to a row: smaller entries are not divided by."""


def by_rows(programs: LinearPrograms, integer: Tensor, most: float) -> tuple[Tensor, Tensor]:
    """Tighten by each row separately and by cost z + offset <= most; empty boxes have crossed bounds."""
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
    pad = PAD * (1.0 + torch.maximum(p.lower.abs(), p.upper.abs()))
    below, above = below.amax(1) - pad, above.amin(1) + pad
    below = torch.where(integer, torch.ceil(below - WHOLE), below)
    above = torch.where(integer, torch.floor(above + WHOLE), above)
    return torch.maximum(p.lower, below), torch.minimum(p.upper, above)
