"""The linear part of a problem in branch and bound: variables, constraints, and their bounds over many boxes.

Classes are written as constraints on logits, which are additional variables after those of the linear
part. With slacks for rounding and ties:

    one output     y = 1 only where logit >= -slack_0,  y = 0 only where logit <= slack_1
    several        y_k = 1 only where logit_k >= logit_j - slack_kj for every j; exactly one y_k is 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from dovetail.bounds.box import UNIT, RowEntries
from dovetail.branching.effort import count_rows
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.mip import TOLERANCE, Mip

ROUNDS = 4
"""Passes over the rows of a box: a child differs from its parent in one column."""


class Cells(Protocol):
    """Cells of inputs that few networks or trees read, with least values of rows by cell."""

    def least_in(self, rows: Sequence[Any], lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(N, rows) least values of rows over N boxes (N, inputs)."""
        ...


@dataclass(frozen=True, eq=False)
class LocalRow:
    """entries x >= least, over the inputs and then the outputs of some cells; larger in smaller boxes."""

    inputs: IntArray
    outputs: IntArray
    entries: FloatArray
    cells: Cells
    values: Any
    """Values by cell, for `least_in`."""
    least: float = -np.inf
    """The least value in all boxes."""

    @property
    def columns(self) -> IntArray:
        """All columns of the row: inputs, then outputs."""
        return np.append(self.inputs, self.outputs)


