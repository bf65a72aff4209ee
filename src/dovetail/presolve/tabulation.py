"""Blocks whose inputs take few values, written into the MIP as tables: exact, whatever the network.

- no free input: y = f, one row;
- one binary: y = f(0) + (f(1) - f(0)) x, one row;
- several binaries: y and x are the same convex combination of the table's rows. The corners of a cube
  are no combination of others, so the weights need not be integer;
- general integers: the weights are binaries.

A sample whose network says something that no row can hold (infinity, NaN, or beyond what engines take) at
any of its values stays a block: nothing is known then of what engines make of the others.

A derivative with respect to a binary says nothing about its two values, so tables come first.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.mip import LARGEST
from dovetail.core.problem import Problem
from dovetail.presolve.boxes import Box
from dovetail.presolve.extended import Extended, Fill, Writer
from dovetail.presolve.grid import grid
from dovetail.presolve.host import limits_within

MOST_ROWS = 256
"""The largest table of one sample."""
MOST_COLUMNS = 20_000
"""The most columns that tables may add."""


@dataclass(frozen=True, eq=False)
class _Table:
    """All values of one sample's free inputs, and what its network says of each."""

    columns: IntArray
    """The free inputs, each once."""
    points: FloatArray
    """(k, free)."""
    inputs: FloatArray
    """(k, d) complete rows of inputs."""
    binary: bool

    @property
    def weights(self) -> int:
        """Columns that the table needs."""
        k = len(self.points)
        return k if k > 2 or (k == 2 and not self.binary) else 0


def tabulate(problem: Problem, box: Box) -> Extended | None:
    """The problem with every sample that allows it as a table, or None if there is none."""
    lower, upper, integer = limits_within(problem, box.lower, box.upper)
    writer = Writer(problem.mip.columns)
    fills: list[Fill] = []
    blocks = []
    for block in problem.blocks:
        tables = [_table(row, lower, upper, integer) for row in block.inputs]
        written = np.zeros(block.samples, dtype=bool)
        planned = writer.size
        for i, table in enumerate(tables):
            if table is not None and planned + table.weights <= MOST_COLUMNS:
                written[i] = True
                planned += table.weights
        kept = [table for table, done in zip(tables, written, strict=True) if table is not None and done]
        if kept:
            answers = block.predictor.predict(np.concatenate([t.inputs for t in kept]))
            ends = np.cumsum([len(t.inputs) for t in kept])[:-1]
            for row, table, said in zip(np.flatnonzero(written), kept, np.split(answers, ends), strict=True):
                if _writable(table, said):
                    fills += _write(writer, table, block.outputs[row], block.outcome(said))
                else:
                    written[row] = False
        if not np.all(written):
            blocks.append(_without(block, written))
    if all(a is b for a, b in itertools.zip_longest(blocks, problem.blocks)):
        return None
    return Extended(problem.derived(writer.extend(problem.mip), tuple(blocks)), problem, tuple(fills))


def _writable(table: _Table, values: FloatArray) -> bool:
    """Whether rows can hold a table: all of it finite, and within what engines take."""
    reach = np.max(np.abs(table.points), initial=1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.max(np.abs(values)) * (reach if table.weights == 0 else 1.0)
    return bool(np.isfinite(largest) and max(largest, reach) <= LARGEST)


def _without(block: Block, written: BoolArray) -> Block:
    if not np.any(written):
        return block
    return replace(block, inputs=block.inputs[~written], outputs=block.outputs[~written])


def _table(inputs: IntArray, lower: FloatArray, upper: FloatArray, integer: BoolArray) -> _Table | None:
    """The table of one sample, or None where an input is continuous or there are too many rows."""
    low, high = lower[inputs], upper[inputs]
    free = high > low
    if np.any(free & ~integer[inputs]) or not np.all(np.isfinite(high - low)):
        return None
    columns = np.unique(inputs[free])
    points = grid(columns, lower, upper, MOST_ROWS)
    if points is None:
        return None
    counts = np.floor(upper[columns]) - np.ceil(lower[columns]) + 1
    rows = np.tile(low, (len(points), 1))
    rows[:, free] = points[:, np.searchsorted(columns, inputs[free])]
    return _Table(columns, points, rows, bool(np.all(counts == 2)))


def _write(writer: Writer, table: _Table, outputs: IntArray, values: FloatArray) -> list[Fill]:
    if table.weights == 0:
        rise = values[-1] - values[0]
        for o, y in enumerate(outputs):
            if len(values) == 1 or abs(rise[o]) < 1e-9:
                writer.row([y], np.ones(1), values[0, o], values[0, o])
            else:
                base = values[0, o] - rise[o] * table.points[0, 0]
                writer.row([y, table.columns[0]], np.array([1.0, -rise[o]]), base, base)
        return []
    count = len(values)
    theta = writer.columns(np.zeros(count), np.ones(count), integer=not table.binary)
    writer.row(theta, np.ones(count), 1.0, 1.0)
    for place, j in enumerate(table.columns):
        writer.row([j, *theta], np.concatenate([[1.0], -table.points[:, place]]), 0.0, 0.0)
    for o, y in enumerate(outputs):
        writer.row([y, *theta], np.concatenate([[1.0], -values[:, o]]), 0.0, 0.0)

    def fill(x: FloatArray) -> FloatArray:
        same: BoolArray = np.all(np.round(x[table.columns]) == table.points, axis=1)
        return same.astype(np.float64)

    return [fill]
