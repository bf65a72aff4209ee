"""Cutting planes from tables of tree outputs, for the LPs of the open boxes of a tree.

A cutting plane that cuts off the LP solution of a box is found among the cells of the box
(`tree_tables.py`). The plane holds in this box and in all boxes within it, each with its own right-hand side,
but not outside. The multipliers of all planes of one table together give a lower bound on the cost of each
cell. Cells whose bound reaches the objective limit are removed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dovetail.branching.host import LocalRow
from dovetail.branching.tree import Node, Tree
from dovetail.branching.tree_tables import TablePart, TreeTable, tree_tables
from dovetail.core.arrays import FloatArray
from dovetail.run.budget import Budget

LITTLE, PATIENCE = 0.005, 4
"""Fraction of the gap: the first box stops after this number of LPs with new rows that gain less; other boxes
stop at the first."""
MOST_ROWS = 300
"""Largest number of rows of an LP; those that were unused for the longest time are removed."""
HAIR = 1e-9
"""Relative tolerance: many times the rounding of a sum of products."""


class TableRows:
    """The rows of one tree."""

    def __init__(self) -> None:
        self._tables: list[TreeTable] | None = None
        self._rows: list[LocalRow] = []
        self._used: list[int] = []
        """For each row: the last box whose LP used it."""
        self._boxes = 0

    def add(self, tree: Tree, node: Node, goal: float, budget: Budget) -> None:
        """Rows for a tightened box, as long as they raise its bound; the box may become smaller."""
        first = self._tables is None
        if self._tables is None:
            self._tables = tree_tables(tree.model, node.lower, node.upper, budget)
        if self._tables is None:
            return
        if not self._tables:
            tree.tables = None
            return
        self._boxes += 1
        if self._rows and tree.model.host.local[-len(self._rows) :] != tuple(self._rows):
            self._write(tree)  # another caller has changed the rows, or restored them
        slow, before = 0, -math.inf
        parts = [TablePart(t, node.lower[t.inputs], node.upper[t.inputs]) for t in self._tables]
        lower, upper = node.lower[None], node.upper[None]
        while slow < (PATIENCE if first else 1) and not budget.over:
            solved = tree.lp.solve(lower, upper, budget)[0]
            if solved.multipliers is None:
                return
            host = tree.model.host
            bound = float(solved.multipliers.bound(host, tree.model.networks, lower, upper, goal)[0][0])
            if solved.infeasible:
                node.bound = math.inf if bound > 0.0 else node.bound
                return
            weights = solved.multipliers.rows[0, -1 - len(self._rows) : -1].clip(min=0.0)
            for k in np.flatnonzero(weights).tolist():
                self._used[k] = self._boxes
            node.bound = max(node.bound, bound)
            if node.bound < goal and not self._leave_out(node, bound, weights, goal):
                node.bound = goal  # the ranges from several tables are intersected
            if node.bound >= goal or solved.x is None:
                return
            gap = goal - node.bound if math.isfinite(goal) else abs(node.bound)
            slow = 0 if bound - before > LITTLE * gap else slow + 1
            before = max(before, bound)
            found = []
            for table, part in zip(self._tables, parts, strict=True):
                i, o = table.inputs, table.outputs
                row = part.cut_off(solved.x[i], solved.x[o], budget)
                found += [] if row is None else [LocalRow(i, o, row[0], table, row[1])]
            if not found:
                return
            self._rows += found
            self._used += [self._boxes] * len(found)
            self._write(tree)

    def _leave_out(self, node: Node, bound: float, weights: FloatArray, goal: float) -> bool:
        """Exclude the cells of a box that contain no point better than the goal; returns whether any cells
        remain."""
        room = goal - bound
        if not math.isfinite(room) or not math.isfinite(bound):
            return True
        room += HAIR * (abs(goal) + abs(bound))
        lower, upper = node.lower.copy(), node.upper.copy()
        for table, rows, some in self._active(weights):
            values, j = [row.values for row in rows], table.inputs
            said = float(some @ table.least_in(values, lower[None, j], upper[None, j])[0])
            known, first = table.known(values, some, lower[j], upper[j])
            kept = known - said <= room + HAIR * abs(said)
            if not np.any(kept):
                return False
            low, high = table.within(first, kept)
            node.lower[j], node.upper[j] = np.maximum(node.lower[j], low), np.minimum(node.upper[j], high)
        return not np.any(node.lower > node.upper)

    def _active(self, weights: FloatArray) -> Iterator[tuple[TreeTable, list[LocalRow], FloatArray]]:
        """For each table the rows with multipliers, and these multipliers."""
        for table in self._tables or ():
            mine = [k for k, row in enumerate(self._rows) if row.cells is table and weights[k] > 0.0]
            if mine:
                yield table, [self._rows[k] for k in mine], weights[mine]

    def _write(self, tree: Tree) -> None:
        """Put rows into the LP, before the cost's row; they replace the earlier ones."""
        if len(self._rows) > MOST_ROWS:
            kept = np.sort(np.argsort(self._used, kind="stable")[-MOST_ROWS // 2 :])
            self._rows, self._used = [self._rows[k] for k in kept], [self._used[k] for k in kept]
        host = tree.model.host
        others = [row for row in host.local if not isinstance(row.cells, TreeTable)]
        tree.use(replace(tree.model, host=host.with_local([*others, *self._rows])))
