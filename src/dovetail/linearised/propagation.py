"""All columns computed from the integers: by equations and by the networks, level by level, for many points
at once.

An equation with one unknown column determines that column; a network with known inputs determines its
outputs. Other columns are held; a column with a cost that is in no other row is set to the best value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.sparse import entries_of, times
from dovetail.linearised.networks import Networks
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.run import work
from dovetail.structure.definitions import DefinedColumns, Equations

LEVEL_EFFORT = 5e-5
"""Effort in seconds of a level without its networks, fitted on eight problems (see `Work.effort`)."""


@dataclass(frozen=True, eq=False)
class _NetworkStage:
    """One stage of the networks."""

    networks: Networks
    stage: int

    def fill(self, Z: FloatArray) -> None:
        self.networks.predict_stage(Z, self.stage)


@dataclass(frozen=True, eq=False)
class PushedColumn:
    """A column that is moved as far as its rows and bounds allow, in the direction of its cost."""

    column: int
    row_numbers: IntArray
    rows: sp.csr_array
    coefficient: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    lower: float
    upper: float
    cost: float

    def fill(self, Z: FloatArray) -> None:
        """Compute the column, if it is bounded in that direction."""
        best = self.best(times(self.rows, Z) - np.outer(Z[:, self.column], self.coefficient))
        Z[:, self.column] = np.where(np.isfinite(best), best, Z[:, self.column])

    def best(self, others: FloatArray) -> FloatArray:
        """The best value of the column, given the activities (..., rows) of the other columns."""
        one, two = (self.row_lower - others) / self.coefficient, (self.row_upper - others) / self.coefficient
        if self.cost > 0:
            return np.asarray(np.max(np.minimum(one, two), axis=-1, initial=self.lower))
        return np.asarray(np.min(np.maximum(one, two), axis=-1, initial=self.upper))


class Propagation:
    """The order in which columns are computed."""

    def __init__(self, scaled: ScaledProblem) -> None:
        self._scaled, host = scaled, scaled.host
        known = host.integer | (host.lower == host.upper)
        known[scaled.networks.outputs] = False
        self._levels: list[DefinedColumns | _NetworkStage] = []
        self.pushed_levels: list[PushedColumn] = []
        """The last levels: pushed columns."""
        equations = Equations(host)
        is_output = np.zeros(host.n_columns, dtype=bool)
        is_output[scaled.networks.outputs] = True
        self.holds_inputs = False
        """Whether networks read columns that neither integers nor rows determine; such columns are held
        fixed."""
        for number, stage in enumerate(scaled.problem.stages):
            self._levels += equations.define(known, is_output)
            inputs = np.unique(np.concatenate([block.inputs[samples].ravel() for block, samples in stage]))
            self.holds_inputs |= not np.all(known[inputs])
            known[inputs] = True
            self._levels.append(_NetworkStage(scaled.networks, number))
            for block, samples in stage:
                known[block.outputs[samples].ravel()] = True
        self._levels += equations.define(known, is_output)
        self._push(known)

    def _push(self, known: BoolArray) -> None:
        host = self._scaled.host
        by_column = sp.csc_array(host.A)
        for j in np.flatnonzero(~known & (host.cost != 0.0)):
            rows, coefficient = entries_of(by_column, j)
            alone = (abs(host.A[rows]) > 0).astype(np.float64) @ (~known).astype(np.float64) == 1.0
            if rows.size and np.all(alone):
                self.pushed_levels.append(
                    PushedColumn(
                        int(j),
                        np.asarray(rows),
                        sp.csr_array(host.A[rows]),
                        coefficient,
                        host.row_lower[rows],
                        host.row_upper[rows],
                        float(host.lower[j]),
                        float(host.upper[j]),
                        float(host.cost[j]),
                    )
                )

    def fill(self, Z: FloatArray) -> None:
        """Compute every column that the integers (and held columns) determine."""
        levels = (*self._levels, *self.pushed_levels)
        for level in levels:
            level.fill(Z)
        work.count(effort=len(levels) * LEVEL_EFFORT)

    @property
    def pushed(self) -> IntArray:
        """The columns that are pushed to a limit."""
        return np.array([level.column for level in self.pushed_levels], dtype=np.int64)
