"""The networks of a box one after the other: those that cost, then, where they do not close it, the others.

Planes of what costs close two boxes of three on their own (function: of 12,300 boxes 4,700 are left for the
network of the equation). Slopes are chosen for the first networks alone; those of the others have a price in
few of the boxes that are left, which are mostly split anyway (function, 6x32: 12,300 boxes where slopes for
all of them together take 12,400; with eight inputs 27,100 where 28,700).
"""

from __future__ import annotations

import torch
from torch import Tensor

from dovetail.branching.planes.plan import Plan
from dovetail.branching.planes.relaxation import Relaxation, Relaxed, Separation
from dovetail.structure.networks import network_parts


class Stages:
    """The parts of one problem's networks; there may be one only, which is `whole`."""

    def __init__(self, plan: Plan, whole: Relaxation, device: str) -> None:
        self._whole = whole
        parts = network_parts(plan.network, plan.mip.cost)
        found = [Relaxation(plan.mip, part, plan.lower, plan.upper, device) for part in parts[:2]]
        # where only the others have slopes to choose, all are asked at once, lest nobody chooses them
        self.several = len(found) > 1 and (found[0].has_slopes or not whole.has_slopes)
        self.first, self._rest = (found[0], found[1]) if self.several else (whole, whole)
        self._order = torch.as_tensor(self._order_of_planes(), device=device)

    def _order_of_planes(self) -> list[int]:
        """Where each plane of the whole is among those of the first part and the rest."""
        places: dict[int, list[int]] = {}
        for place, column in enumerate([*self.first.column.tolist(), *self._rest.column.tolist()]):
            places.setdefault(column, []).append(place)
        return [places[column].pop(0) for column in self._whole.column.tolist()]

    def completed(self, relaxed: Relaxed) -> Relaxed:
        """Boxes that have planes of the first part get those of the rest as well."""
        rest = self._rest.relaxed(relaxed.programs.lower, relaxed.programs.upper)
        first, second = relaxed.programs, rest.programs
        own, others = len(self.first.host_rows), len(self._rest.host_rows)
        apart = Separation(
            self._joined(relaxed.apart.slopes, rest.apart.slopes),
            self._joined(relaxed.apart.offset, rest.apart.offset),
            self._whole.inputs,
        )
        programs = self._whole.programs(
            self._joined(first.rows[:, own:], second.rows[:, others:]),
            self._joined(first.row_lower[:, own:], second.row_lower[:, others:]),
            first.lower,
            first.upper,
        )
        return Relaxed(
            programs, apart, relaxed.ranges + rest.ranges, relaxed.first_layers + rest.first_layers
        )

    def _joined(self, first: Tensor, rest: Tensor) -> Tensor:
        return torch.cat([first, rest], 1)[:, self._order]