@dataclass(frozen=True, eq=False)
class HostRows:
    """Rows over variables and logits, in minimisation form, relaxed as in the check."""

    A: sp.csr_array
    row_lower: FloatArray
    row_upper: FloatArray
    cost: FloatArray
    offset: float
    integer: BoolArray
    entries: IntArray
    """For each column: rows and samples of networks that contain it."""
    local: tuple[LocalRow, ...] = ()
    """Local rows, before the last row."""

    @property
    def columns(self) -> int:
        """Number of columns."""
        return int(self.cost.size)

    @cached_property
    def transposed(self) -> sp.csc_array:
        """A', for products with multipliers."""
        return self.A.T

    @cached_property
    def transposed_sizes(self) -> sp.csc_array:
        """|A|', for the rounding of such products."""
        return abs(self.A).T

    @cached_property
    def _sides(self) -> tuple[RowEntries, RowEntries]:
        """Rows with an upper limit, and rows with a lower one."""
        filled, above = np.diff(self.A.indptr) > 0, np.isfinite(self.row_upper)
        above[-1] = True  # the cost
        return (
            RowEntries.of(self.A, np.flatnonzero(filled & above)),
            RowEntries.of(self.A, np.flatnonzero(filled & np.isfinite(self.row_lower))),
        )

    def program(self, cutoff: float) -> Mip:
        """The rows as a program, for points that cost at most `cutoff`."""
        top = np.append(self.row_upper[:-1], self.limit(cutoff))
        return Mip(self.cost, self.A, self.row_lower, top, -np.inf, np.inf, self.integer)

    def limit(self, cutoff: float) -> float:
        """The limit of the last row, for points that cost at most `cutoff`, with room for rounding."""
        return cutoff - self.offset + 8.0 * UNIT * (abs(cutoff) + abs(self.offset))

    @property
    def lasting(self) -> int:
        """Number of the first rows, which are the same in all boxes."""
        return int(self.A.shape[0]) - 1 - len(self.local)

    def with_local(self, rows: Sequence[LocalRow]) -> HostRows:
        """The same rows with these local rows before the last row; they replace earlier local rows."""
        m, mine = self.lasting, slice(self.lasting, -1)
        columns = [row.columns for row in rows]
        more = sp.csr_array(
            (
                np.concatenate([np.empty(0), *(row.entries for row in rows)]),
                (
                    np.repeat(np.arange(len(rows)), [c.size for c in columns]),
                    np.concatenate([np.empty(0, dtype=np.int64), *columns]),
                ),
            ),
            shape=(len(rows), self.columns),
        )
        more.eliminate_zeros()
        counts = (np.bincount(part.indices, minlength=self.columns) for part in (more, self.A[mine]))
        return replace(
            self,
            A=sp.vstack([self.A[:m], more, self.A[-1:]], format="csr"),
            row_lower=np.concatenate([self.row_lower[:m], [row.least for row in rows], self.row_lower[-1:]]),
            row_upper=np.concatenate([self.row_upper[:m], np.full(len(rows), np.inf), self.row_upper[-1:]]),
            entries=self.entries + next(counts) - next(counts),
            local=tuple(rows),
        )

    def lower_sides(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(N, rows) lower limits over N boxes; (1, rows) if they are the same in all boxes."""
        if not self.local:
            return self.row_lower[None]
        found = np.repeat(self.row_lower[None], len(lower), axis=0)
        for cells in {id(row.cells): row.cells for row in self.local}.values():
            own = [k for k, row in enumerate(self.local) if row.cells is cells]
            values, read = [self.local[k].values for k in own], self.local[own[0]].inputs
            found[:, [self.lasting + k for k in own]] = cells.least_in(values, lower[:, read], upper[:, read])
        return found

    def with_cutoff(self) -> HostRows:
        """The same rows with the cost as a last row, whose limit is set later."""
        row = sp.csr_array(self.cost[None])
        return replace(
            self,
            A=sp.vstack([self.A, row], format="csr"),
            row_lower=np.append(self.row_lower, -np.inf),
            row_upper=np.append(self.row_upper, np.inf),
            entries=self.entries + 1,
        )

    def tighten(
        self,
        lower: FloatArray,
        upper: FloatArray,
        cutoff: float,
        known: tuple[FloatArray, FloatArray] | None = None,
    ) -> None:
        """Tighten N boxes, in place; the last row limits the cost by `cutoff`. Bounds that cross mean an
        empty box. Propagation of `known` bounds is not repeated: after the first pass, only changed boxes
        and rows with changed columns are propagated."""
        count_rows(len(lower))
        n, boxes = self.columns, np.arange(len(lower))
        columns: BoolArray = np.ones(n, dtype=bool)
        if known is not None:
            moved = (lower[:, :n] != known[0][:, :n]) | (upper[:, :n] != known[1][:, :n])
            boxes, columns = np.flatnonzero(moved.any(1)), np.asarray(moved.any(0))
        whole = np.flatnonzero(self.integer)
        for _ in range(ROUNDS):
            boxes = boxes[~(lower[boxes] > upper[boxes]).any(1)]
            if not boxes.size or not np.any(columns):
                return
            low, high = lower[boxes], upper[boxes]
            before = low[:, :n].copy(), high[:, :n].copy()
            self._pass_on(columns, low, high, cutoff)
            low[:, whole] = np.ceil(low[:, whole] - TOLERANCE)
            high[:, whole] = np.floor(high[:, whole] + TOLERANCE)
            lower[boxes], upper[boxes] = low, high
            with np.errstate(invalid="ignore"):
                by = np.fmax(low[:, :n] - before[0], before[1] - high[:, :n])
                moved = by > MOVED * (1.0 + np.nan_to_num(before[1] - before[0], posinf=0.0))
            boxes, columns = boxes[moved.any(1)], np.asarray(moved.any(0))

    def _pass_on(self, columns: BoolArray, lower: FloatArray, upper: FloatArray, cutoff: float) -> None:
        """Propagate rows over some of the columns once, from both sides."""
        limit = np.append(self.row_upper[:-1], self.limit(cutoff))
        for every, sign, side in zip(self._sides, (1.0, -1.0), (limit, -self.row_lower), strict=True):
            if every.number.size:
                rows = every.touching(columns)
                ends = lower[:, rows.column], upper[:, rows.column]
                if rows.number.size:
                    rows.pass_on(sign * rows.a, side[rows.number], ends, lower, upper)


MOVED = 1e-3
"""Relative to a column's width: smaller changes are ignored."""
Link = tuple[IntArray, FloatArray, float, float]
"""A row: columns, entries, lower and upper limit."""


def host_rows(mip: Mip, logits: int, links: list[Link], touched: IntArray) -> HostRows:
    """A program in minimisation form with `logits` additional columns and the rows `links`; `touched`
    lists the columns of the networks' samples, once for each sample."""
    total = mip.n_columns + logits
    A = sp.csr_array((mip.A.data, mip.A.indices, mip.A.indptr), shape=(mip.n_rows, total))
    if links:
        lengths = [columns.size for columns, *_ in links]
        more = sp.csr_array(
            (
                np.concatenate([entries for _, entries, *_ in links]),
                (np.repeat(np.arange(len(links)), lengths), np.concatenate([c for c, *_ in links])),
            ),
            shape=(len(links), total),
        )
        A = sp.vstack([A, more], format="csr")
    A = A.copy()
    A.eliminate_zeros()
    return HostRows(
        A,
        np.append(mip.row_lower, [low for *_, low, _ in links]),
        np.append(mip.row_upper, [high for *_, high in links]),
        np.append(mip.cost, np.zeros(logits)),
        mip.offset,
        np.append(mip.integer, np.zeros(logits, dtype=bool)),
        np.bincount(A.indices, minlength=total) + np.bincount(touched, minlength=total),
    ).with_cutoff()


def class_links(
    columns: IntArray, logits: IntArray, slack: FloatArray, low: FloatArray, high: FloatArray
) -> list[Link]:
    """The rows of one sample's class: its columns, its logits and their bounds."""
    if columns.size == 1:
        pair = np.array([logits[0], columns[0]])
        up, down = max(0.0, high[0] - slack[1]), max(0.0, -low[0] - slack[0])
        return [
            (pair, np.array([1.0, -up]), -np.inf, slack[1] + ROOM * (1.0 + up)),
            (pair, np.array([1.0, -down]), -slack[0] - down - ROOM * (1.0 + down), np.inf),
        ]
    rows = [(columns, np.ones(columns.size), 1.0, 1.0)]
    for k in range(columns.size):
        for j in range(columns.size):
            if j != k:
                big = max(0.0, high[j] - low[k] - slack[k, j])
                limit = slack[k, j] + big + ROOM * (1.0 + big)
                three = np.array([logits[j], logits[k], columns[k]])
                rows.append((three, np.array([1.0, -1.0, big]), -np.inf, limit))
    return rows


ROOM = 1e-12
"""Relative: a multiple of the rounding of the few sums in a row on logits."""
