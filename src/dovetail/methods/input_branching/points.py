"""Points of boxes, for the incumbent: where planes are close the LP's point is a point of the problem.

The LPs that bounds come from are as loose as the check, and classes need no margin in them. A point that is
offered should be inside: here rows and bounds are the host's own, and a class is decided where the plane on
its far side says so.
"""

from __future__ import annotations

import time
from dataclasses import replace

import torch
from torch import Tensor

from dovetail.bounds.lp_batch.interior_point import multipliers
from dovetail.bounds.lp_batch.linear_programs import LinearPrograms
from dovetail.core.mip import TOLERANCE
from dovetail.methods.input_branching.relaxation import Relaxation, Separation
from dovetail.run.context import SolveContext

ROUNDS = 4
"""Of steps from the best point of a box, as long as they bring something."""
RADII = (1.0, 0.3, 0.1, 0.03, 0.01, 0.001)
"""How far a step may go, as parts of the box it began in: all at once, they cost as much as one."""
NEAR = 4.0 * TOLERANCE
"""Planes farther apart than that, in units of a row, leave little hope that the row is met."""
HALF = 0.5
"""Of a class's margin: what an LP's own tolerance may take."""
OFFERED = 2
"""Points that are checked per step."""
SHARE = 0.1
"""Part of the time that points of boxes that are not exact may take."""
MARGIN = 1e-9
"""By how much more than its planes ask for a logit is on its side of the threshold."""


class Points:
    """Offers the points of boxes to the incumbent of a solve."""

    def __init__(self, context: SolveContext, relaxation: Relaxation, n_columns: int) -> None:
        self._context, self._relaxation, self._n = context, relaxation, n_columns
        self._began, self._spent = time.perf_counter(), 0.0

    def offer(self, programs: LinearPrograms, points: Tensor, bound: Tensor, exact: Tensor) -> None:
        """Of the lowest of the exact boxes; of the lowest of all now and then."""
        begun = time.perf_counter()
        some = bool(exact.any())
        if not some and self._spent > SHARE * (begun - self._began):
            return
        best = int(torch.where(exact, bound, torch.inf).argmin() if some else bound.argmin())
        width = programs.upper[best] - programs.lower[best]
        point = points[best]
        if not bool(torch.isfinite(point).all()):  # an LP that came to nothing
            return
        for _ in range(ROUNDS):
            better = self._step(point, width)
            if better is None or self._context.over:
                break
            point = better
        self._spent += time.perf_counter() - begun

    def _step(self, point: Tensor, width: Tensor) -> Tensor | None:
        """Solve the LPs of boxes around a point and offer what they give; the new incumbent, if there is."""
        r, incumbent = self._relaxation, self._context.incumbent
        radius = torch.as_tensor(RADII, dtype=point.dtype, device=point.device)[:, None] * width
        centre = torch.where(r.integer, torch.round(point), point)
        radius = torch.where(r.integer, 0.0, torch.where(r.is_input, radius, torch.inf))
        lower, upper = (
            torch.maximum(r.root_lower, centre - radius),
            torch.minimum(r.root_upper, centre + radius),
        )
        relaxed = r.relaxed(torch.minimum(lower, upper), upper)
        apart = relaxed.apart
        _, lead = incumbent.rounding(point[: self._n].cpu().numpy())
        margin = torch.as_tensor(lead, device=point.device)[r.column] + MARGIN
        programs = self._tightened(relaxed.programs, apart, centre.expand(len(RADII), -1), margin)
        _, found = multipliers(programs)
        before = incumbent.x
        for place in self._promising(apart, found, self._decided(programs, found, margin)):
            incumbent.offer(found[place, : self._n].cpu().numpy().copy(), "boxes")
        if incumbent.x is None or incumbent.x is before:
            return None
        return torch.cat([torch.as_tensor(incumbent.x, device=point.device), point[self._n :]])

    def _decided(self, programs: LinearPrograms, found: Tensor, margin: Tensor) -> Tensor:
        """Which points keep half of the margin at least: an LP may have none that keeps it."""
        r = self._relaxation
        host = len(r.host_rows)
        activity = (programs.rows @ found[:, :, None])[:, host:, 0]
        short = programs.row_lower[:, host:] - activity
        return (~r.decides | (short <= HALF * margin)).all(1)

    def _promising(self, apart: Separation, found: Tensor, decided: Tensor) -> list[int]:
        """The places of the cheapest points at which planes are close enough for the check, best first."""
        r, incumbent = self._relaxation, self._context.incumbent
        near = torch.where(r.decides, torch.inf, NEAR / r.sensitivity[r.column])
        value = found @ r.cost + r.offset
        if incumbent.x is not None:
            value = torch.where(
                value < self._context.problem.mip.sign * incumbent.objective, value, torch.inf
            )
        value = torch.where(decided & (apart.at(found) <= near).all(1), value, torch.inf)
        best = torch.argsort(value)[:OFFERED]
        return [int(place) for place in best if bool(torch.isfinite(value[place]))]

    def _tightened(
        self, p: LinearPrograms, apart: Separation, points: Tensor, margin: Tensor
    ) -> LinearPrograms:
        """Back from what the check accepts to the host itself; classes are decided by a margin."""
        r = self._relaxation
        host = len(r.host_rows)
        asked = torch.where(r.decides, apart.at(points).clamp(min=0.0) + r.slack + margin, 0.0)
        row_lower = torch.cat([p.row_lower[:, :host] + TOLERANCE, p.row_lower[:, host:] + asked], 1)
        row_upper = torch.cat([p.row_upper[:, :host] - TOLERANCE, p.row_upper[:, host:]], 1)
        crossed = row_lower > row_upper  # an equation
        middle = 0.5 * (p.row_lower + p.row_upper)
        row_lower, row_upper = (
            torch.where(crossed, middle, row_lower),
            torch.where(crossed, middle, row_upper),
        )
        room = torch.where(r.integer | (p.upper - p.lower < 2.0 * TOLERANCE), 0.0, TOLERANCE)
        at_lower, at_upper = p.lower <= r.root_lower, p.upper >= r.root_upper
        lower, upper = p.lower + torch.where(at_lower, room, 0.0), p.upper - torch.where(at_upper, room, 0.0)
        return replace(p, row_lower=row_lower, row_upper=row_upper, lower=lower, upper=upper)
