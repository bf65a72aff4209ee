"""Where to split a box, and which boxes no split can help."""

from __future__ import annotations

import torch
from torch import Tensor

from dovetail.bounds.batch_lps import LinearPrograms, Proved
from dovetail.branching.planes.relaxation import Relaxation, Relaxed, Separation
from dovetail.core.mip import TOLERANCE

GAP_WEIGHT = 2.0
"""Of the slopes between the planes below and above an output, beside those of the plane itself: planes that
differ in a direction come together when it is split."""
BENDS = 2.0
"""Weight of what bends the networks, against slopes: the slopes of planes that are far apart say little, but
only they know of prices (function: 3,400 boxes where slopes alone took 7,300)."""
UNPRICED = 0.01
"""Weight of an output that some row reads and that has no price yet, as a part of the largest one."""
FRACTION, FIRST = 1e-3, 4.0
"""An integer this far from a whole number counts as fractional, and its score so many times."""
CLOSE = 0.1 * TOLERANCE
"""Planes this close are as good as the network: a part of what the check lets rows be missed by."""
NARROW = 1e-9
"""A continuous column this narrow, relative to its size, is a point."""


def scores(relaxation: Relaxation, relaxed: Relaxed, proof: Proved, points: Tensor) -> Tensor:
    """(N, columns) what the relaxation may gain by a split of each column; 0 for those not to be split.

    Of an input: how far apart planes are on the box, times their price, shared out by the slopes, and by
    what bends the networks (see `first_layer.py`).
    Integers that are fractional in the LP's points come first: a class that is decided makes its row exact,
    and boxes along its boundary need not be small.
    """
    r, p = relaxation, relaxed.programs
    width = p.upper - p.lower
    rows = p.rows[:, len(r.host_rows) :]
    steep = (rows.abs() + GAP_WEIGHT * (rows + rows[:, r.partner]).abs()) * (width * r.is_input)[:, None, :]
    weight = _weights(r, proof)
    weight = weight + UNPRICED * weight.amax(1, keepdim=True) * (r.sensitivity[r.column] > 0.0)
    shares = steep / steep.sum(2, keepdim=True).clamp(min=1e-300)  # first, lest a quotient is infinite
    of_inputs = ((weight * relaxed.apart.most(p).clamp(min=0.0))[:, None, :] @ shares)[:, 0]
    bends = torch.zeros_like(width)
    bends[:, r.inputs] = relaxed.bends(width[:, r.inputs])
    bends = bends * r.is_input
    bends = bends / bends.sum(1, keepdim=True).clamp(min=1e-300)
    of_inputs = of_inputs + BENDS * of_inputs.sum(1, keepdim=True) * bends
    fractional = (points - torch.round(points)).abs() > FRACTION
    of_integers = p.cost.abs() + (proof.multipliers.abs()[:, None, :] @ p.rows.abs())[:, 0]
    of_integers = of_integers * width * torch.where(fractional, FIRST, 1.0)
    score = torch.where(r.integer & ~r.is_input, of_integers, of_inputs)
    relative = width / (r.root_upper - r.root_lower).clamp(min=1e-300)
    score = score + 1e-9 * relative * (1.0 + score.amax(1, keepdim=True))  # where nothing else decides
    return torch.where(is_open(r, p), score, 0.0)


def is_open(relaxation: Relaxation, programs: LinearPrograms) -> Tensor:
    """(N, columns) which columns may be split."""
    p = programs
    size = 1.0 + torch.maximum(p.lower.abs(), p.upper.abs())
    return relaxation.branched & (p.upper - p.lower > NARROW * size)


def _weights(relaxation: Relaxation, proof: Proved) -> Tensor:
    """(N, planes) what the cost moves by where an output moves by one: its plane's price, or its bound's."""
    r = relaxation
    of_bounds = torch.where(r.decides, 0.0, proof.reduced[:, r.column].abs())
    return proof.multipliers[:, len(r.host_rows) :].abs() + of_bounds


def relaxation_error(
    relaxation: Relaxation, programs: LinearPrograms, proof: Proved, apart: Separation, points: Tensor
) -> Tensor:
    """(N,) how much higher the cost may be at the LP's points, by the networks themselves."""
    weight = _weights(relaxation, proof) + programs.cost.abs()[relaxation.column]
    return (weight * apart.at(points).clamp(min=0.0)).sum(1)


def exact(
    relaxation: Relaxation,
    programs: LinearPrograms,
    proof: Proved,
    apart: Separation,
    points: Tensor,
    gap: float,
) -> Tensor:
    """(N,) whether the LP of a box is as good as the truth, so that no split can raise its bound by `gap`.

    Every integer is decided, and where the LP's point is the planes are so close that the networks' own
    values satisfy the rows, as far as the check is concerned, at a cost that is no more than `gap` higher.
    """
    r, p = relaxation, programs
    between = apart.at(points).clamp(min=0.0)
    cost = relaxation_error(r, p, proof, apart, points)
    activity = (p.rows @ points[:, :, None])[:, :, 0]
    size = (p.rows.abs() @ points[:, :, None].abs())[:, :, 0] + 1.0
    missed = torch.maximum(p.row_lower - activity, activity - p.row_upper) / size
    room = (activity - p.row_lower)[:, len(r.host_rows) :]
    allowed = torch.where(r.decides, room.clamp(min=CLOSE), CLOSE / r.sensitivity[r.column])
    decided = ~(r.integer & (p.upper > p.lower)).any(1)
    cost = torch.maximum(cost, points @ p.cost + p.offset - proof.bound)  # the LP must be solved, too
    return decided & (cost <= gap) & (missed <= CLOSE).all(1) & (between <= allowed).all(1)


def split(lower: Tensor, upper: Tensor, score: Tensor, integer: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both halves of every box, cut at the middle of its best column; their scores.

    A column that is a point then has no score: what was an infinite one would be chosen for ever.
    """
    best = score.argmax(1, keepdim=True)
    low, high = lower.gather(1, best), upper.gather(1, best)
    middle = 0.5 * (low + high)
    whole = integer[best]
    left_end = torch.where(whole, torch.floor(middle), middle)
    right_start = torch.where(whole, torch.floor(middle) + 1.0, middle)
    left_upper, right_lower = upper.scatter(1, best, left_end), lower.scatter(1, best, right_start)
    left, right = (
        score.scatter(1, best, torch.where(begin < end, 0.5 * score.gather(1, best), 0.0))
        for begin, end in ((low, left_end), (right_start, high))
    )
    return torch.cat([lower, right_lower]), torch.cat([left_upper, upper]), torch.cat([left, right])
