"""The model of branch and bound: linear rows, networks, tree ensembles, and a first box over all columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dovetail.branching.host import HostRows
from dovetail.branching.networks import NetworkSamples
from dovetail.branching.tree_ensembles import NO_TREES, TreeSamples
from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.mip import Mip
from dovetail.networks.graph import Elementwise, Enclosed

MOST_ENTRIES = 400_000
"""Largest number of entries of a box's LP: beyond that one LP takes seconds."""


@dataclass(frozen=True, eq=False)
class Model:
    """Columns of variables, logits and neurons, in minimisation form."""

    host: HostRows
    networks: tuple[NetworkSamples, ...]
    lower: FloatArray
    upper: FloatArray
    columns: int
    """Number of the problem's own columns, which come first."""
    trees: TreeSamples = NO_TREES

    @property
    def entries(self) -> int:
        """Approximate number of entries of a box's LP."""
        return int(self.host.A.nnz) + sum(one.samples * one.entries for one in self.networks)

    @property
    def solvable(self) -> bool:
        """Whether a box has an LP, with a line for every value, small enough to be solved for many boxes."""
        steps = (step for one in self.networks for step in one.graph.steps)
        return self.entries <= MOST_ENTRIES and not any(isinstance(s.operation, Enclosed) for s in steps)

    @cached_property
    def relus(self) -> BoolArray:
        """The columns that ReLUs read."""
        found = np.zeros(self.lower.size, dtype=bool)
        for one in self.networks:
            for step in one.graph.steps:
                if isinstance(step.operation, Elementwise) and step.operation.kind == "relu":
                    found[one.column(step.sources[0])] = True
        return found

    def open_neurons(self, lower: FloatArray, upper: FloatArray) -> BoolArray:
        """The columns that nonlinear steps read which are not linear between these bounds."""
        found = np.zeros(self.lower.size, dtype=bool)
        for one in self.networks:
            for columns in one.inner.values():
                found[columns] = True
        wide = upper > lower
        return found & np.where(self.relus, (lower < 0.0) & (upper > 0.0), wide)

    def exactly(self, mip: Mip) -> Model:
        """The same with the rows and bounds as they are written."""
        host, m = self.host, mip.n_rows
        row_lower, row_upper = host.row_lower.copy(), host.row_upper.copy()
        row_lower[:m], row_upper[:m] = mip.row_lower, mip.row_upper
        made = replace(self, host=replace(host, row_lower=row_lower, row_upper=row_upper))
        return made.within(mip.lower, mip.upper)

    def within(self, lower: FloatArray, upper: FloatArray) -> Model:
        """The same in a smaller box of the problem's columns."""
        low, high, n = self.lower.copy(), self.upper.copy(), self.columns
        low[:n], high[:n] = np.maximum(low[:n], lower), np.minimum(high[:n], upper)
        return replace(self, lower=low, upper=high)

    def tighten(
        self,
        lower: FloatArray,
        upper: FloatArray,
        cutoff: float,
        evaluated: BoolArray | None = None,
    ) -> BoolArray:
        """Tighten N boxes, in place; whether each may contain a point that costs at most `cutoff`.
        `evaluated`: (N,) the boxes whose networks are evaluated; all by default."""
        np.maximum(lower, self.lower, out=lower)
        np.minimum(upper, self.upper, out=upper)
        self.host.tighten(lower, upper, cutoff)
        alive = np.flatnonzero(~(lower > upper).any(1))
        low, high = lower[alive], upper[alive]
        known = low.copy(), high.copy()
        some = np.arange(alive.size) if evaluated is None else np.flatnonzero(evaluated[alive])
        part = low[some], high[some]
        for one in self.networks:
            one.tighten(*part)
        low[some], high[some] = part
        self.trees.tighten(low, high)
        self.host.tighten(low, high, cutoff, known)
        for one in self.networks:
            one.settle(low, high)
        lower[alive], upper[alive] = low, high
        return np.asarray(~(lower > upper).any(1))
