"""The box of a network's few inputs, divided into cells with planes of their own.

On a small cell a network is nearly linear. Cells give

    the cells in reach       those whose outputs the constraints and bounds allow
    least                    the minimum of g x + m y on each cell, for any slopes g and weights m
    separated                the g and m of a cutting plane between a given (x, y) and the network's values
                             at the vertices of all cells

The LP that finds g and m need not be exact: `least` proves the constraint g x + m y >= least.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
import torch

from dovetail.bounds.planes.domain import Boxes, gamma
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.branching.effort import count_cells
from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.mip import SMALLEST
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import LinearProgram
from dovetail.run.budget import Budget

MOST_INPUTS = 4
"""Largest number of inputs that can move: with more, cells are too coarse."""
MOST_CELLS, FINEST = 600, 16
"""Largest number of cells of one network, and along one input: half a second for thirty networks."""
WIDE = 1e-5
"""Inputs with a narrower box count as fixed."""
STEEPEST = 100.0
"""Largest slope of a row, in spreads of the values per width of the box."""
VIOLATED = 1e-4
"""Relative to the spread of the values: smaller violations are ignored."""
MORE = 8
"""Number of operations in addition to a sum in the evaluation of a plane."""


def few_inputs(lower: FloatArray, upper: FloatArray) -> BoolArray:
    """(samples,) whether cells are useful for networks with (samples, inputs) these boxes."""
    return np.asarray((upper - lower > WIDE).sum(1) <= MOST_INPUTS)


class NetworkCells:
    """The cells of one sample that the limits of its outputs allow."""

    def __init__(
        self,
        planes: NetworkPlanes,
        slack: FloatArray,
        box: tuple[FloatArray, FloatArray],
        integer: BoolArray,
        limits: tuple[FloatArray, FloatArray],
    ) -> None:
        """`slack`: the error of each output's planes; inputs marked `integer` are integers; `limits` are
        those of the outputs."""
        self._planes, self._slack, d, q = planes, slack, box[0].size, slack.size
        ends = _ends(*box, integer)
        places = np.stack(np.meshgrid(*(np.arange(len(low)) for low, _ in ends), indexing="ij"), -1)
        places = places.reshape(-1, d)
        low, high = (
            np.stack([end[side][k] for end, k in zip(ends, places.T, strict=True)], 1) for side in (0, 1)
        )
        sizes = planes.graph.sizes
        count_cells(len(low), sum(x * y for x, y in pairwise(sizes)))
        ranges = planes.ranges(Boxes(torch.from_numpy(low), torch.from_numpy(high)))
        one = torch.eye(q, dtype=torch.float64)
        found = planes.planes(torch.cat([one, -one]), ranges)
        slopes, offset = found.slopes.numpy(), found.offset.numpy()
        turns = np.stack(np.meshgrid(*([np.arange(2)] * d), indexing="ij"), -1).reshape(-1, d)
        turns = turns[~np.any(turns * (high <= low).all(0), axis=1)]  # single numbers have one end
        corners = np.where(turns[None] == 1, high[:, None], low[:, None])  # (cells, corners, d)
        values = np.einsum("ksd,kcd->kcs", slopes, corners) + offset[:, None]
        size = np.einsum("ksd,kcd->kcs", np.abs(slopes), np.abs(corners)) + np.abs(offset)[:, None]
        values -= gamma(d + MORE) * size
        below, above = values[:, :, :q] - slack, -values[:, :, q:] + slack
        kept = ~np.any((above.max(1) < limits[0]) | (below.min(1) > limits[1]), axis=1)  # NaN gives no bound
        self.low, self.high = low[kept], high[kept]
        self._ranges = ranges.take(torch.from_numpy(np.flatnonzero(kept)))
        strides = np.cumprod([1, *(len(end) + 1 for end, _ in ends[:-1])])
        number = ((places[kept][:, None] + turns[None]) @ strides).ravel()
        _, first, inverse = np.unique(number, return_index=True, return_inverse=True)
        self._vertices = corners[kept].reshape(-1, d)[first]
        self.below, self.above = np.full((first.size, q), np.inf), np.full((first.size, q), -np.inf)
        np.minimum.at(self.below, inverse.ravel(), below[kept].reshape(-1, q))
        np.maximum.at(self.above, inverse.ravel(), above[kept].reshape(-1, q))

    def __len__(self) -> int:
        return len(self.low)

    @property
    def finite(self) -> bool:
        """Whether all planes are finite."""
        return bool(np.all(np.isfinite(self.below)) and np.all(np.isfinite(self.above)))

    def least(self, slopes: FloatArray, weights: FloatArray) -> FloatArray:
        """(rows, cells) the least value of each row slopes x + weights y on each cell."""
        found = self._planes.planes(torch.from_numpy(weights), self._ranges)
        a, b = found.slopes.numpy() + slopes, found.offset.numpy()
        low, high = self.low[:, None], self.high[:, None]
        value = np.minimum(a * low, a * high).sum(2) + b
        size = (np.abs(a) + np.abs(slopes)) * np.maximum(np.abs(low), np.abs(high))
        moved = np.abs(weights) @ self._slack
        value = value - gamma(slopes.shape[1] + MORE) * (size.sum(2) + np.abs(b) + moved) - moved
        return np.where(np.isnan(value), -np.inf, value).T

    def least_in(self, rows: Sequence[FloatArray], lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(N, rows) the same over N boxes (N, inputs); infinite for boxes without cells."""
        met = ((self.low <= upper[:, None]) & (self.high >= lower[:, None])).all(2)
        met[~met.any(1)] = True
        return np.stack([np.where(met, value, np.inf).min(1) for value in rows], 1)

    def cut_off(self, x: FloatArray, y: FloatArray, budget: Budget) -> tuple[FloatArray, FloatArray] | None:
        """A row that a point violates, if one is found: entries for inputs and outputs, and (cells,) its
        least value on each cell."""
        found = self._separation.found(x, y, budget) if self.finite else None
        if found is None:
            return None
        entries, d = found[0], x.size
        values = self.least(entries[None, :d], entries[None, d:])[0]
        return (entries, values) if entries @ np.append(x, y) < values.min() else None

    @cached_property
    def _separation(self) -> Separation:
        return Separation(self._vertices, self.below, self.above)


