"""Rows that hold for one network each, by cells of its inputs.

The LP of a box takes a network neuron by neuron, and is far from it where the box is wide. Over a network's
few inputs alone cells know more (`network_cells.py`): at the LP's point they find a row `g x + m y >= least`
that cuts it off. A row holds in the whole first box, and its right-hand side is higher in smaller ones, by
the cells that these meet. With many networks rows do what no tree over all of them could: their cells add up
here, and multiply there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from dovetail.branching.host import HostRows
from dovetail.branching.model import Model
from dovetail.branching.network_cells import NetworkCells, few_inputs
from dovetail.branching.tree import Node, Tree
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.deadline import require_time
from dovetail.run.budget import Budget

LITTLE, PATIENCE = 0.005, 4
"""Of the gap: so many LPs in a row that gain less are the last. One that moves nothing may come before one
that does."""


class _Sample(NamedTuple):
    """One sample of a network, and its cells."""

    inputs: IntArray
    outputs: IntArray
    cells: NetworkCells


class _Row(NamedTuple):
    """entries x >= least, over the inputs and then the outputs of a sample."""

    sample: int
    entries: FloatArray
    values: FloatArray
    """(cells,) what it is at least on each."""


class _Sides:
    """Lower sides of rows, box by box."""

    def __init__(self, samples: Sequence[_Sample], rows: Sequence[_Row]) -> None:
        self._count = len(rows)
        self._parts = []
        for sample in sorted({row.sample for row in rows}):
            mine = np.array([k for k, row in enumerate(rows) if row.sample == sample])
            self._parts.append((samples[sample], mine, np.stack([rows[k].values for k in mine])))

    def of(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(N, rows) over N boxes; what a box without cells is, others have to say."""
        sides = np.empty((len(lower), self._count))
        for sample, rows, values in self._parts:
            met = sample.cells.met(lower[:, sample.inputs], upper[:, sample.inputs])
            met[~met.any(1)] = True
            for row, value in zip(rows, values, strict=True):
                sides[:, row] = np.where(met, value, np.inf).min(1)
        return sides


def add_network_rows(tree: Tree, root: Node, goal: float, budget: Budget) -> None:
    """To a tree, as long as they raise the bound of its first box."""
    made, samples, rows = tree.model, _samples(tree.model, root), list[_Row]()
    slow, before = 0, -math.inf
    lower, upper = root.lower[None], root.upper[None]
    while samples and slow < PATIENCE and not budget.over:
        solved = tree.lp.solve(lower, upper, budget)[0]
        if solved.multipliers is None or solved.x is None:
            return
        bound = float(solved.multipliers.bound(tree.model.host, made.networks, lower, upper, goal)[0][0])
        root.bound = max(root.bound, bound)
        slow = 0 if bound - before > LITTLE * (goal - root.bound) else slow + 1
        before = max(before, bound)
        found = [] if root.bound >= goal else _cutting_off(samples, solved.x, budget)
        if not found:
            return
        rows += found
        tree.use(replace(made, host=_more(made.host, samples, rows)))


def _samples(made: Model, root: Node) -> list[_Sample]:
    """Those that read few inputs, with cells over their part of a box."""
    found = []
    lower, upper = root.lower, root.upper
    for one in made.networks:
        few = few_inputs(lower[one.inputs], upper[one.inputs])
        for k in np.flatnonzero(few).tolist():
            require_time()
            inputs, outputs = one.inputs[k], one.outputs[k]
            box, limits = (lower[inputs], upper[inputs]), (lower[outputs], upper[outputs])
            cells = NetworkCells(one.planes, one.slack[k], box, made.host.integer[inputs], limits)
            found += [_Sample(inputs, outputs, cells)] if len(cells) else []
    return found


def _cutting_off(samples: Sequence[_Sample], x: FloatArray, budget: Budget) -> list[_Row]:
    """Rows that a point does not meet, one of each sample at most."""
    found = []
    for k, (inputs, outputs, cells) in enumerate(samples):
        cut = None if budget.over else cells.separated(x[inputs], x[outputs], budget)
        if cut is not None:
            entries, values = np.concatenate(cut), cells.least(*cut)
            if entries @ x[np.append(inputs, outputs)] < values.min():
                found.append(_Row(k, entries, values))
    return found


def _more(host: HostRows, samples: Sequence[_Sample], rows: Sequence[_Row]) -> HostRows:
    """With these rows before the last one, the cost's."""
    columns = [np.append(samples[row.sample].inputs, samples[row.sample].outputs) for row in rows]
    more = sp.csr_array(
        (
            np.concatenate([row.entries for row in rows]),
            (np.repeat(np.arange(len(rows)), [c.size for c in columns]), np.concatenate(columns)),
        ),
        shape=(len(rows), host.columns),
    )
    more.eliminate_zeros()
    least = [row.values.min() for row in rows]
    return replace(
        host,
        A=sp.vstack([host.A[:-1], more, host.A[-1:]], format="csr"),
        row_lower=np.concatenate([host.row_lower[:-1], least, host.row_lower[-1:]]),
        row_upper=np.concatenate([host.row_upper[:-1], np.full(len(rows), np.inf), host.row_upper[-1:]]),
        entries=host.entries + np.bincount(more.indices, minlength=host.columns),
        local=(host.A.shape[0] - 1, _Sides(samples, rows)),
    )
