"""Which components are alike: the same rows, bounds, costs, networks and entries in coupling rows.

Alike components cost the same at any prices, so that one proof serves all of them: every column of one is a
column of the others.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dovetail.analysis.component_problem import component_columns
from dovetail.analysis.components import Components
from dovetail.core.arrays import IntArray
from dovetail.core.block import Block
from dovetail.core.problem import Problem


def alike(problem: Problem, parts: Components, most: int) -> list[tuple[IntArray, IntArray]] | None:
    """(members, columns) of each kind of component, and the rows of its first; None: over `most` kinds.

    Columns are matched by their order in the problem: components that were written in different orders count
    as different, which costs time and nothing else.
    """
    kinds: dict[bytes, tuple[list[IntArray], IntArray]] = {}
    by_column = sp.csc_array(problem.mip.A)
    networks = {block.name: _network(block) for block in problem.blocks}
    for c, columns in enumerate(component_columns(problem, parts)):
        rows = np.flatnonzero(parts.row_owner == c)
        key = _key(problem, networks, by_column, columns, rows)
        kinds.setdefault(key, ([], rows))[0].append(columns)
        if len(kinds) > most:
            return None
    return [(np.array(columns), rows) for columns, rows in kinds.values()]


def _key(
    problem: Problem, networks: dict[str, bytes], by_column: sp.csc_array, columns: IntArray, rows: IntArray
) -> bytes:
    """Everything that tells components apart; own rows by their order, coupling rows by number."""
    mip = problem.mip
    place = np.full(mip.n_columns, -1)
    place[columns] = np.arange(columns.size)
    number = np.arange(mip.n_rows) + rows.size  # coupling rows keep their own numbers
    number[rows] = np.arange(rows.size)
    entries = sp.csc_array(by_column[:, columns]).tocoo()
    order = np.lexsort((entries.col, number[entries.row]))
    parts = [
        number[entries.row][order], entries.col[order], entries.data[order], mip.cost[columns],
        mip.lower[columns], mip.upper[columns], mip.integer[columns],
        mip.row_lower[rows], mip.row_upper[rows],
    ]  # fmt: skip
    own = []
    for block in problem.blocks:
        mine = np.flatnonzero(place[block.outputs[:, 0]] >= 0)
        if mine.size:
            parts += [place[block.inputs[mine]].ravel(), place[block.outputs[mine]].ravel()]
            own.append(networks[block.name])
    return b"|".join([*(np.ascontiguousarray(part).tobytes() for part in parts), *own])


def _network(block: Block) -> bytes:
    """What a network computes, and how; of one whose layers are not known, which it is."""
    known = None
    if block.description.layers_if_known() is not None:
        known = block.description.program_if_known(block.inputs.shape[1])
    if known is None or known.arithmetic is None:
        return block.name.encode()
    parts = [part for operation in known.operations for part in operation.parts()]
    kind = f"{block.classifies} {block.threshold} {known.arithmetic}".encode()
    return b"|".join([kind, *(part.encode() if isinstance(part, str) else part.tobytes() for part in parts)])
