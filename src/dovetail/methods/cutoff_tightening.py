"""Bounds of inputs and neurons that hold for every point as good as the best one known: by LPs.

    LP = host rows + a triangle for every neuron that may change sign, of all layers + cost <= cutoff
    inputs first, least and largest value of each; then, layer by layer, of what open neurons read
    planes again after each, so that every LP knows what the last one found; twice

The LP is the relaxation of the written-out MIP: with a binary between 0 and 1, its rows are the triangle.
What is found holds for points up to the cutoff only: a proof may use it, a search for points may not. The
host's rows are as far out as the check accepts, so that the best point itself stays inside. An LP without
any point, proved by multipliers, proves that nothing is better than the cutoff.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import PAD, UNIT, Box, tidy
from dovetail.bounds.safe_lp import SafeLp
from dovetail.core.arrays import FloatArray
from dovetail.core.mip import SMALLEST, TOLERANCE, Mip
from dovetail.reformulations.reformulated import Reformulated
from dovetail.reformulations.relu_big_m import rows_of_samples
from dovetail.reformulations.relu_rows import SampleRows
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.run.engine import MipStatus
from dovetail.structure.relu_layers import ReluLayers, relu_layers

ROUNDS = 2
"""A third one moves next to nothing."""
WORTH = 0.01
"""A round that shrinks what it asks about by less than this part is the last one."""

ROOM = 1e-5
"""Ranges are widened by this much, times max(1, |bound|): in programs whose ranges are a hair wide engines
have been seen to lose the optimum (scipy's HiGHS, in 2 of 200 random ones at 1e-7)."""


def room_of(bounds: FloatArray) -> FloatArray:
    """How much wider ranges with these ends are made."""
    return ROOM * np.maximum(1.0, np.abs(bounds))


class NothingLeft(Exception):
    """No point costs the cutoff or less: that is proved."""


@dataclass(eq=False)
class CutoffTightening:
    """The networks of a written-out problem, with ranges for points that cost `cutoff` or less."""

    context: SolveContext
    given: Reformulated
    """What bounds are proved of."""
    cutoff: float
    """In minimisation form."""
    layers: ReluLayers
    box: Box

    def run(self, budget: Budget) -> ReluLayers:
        """Ranges as tight as the time allows; raises `NothingLeft`."""
        self._pass_on(self.layers, self.box)
        for _ in range(ROUNDS):
            shrunk = self._inputs(budget)
            shrunk += [part for layer in range(self.layers.depth) for part in self._layer(layer, budget)]
            if budget.over or not shrunk or np.mean(shrunk) > 1.0 - WORTH:
                break
        return self.layers

    def _rows(self) -> tuple[Reformulated, tuple[SampleRows, ...]]:
        return rows_of_samples(self.layers, self.given)

    def _lp(self, written: Reformulated) -> _CutoffExtremes:
        settings = self.context
        return _CutoffExtremes(
            written.problem.mip.minimised(), self.given.problem.mip.n_rows, self.cutoff, settings
        )

    def _inputs(self, budget: Budget) -> list[float]:
        """Least and largest value of each input; what is left of each width."""
        ask, shrunk = self._lp(self._rows()[0]), []
        lower, upper = self.box.lower.copy(), self.box.upper.copy()
        for j in self.given.problem.inputs:
            width = upper[j] - lower[j]
            if budget.over or not np.isfinite(width) or width <= PAD:
                continue
            lower[j], upper[j] = ask.range(np.array([j]), np.ones(1), 0.0, (lower[j], upper[j]), budget)
            shrunk.append(float((upper[j] - lower[j]) / width))
        tidy(self.given.problem.mip.minimised(), lower, upper)
        self._pass_on(self.layers, Box(lower, upper))
        return shrunk

    def _layer(self, layer: int, budget: Budget) -> list[float]:
        """Least and largest value of what each open neuron of a layer reads; what is left of each width."""
        written, samples = self._rows()
        ask, shrunk, numbers = self._lp(written), [], iter(samples)
        pieces = []
        for piece in self.layers.pieces:
            ranges = [(low.copy(), high.copy()) for low, high in piece.ranges]
            for k in range(piece.samples.size):
                rows = next(numbers)
                for neurons in rows.neurons[layer : layer + 1]:
                    low, high = ranges[neurons.place][0][k], ranges[neurons.place][1][k]
                    for i in neurons.unstable:
                        if budget.over:
                            break
                        width = high[i] - low[i]
                        low[i], high[i] = ask.range(
                            neurons.columns, neurons.weight[i], neurons.bias[i], (low[i], high[i]), budget
                        )
                        shrunk.append(float((high[i] - low[i]) / width))
            pieces.append(replace(piece, ranges=tuple(ranges)))
        self._pass_on(replace(self.layers, pieces=tuple(pieces)), self.box)
        return shrunk

    def _pass_on(self, known: ReluLayers, box: Box) -> None:
        """Pass on what was found, by planes."""
        layers = relu_layers(self.given.problem, box, known)
        self.layers, self.box = replace(layers or self.layers, box=box), box


def with_cutoff(mip: Mip, cutoff: float) -> Mip:
    """A program in minimisation form with cost'x <= cutoff as its last row.

    Costs too small for a row are left out; what they may add up to is added to the limit.
    """
    small = (mip.cost != 0.0) & (np.abs(mip.cost) < SMALLEST)
    size = np.maximum(np.abs(mip.lower[small]), np.abs(mip.upper[small]))
    limit = cutoff - mip.offset + float(np.abs(mip.cost[small]) @ size)
    row = sp.csr_array(np.where(small, 0.0, mip.cost)[None])
    return mip.with_rows(row, [-np.inf], [limit + UNIT * 8.0 * abs(limit)])


class _CutoffExtremes:
    """Least and largest values over the relaxation below the cutoff: proved, not believed."""

    def __init__(self, mip: Mip, host_rows: int, cutoff: float, settings: SolveContext) -> None:
        room = np.where(np.arange(mip.n_rows) < host_rows, TOLERANCE, 0.0)
        loose = replace(mip.relaxed(), row_lower=mip.row_lower - room, row_upper=mip.row_upper + room)
        self._lp = SafeLp(with_cutoff(loose, cutoff), seed=settings.seed, threads=settings.threads)

    def range(
        self,
        columns: np.ndarray,
        weight: FloatArray,
        bias: float,
        known: tuple[float, float],
        budget: Budget,
    ) -> tuple[float, float]:
        """Of weight z[columns] + bias, within what is known of it."""
        found = list(known)
        for side, (sign, tighter) in enumerate(((1.0, max), (-1.0, min))):
            status, reached = self._lp.extreme(columns, weight, sign, budget, room=ROOM, constant=bias)
            if status is MipStatus.INFEASIBLE:
                raise NothingLeft
            found[side] = tighter(found[side], reached)
        return (found[0], found[1]) if found[0] <= found[1] else known
