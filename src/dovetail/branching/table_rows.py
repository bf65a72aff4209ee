"""Rows of tables of trees, in a tree's LP: those that the open boxes need.

A row that cuts off the point of a box's LP is found among the cells of that box (`tree_tables.py`). It holds
in this box and in all within it, each with a right-hand side of its own; elsewhere it says nothing. The
multipliers of the rows of one table, together, say of each cell what points in it cost at least: cells that
cost as much as the goal go, and a box is divided where the cells that cost least are far apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from dovetail.branching.host import HostRows, Sides
from dovetail.branching.tree import Node, Tree
from dovetail.branching.tree_tables import Pyramid, TablePart, TreeTable, tree_tables
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.program import Program
from dovetail.run.budget import Budget

LITTLE, PATIENCE = 0.005, 4
"""Of the gap: so many LPs with new rows, one after the other, that gain less are the last of the first box;
of others the first of these is."""
MOST_ROWS = 300
"""Of an LP; those that were of no use for longest go."""
CHOICE, CHOICE_GAP = 40, 1e-4
"""Cells of each table that a point is looked for in, and how good it has to be among these."""
HAIR = 1e-9
"""Relative: what a sum of products rounds off, many times over."""


class _TableRow(NamedTuple):
    """entries x >= values, over the inputs and then the outputs of a table."""

    table: int
    entries: FloatArray
    values: Pyramid


class _TableSides:
    """Lower sides of rows, box by box: those of others first."""

    def __init__(
        self,
        others: tuple[int, Sides] | None,
        before: int,
        tables: Sequence[TreeTable],
        rows: Sequence[_TableRow],
    ) -> None:
        self.others, self.before = others, before
        self._count = len(rows)
        self._parts = []
        for number in sorted({row.table for row in rows}):
            mine = np.array([k for k, row in enumerate(rows) if row.table == number])
            self._parts.append((tables[number], mine, [rows[k].values for k in mine]))

    def of(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """(N, rows) over N boxes."""
        sides = np.empty((len(lower), self._count))
        for table, rows, values in self._parts:
            sides[:, rows] = table.least_in(values, lower[:, table.inputs], upper[:, table.inputs])
        if self.others is None:
            return sides
        return np.hstack([self.others[1].of(lower, upper), sides])


class TableRows:
    """Those of one tree."""

    def __init__(self) -> None:
        self._tables: list[TreeTable] | None = None
        self._rows: list[_TableRow] = []
        self._used: list[int] = []
        """Of each row: the last box whose LP had use for it."""
        self._written: Sides | None = None
        """Their sides in the LP, as they were last written."""
        self._boxes = 0
        self._last: tuple[Node, tuple[_TableRow, ...], FloatArray] | None = None
        """The last box whose LP had a point, its rows, and their multipliers."""

    def add(self, tree: Tree, node: Node, goal: float, budget: Budget) -> None:
        """Rows for a tightened box, as long as they raise its bound; the box may become smaller."""
        first = self._tables is None
        if self._tables is None:
            self._tables = tree_tables(tree.model, node.lower, node.upper)
        if not self._tables:
            tree.tables = None
            return
        self._boxes += 1
        if self._rows and _sides(tree.model.host) is not self._written:
            self._write(tree)  # somebody else has changed the rows, or has brought back what they were
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
                node.bound = goal  # what one table leaves of a column, another leaves out
            if node.bound >= goal or solved.x is None:
                return
            self._last = node, tuple(self._rows), weights
            gap = goal - node.bound if math.isfinite(goal) else abs(node.bound)
            slow = 0 if bound - before > LITTLE * gap else slow + 1
            before = max(before, bound)
            found = []
            for k, (table, part) in enumerate(zip(self._tables, parts, strict=True)):
                row = part.cut_off(solved.x[table.inputs], solved.x[table.outputs], budget)
                found += [] if row is None else [_TableRow(k, *row)]
            if not found:
                return
            self._rows += found
            self._used += [self._boxes] * len(found)
            self._write(tree)

    def _leave_out(self, node: Node, bound: float, weights: FloatArray, goal: float) -> bool:
        """The cells of a box in which nothing is better than the goal; whether any others are left."""
        room = goal - bound
        if not math.isfinite(room) or not math.isfinite(bound):
            return True
        room += HAIR * (abs(goal) + abs(bound))
        lower, upper = node.lower.copy(), node.upper.copy()
        for table, rows, some in self._active(self._rows, weights):
            if not rows:
                continue
            values, j = [row.values for row in rows], table.inputs
            said = float(some @ table.least_in(values, lower[None, j], upper[None, j])[0])
            known, first = table.known(values, some, lower[j], upper[j])
            kept = known - said <= room + HAIR * abs(said)
            if not np.any(kept):
                return False
            low, high = table.within(first, kept)
            node.lower[j], node.upper[j] = np.maximum(node.lower[j], low), np.minimum(node.upper[j], high)
        return not np.any(node.lower > node.upper)

    def divided(
        self, node: Node, weights: FloatArray, x: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """See `Tables`; where several tables read a column, the one that has most open says where."""
        lower, upper, weights = node.lower, node.upper, weights[-1 - len(self._rows) : -1].clip(min=0.0)
        open_, most, below, above = np.zeros(lower.size), np.zeros(lower.size), lower.copy(), upper.copy()
        for table, rows, some in self._active(self._rows, weights):
            if not rows:
                continue
            j = table.inputs
            known, first = table.known([row.values for row in rows], some, lower[j], upper[j])
            entries = some @ np.stack([row.entries for row in rows])
            point = np.append(x[j], x[table.outputs])
            found = table.divided(known, first, entries, point, lower[j], upper[j])
            better = found[0] > most[j]
            most[j[better]], below[j[better]], above[j[better]] = (part[better] for part in found)
            open_[j] += found[0]
        return open_, below, above

    def _active(
        self, rows: Sequence[_TableRow], weights: FloatArray
    ) -> Iterator[tuple[TreeTable, list[_TableRow], FloatArray]]:
        """Of each table the rows that have multipliers, and these."""
        for number, table in enumerate(self._tables or ()):
            mine = [k for k, row in enumerate(rows) if row.table == number and weights[k] > 0.0]
            yield table, [rows[k] for k in mine], weights[mine]

    def point(self, tree: Tree, budget: Budget) -> FloatArray | None:
        """The best of those cells that cost least in the last box: one of each table, by a small MIP."""
        if self._last is None or not self._tables:
            return None
        node, rows, weights = self._last
        host, lower, upper = tree.model.host, node.lower, node.upper
        n, m = host.columns, host.A.shape[0] - 1 if host.local is None else host.local[0]
        entries, links, sides, owners, first = [], [], [], list[IntArray](), n
        for table, active, some in self._active(rows, weights):
            j = table.inputs
            known, begin = table.known([row.values for row in active], some, lower[j], upper[j])
            best = np.argsort(known, axis=None, kind="stable")[:CHOICE]
            cells = np.stack(np.unravel_index(best, known.shape), 1) + begin
            corners, owner = table.corners(cells)
            count, chosen = len(corners), first + len(corners) + np.arange(len(cells))
            columns = np.append(j, table.outputs)
            for k, column in enumerate(columns.tolist()):  # the point is a mean of corners
                links.append(np.append(first + np.arange(count), column))
                entries.append(np.append(corners[:, k], -1.0))
                sides.append(0.0)
            for k, cell in enumerate(chosen.tolist()):  # of one cell
                links.append(np.append(first + np.flatnonzero(owner == k), cell))
                entries.append(np.append(np.ones(np.count_nonzero(owner == k)), -1.0))
                sides.append(0.0)
            links.append(chosen)
            entries.append(np.ones(chosen.size))
            sides.append(1.0)
            owners.append(chosen)
            first += count + chosen.size
        at = np.repeat(np.arange(len(links)), [part.size for part in links])
        more = sp.csr_array((np.concatenate(entries), (at, np.concatenate(links))), shape=(len(links), first))
        own = host.A[:m].tocoo()
        own = sp.csr_array((own.data, (own.row, own.col)), shape=(m, first))
        integer = np.append(host.integer, np.zeros(first - n, dtype=bool))
        integer[np.concatenate(owners)] = True
        live = LoadedHighs(
            Program(
                sp.csr_array(sp.vstack([own, more], format="csr")),
                np.append(host.row_lower[:m], sides),
                np.append(host.row_upper[:m], sides),
                np.append(lower[:n], np.zeros(first - n)),
                np.append(upper[:n], np.ones(first - n)),
                integer,
            )
        )
        live.set_objective(np.append(host.cost, np.zeros(first - n)), 0.0)
        _, x, _ = live.run(budget, CHOICE_GAP)
        return None if x is None else x[:n]

    def _write(self, tree: Tree) -> None:
        """The rows into the LP, before the cost's own; in place of those that it has."""
        if len(self._rows) > MOST_ROWS:
            kept = np.sort(np.argsort(self._used, kind="stable")[-MOST_ROWS // 2 :])
            self._rows, self._used = [self._rows[k] for k in kept], [self._used[k] for k in kept]
        host, rows, tables = tree.model.host, self._rows, self._tables or []
        sides, before, others = _sides(host), host.A.shape[0] - 1, host.local
        if isinstance(sides, _TableSides):
            before, others = sides.before, sides.others
        columns = [np.append(tables[row.table].inputs, tables[row.table].outputs) for row in rows]
        more = sp.csr_array(
            (
                np.concatenate([row.entries for row in rows]),
                (np.repeat(np.arange(len(rows)), [c.size for c in columns]), np.concatenate(columns)),
            ),
            shape=(len(rows), host.columns),
        )
        more.eliminate_zeros()
        endless = np.full(len(rows), np.inf)
        self._written = written = _TableSides(others, before, tables, rows)
        changed = replace(
            host,
            A=sp.vstack([host.A[:before], more, host.A[-1:]], format="csr"),
            row_lower=np.concatenate([host.row_lower[:before], -endless, host.row_lower[-1:]]),
            row_upper=np.concatenate([host.row_upper[:before], endless, host.row_upper[-1:]]),
            entries=host.entries + np.bincount(more.indices, minlength=host.columns),
            local=(before if others is None else others[0], written),
        )
        tree.use(replace(tree.model, host=changed))


def _sides(host: HostRows) -> Sides | None:
    return None if host.local is None else host.local[1]
