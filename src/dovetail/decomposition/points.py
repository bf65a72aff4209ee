"""Shares of a problem that is here as a whole: what they chose as points of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from dovetail.core.arrays import FloatArray
from dovetail.core.pieces import pieces
from dovetail.decomposition.device_blocks import uploaded
from dovetail.decomposition.plan import TemplatePlan
from dovetail.decomposition.share import Column, Range
from dovetail.decomposition.shares import Shares
from dovetail.run.budget import Budget
from dovetail.run.remote_workers import Workers

MADE = 4
"""Numbers of a block that are at hand at a time: columns are made one by one, a family's side by side."""


class PointShares(Shares):
    """See above; `where` says which blocks each of them has."""

    def __init__(
        self,
        workers: Workers,
        where: Sequence[Range],
        plan: TemplatePlan,
        patience: Budget,
        device: str | None = None,
    ) -> None:
        """`device`: that of shares which are in this process; points are made there."""
        super().__init__(workers, len(where), patience)
        self._where, self._plan, self._device = where, plan, device

    def least_costs(self, prices: FloatArray) -> FloatArray:
        """(C,) by component: what the cheapest column of each block costs at the prices."""
        known = np.full(self._plan.count, np.inf)
        for mine, costs in zip(self._where, self._same("least_costs", prices), strict=True):
            known[self._plan.arrays[mine.template].component[mine.first : mine.last]] = costs
        return known

    def point(self) -> FloatArray:
        """The choice as a point of the host."""
        made = self._made_there()
        return point_of(self._plan, self._where, self._same("chosen")) if made is None else made

    def _made_there(self) -> FloatArray | None:
        """On the device of the shares, where they are here and that is no CPU: a copy of it."""
        if self._device is None or torch.device(self._device).type == "cpu":
            return None
        z = torch.empty(self._plan.program.n_columns, dtype=torch.float64, device=self._device)
        for part in self._plan.uncovered:
            lower = uploaded(np.broadcast_to(part.lower, part.shape), self._device)
            z[part.first : part.first + lower.numel()] = lower.ravel()
        places = [(z, self._plan.arrays[mine.template].places) for mine in self._where]
        if not all(self._each("write", [*places])):
            return None
        made = np.empty(len(z))  # numpy asks for large pages, torch does not
        torch.from_numpy(made).copy_(z)
        return made

    @property
    def in_words(self) -> str:
        """How shares are priced on GPUs; "" on CPUs."""
        return "; ".join(dict.fromkeys(filter(None, self._same("in_words"))))

    def nth_point(self, place: int) -> FloatArray:
        """This column of every block."""
        return point_of(self._plan, self._where, self._same("nth", place))


def point_of(plan: TemplatePlan, where: Sequence[Range], columns: Sequence[Column]) -> FloatArray:
    """All columns of the host, outputs as they were found."""
    z = np.empty(plan.program.n_columns)
    for part in plan.uncovered:
        part.of(z)[...] = part.lower
    for mine, (moves, outputs) in zip(where, columns, strict=True):
        program, places = plan.programs[mine.template], plan.arrays[mine.template].places
        for some in pieces(len(moves), MADE):
            first, last = mine.first + some.start, mine.first + some.stop
            values = program.columns(moves[some], outputs[some], first)
            for j, of_column in enumerate(values):
                z[places.column(j, first, last)] = of_column
    return z