class Separation:
    """The LP that finds the row which a point violates most: g x + m y >= c at all known vertices, with |m|
    = 1."""

    def __init__(self, x: FloatArray, below: FloatArray, above: FloatArray) -> None:
        """Vertices with the ranges of outputs there."""
        low, high = np.append(x.min(0), below.min(0)), np.append(x.max(0), above.max(0))
        self._d, moving = x.shape[1], high - low > WIDE
        moving[self._d :] = high[self._d :] - low[self._d :] > SMALLEST
        self._base, self._unit = low, np.where(moving, high - low, 1.0)
        steepest, weights = np.where(moving, STEEPEST, 0.0)[: self._d], np.ones(2 * below.shape[1])
        rows, least, most = self._rows(x, below, above)
        size = sp.csr_array(np.concatenate([0.0 * steepest, weights, [0.0]])[None])
        program = LinearProgram(
            sp.csr_array(sp.vstack([rows, size], format="csr")),
            np.append(least, 1.0),
            np.append(most, 1.0),
            np.concatenate([-steepest, 0.0 * weights, [-np.inf]]),
            np.concatenate([steepest, weights, [np.inf]]),
            np.zeros(steepest.size + weights.size + 1, dtype=bool),
        )
        self._live = LoadedHighs(program)

    def _rows(
        self, x: FloatArray, below: FloatArray, above: FloatArray
    ) -> tuple[sp.csr_array, FloatArray, FloatArray]:
        d, base, unit = self._d, self._base, self._unit
        parts = (x - base[:d]) / unit[:d], (below - base[d:]) / unit[d:], (base[d:] - above) / unit[d:]
        rows = sp.csr_array(np.column_stack([*parts, np.full(len(x), -1.0)]))
        return rows, np.zeros(len(x)), np.full(len(x), np.inf)

    def tell(self, x: FloatArray, y: FloatArray) -> None:
        """Add vertices."""
        self._live.add_rows(*self._rows(x, y, y))

    def found(self, x: FloatArray, y: FloatArray, budget: Budget) -> tuple[FloatArray, float, float] | None:
        """The entries of the row, c, and its violation, below 0 and in units of the LP; None: there is
        none."""
        d, point = self._d, (np.append(x, y) - self._base) / self._unit
        self._live.set_objective(np.concatenate([point, -point[d:], [-1.0]]), 0.0)
        _, found, value = self._live.run(budget, 0.0)
        if found is None or not value < -VIOLATED:
            return None
        entries = np.append(found[:d], found[d : point.size] - found[point.size : -1]) / self._unit
        entries = np.where(np.abs(entries) >= SMALLEST, entries, 0.0)  # engines drop smaller entries
        return entries, float(entries @ self._base + found[-1]), value


def _ends(low: FloatArray, high: FloatArray, integer: BoolArray) -> list[tuple[FloatArray, FloatArray]]:
    """Lower and upper ends of the cells along each input; the integers themselves if there are few."""
    width, room = high - low, float(MOST_CELLS)
    moving, counts = width > WIDE, np.ones(low.size)
    values = np.where(integer, np.round(width) + 1.0, np.inf)
    left = int(np.count_nonzero(moving))
    for k in np.argsort(values, kind="stable"):  # samples with few cells leave more cells to the others
        if moving[k]:
            counts[k] = min(FINEST, int(room ** (1.0 / left) + 1e-9), values[k])
            room, left = room / counts[k], left - 1
    found = []
    for k in range(low.size):
        if moving[k] and values[k] <= counts[k]:
            whole = np.arange(np.ceil(low[k] - WIDE), np.floor(high[k] + WIDE) + 1.0)
            found.append((whole, whole))
        else:
            edges = np.append(np.linspace(low[k], high[k], int(counts[k]) + 1)[:-1], high[k])
            found.append((edges[:-1], edges[1:]))
    return found
