"""Where to split a box, and which boxes no split can help."""

from __future__ import annotations

import torch
from torch import Tensor

from dovetail.bounds.lp_batch.linear_programs import LinearPrograms, Proved
from dovetail.methods.input_branching.relaxation import Relaxation

GAP_WEIGHT = 0.5
"""Of the slopes between the planes below and above an output, beside those of the plane itself: planes that
differ in a direction come together when it is split."""
NARROW = 1e-9
"""A continuous column this narrow, relative to its size, is a point."""


def scores(relaxation: Relaxation, programs: LinearPrograms, proof: Proved) -> Tensor:
    """(N, columns) what the relaxation may gain by a split of each column; 0 for those not to be split."""
    r, p = relaxation, programs
    y = proof.multipliers.abs()
    planes, weight = p.rows[:, len(r.host_rows) :], _weights(r, proof)[:, :, None]
    apart = planes + planes[:, r.partner]
    slopes = (weight * planes.abs()).sum(1) + GAP_WEIGHT * (weight * apart.abs()).sum(1)
    of_integers = p.cost.abs() + (y[:, None, :] @ p.rows.abs())[:, 0]
    width = p.upper - p.lower
    open_ones = r.branched & (width > NARROW * (1.0 + torch.maximum(p.lower.abs(), p.upper.abs())))
    score = torch.where(r.integer & ~r.is_input, of_integers, slopes) * width
    relative = width / r.root_width.clamp(min=1e-300)
    score = score + 1e-9 * relative * (1.0 + score.amax(1, keepdim=True))  # where nothing else decides
    return torch.where(open_ones, score, 0.0)


def _weights(relaxation: Relaxation, proof: Proved) -> Tensor:
    """(N, planes) what the cost moves by where an output moves by one: its plane's price, or its bound's."""
    r = relaxation
    return proof.multipliers[:, len(r.host_rows) :].abs() + proof.reduced[:, r.column].abs()


def error(relaxation: Relaxation, programs: LinearPrograms, proof: Proved) -> Tensor:
    """(N,) by how much the LP of a box may be below the truth; infinity while an integer is open."""
    r, p = relaxation, programs
    first = len(r.host_rows)
    planes, right = p.rows[:, first:], p.row_lower[:, first:]
    slopes = planes + planes[:, r.partner]
    offset = -(right + right[:, r.partner]) - 2.0 * r.slack
    most = torch.maximum(slopes * p.lower[:, None, :], slopes * p.upper[:, None, :]).sum(2) + offset
    gap = (_weights(r, proof) * most.clamp(min=0.0)).sum(1)
    undecided = (r.integer & r.branched & (p.upper > p.lower)).any(1)
    return torch.where(undecided, torch.inf, gap)


def split(lower: Tensor, upper: Tensor, score: Tensor, integer: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both halves of every box, cut at the middle of its best column; their scores."""
    best = score.argmax(1, keepdim=True)
    low, high = lower.gather(1, best), upper.gather(1, best)
    middle = 0.5 * (low + high)
    whole = integer[best]
    left_end = torch.where(whole, torch.floor(middle), middle)
    right_start = torch.where(whole, torch.floor(middle) + 1.0, middle)
    left_upper, right_lower = upper.scatter(1, best, left_end), lower.scatter(1, best, right_start)
    halved = score.scatter(1, best, 0.5 * score.gather(1, best))
    return torch.cat([lower, right_lower]), torch.cat([left_upper, upper]), torch.cat([halved, halved])
