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
from dovetail.branching.network_cells import LITTLE, PATIENCE, NetworkCells, few_inputs
from dovetail.branching.tree import Node, Tree
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.deadline import require_time
from dovetail.run.budget import Budget


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


class NetworkRows:
    """Those of a tree; they go on where their time was over."""

    def __init__(self) -> None:
        self._samples: list[_Sample] | None = None
        self._rows: list[_Row] = []
        self._slow, self._before = 0, -math.inf

    def add(self, tree: Tree, root: Node, goal: float, budget: Budget) -> None:
        """As long as they raise the bound of the first box; it has one afterwards, also without rows."""
        if self._samples is None:
            self._samples = _samples(tree.model, root)
        lower, upper = root.lower[None], root.upper[None]
        while self._slow < PATIENCE and not budget.over:
            solved = tree.lp.solve(lower, upper, budget)[0]
            if solved.multipliers is None or solved.x is None:
                return
            host = tree.model.host
            bound = float(solved.multipliers.bound(host, tree.model.networks, lower, upper, goal)[0][0])
            root.bound = max(root.bound, bound)
            self._slow = 0 if bound - self._before > LITTLE * (goal - root.bound) else self._slow + 1
            self._before = max(self._before, bound)
            found = [] if root.bound >= goal else _cutting_off(self._samples, solved.x, budget)
            if not found:
                return
            self._rows += found
            tree.use(replace(tree.model, host=_more(host, self._samples, self._rows, len(found))))


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
        row = None if budget.over else cells.cut_off(x[inputs], x[outputs], budget)
        found += [] if row is None else [_Row(k, *row)]
    return found


def _more(host: HostRows, samples: Sequence[_Sample], rows: Sequence[_Row], fresh: int) -> HostRows:
    """With the last of these rows, which it does not have yet, before its own last one, the cost's."""
    new = rows[len(rows) - fresh :]
    columns = [np.append(samples[row.sample].inputs, samples[row.sample].outputs) for row in new]
    more = sp.csr_array(
        (
            np.concatenate([row.entries for row in new]),
            (np.repeat(np.arange(fresh), [c.size for c in columns]), np.concatenate(columns)),
        ),
        shape=(fresh, host.columns),
    )
    more.eliminate_zeros()
    least = [row.values.min() for row in new]
    return replace(
        host,
        A=sp.vstack([host.A[:-1], more, host.A[-1:]], format="csr"),
        row_lower=np.concatenate([host.row_lower[:-1], least, host.row_lower[-1:]]),
        row_upper=np.concatenate([host.row_upper[:-1], np.full(fresh, np.inf), host.row_upper[-1:]]),
        entries=host.entries + np.bincount(more.indices, minlength=host.columns),
        local=(host.A.shape[0] - 1 - (len(rows) - fresh), _Sides(samples, rows)),
    )
