"""A canonical order of columns, rows and blocks for problems that list the same items in different orders:
the first and the last step of the presolve.

A modeller may add a predictor once for n samples or n times for one; columns and rows may have any order, and
a row may be multiplied by any number. Methods try items in their order, so that each of these forms would
behave like another problem. Here

    blocks of one predictor   are one block with all their samples
    columns                   stand as predictors read and write them; each of the others stands beside the
                              first of these that it shares a row with, by its entry there: levels of a price
                              are in the same order in all blocks
    rows                      stand by the first of these columns that they have, whose entry is positive

Columns and rows are distinguished by colours (Weisfeiler and Leman): a column begins with its place in the
blocks, its cost, its bounds; a row's colour is made of the colours and entries of its columns, a column's of
its rows. Among items with equal colours one is made the first, which distinguishes others; symmetric problems
are then equal in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.mip import SMALLEST, Mip
from dovetail.core.sparse import row_of_entries
from dovetail.reformulations.reformulated import Reformulated, picked
from dovetail.structure.colours import ODD, mixed, of_numbers, sums
from dovetail.structure.components import map_of

TURNS = 4
"""Number of colouring turns between columns and rows; columns of predictors are distinguished first. With 1,
2, 4 and 6 turns 55, 48, 48 and 46 of 351 pairs of the zoo differ after the presolve."""


DIGITS = 9
"""Number of decimals in which entries, relative to their rows, are compared."""
TIED = 200_000
"""Largest number of entries that are coloured again to break ties: a tenth of a second."""


@dataclass(frozen=True)
class OneOrder:
    """Gives the columns, rows and blocks of a problem one order."""

    name = "one order"

    def apply(self, given: Reformulated) -> Reformulated | None:
        """The problem in this order; None if no predictor determines one."""
        problem = given.problem
        if not problem.blocks:
            return None
        blocks = tuple(_joined_blocks(problem.blocks))
        order = _order(problem.mip, blocks)
        there = np.argsort(order.columns)
        placed = tuple(
            replace(block, inputs=there[block.inputs], outputs=there[block.outputs]) for block in blocks
        )
        ordered = problem.derived(order.of(problem.mip), placed)
        into = picked(order.columns, there.size)
        return Reformulated(ordered, given, into=into, back=lambda z: z[there])


def _joined_blocks(blocks: Sequence[Block]) -> Iterator[Block]:
    """Blocks of one predictor joined; blocks of one shape follow each other."""
    alike: dict[object, list[Block]] = {}
    for block in blocks:
        about, shape = block.description, (block.inputs.shape[1], block.outputs.shape[1])
        asked = (block.classifies, block.threshold, block.epsilon)
        alike.setdefault((shape, asked, about.name, about.dtypes, about.device), []).append(block)
    for several in alike.values():
        known = {id(block.predictor): block for block in several}
        maps = {number: map_of(block) if len(known) > 1 else b"" for number, block in known.items()}
        same: dict[bytes, list[Block]] = {}
        for block in several:
            same.setdefault(maps[id(block.predictor)], []).append(block)
        for first, *others in same.values():
            yield (
                first
                if not others
                else replace(
                    first,
                    inputs=np.concatenate([first.inputs, *(block.inputs for block in others)]),
                    outputs=np.concatenate([first.outputs, *(block.outputs for block in others)]),
                    training_range=None,
                )
            )


@dataclass(frozen=True, eq=False)
class _Order:
    """The new places of columns and rows."""

    columns: IntArray
    rows: IntArray
    sign: FloatArray
    """(rows,) -1 for rows that change sign."""

    def of(self, mip: Mip) -> Mip:
        """The program in this order."""
        columns, rows, sign = self.columns, self.rows, self.sign[self.rows]
        A = sp.csr_array(mip.A[rows][:, columns].multiply(sign[:, None]))
        A.sort_indices()
        ends = sign * mip.row_lower[rows], sign * mip.row_upper[rows]
        names = None if mip.names is None else [mip.names[j] for j in columns]
        row_names = None if mip.row_names is None else [mip.row_names[i] for i in rows]
        return Mip(
            mip.cost[columns], A, np.minimum(*ends), np.maximum(*ends),
            mip.lower[columns], mip.upper[columns], mip.integer[columns],
            mip.sense, mip.offset, names, row_names,
        )  # fmt: skip


def _order(mip: Mip, blocks: Sequence[Block]) -> _Order:
    """The order by predictors, then by colours."""
    A, last = mip.A, mip.n_columns
    at, size = row_of_entries(A), _units(mip)
    entry, unit = A.data * size[A.indices], np.zeros(mip.n_rows)
    np.maximum.at(unit, at, np.abs(entry))
    unit[unit == 0.0] = 1.0
    first = np.full(last, last)
    """(columns,) when a predictor first reads or writes a column."""
    met = np.concatenate([np.hstack([b.inputs, b.outputs]).ravel() for b in blocks])
    columns, when = np.unique(met, return_index=True)
    first[columns[np.argsort(when)]] = np.arange(columns.size)
    column = mixed(first.astype(np.uint64)) + mip.integer * ODD
    for number, values in enumerate((mip.sign * mip.cost * size, mip.lower / size, mip.upper / size)):
        column = mixed(column + of_numbers(values) + np.uint64(number))
    low, high = mip.row_lower / unit, mip.row_upper / unit
    start = mixed(of_numbers(low)) + of_numbers(high), mixed(of_numbers(-high)) + of_numbers(-low)
    entries = of_numbers(entry / unit[at]), of_numbers(-entry / unit[at])
    rank = np.full(mip.n_rows, last)
    np.minimum.at(rank, at, first[A.indices])
    near = np.full(last, last)
    np.minimum.at(near, A.indices, rank[at])
    near = np.where(first < last, first, near)
    nearest, share = rank[at] == near[A.indices], np.zeros(last)
    np.add.at(share, A.indices[nearest], np.abs(entry / unit[at])[nearest])
    share = np.round(share, DIGITS)
    for _ in range(max(1, TIED // max(1, A.nnz))):
        for _ in range(TURNS):
            ways = [mixed(begin + sums(A, column, kind)) for begin, kind in zip(start, entries, strict=True)]
            turned, row = ways[1] < ways[0], np.minimum(*ways)
            kind = np.where(turned[at], entries[1], entries[0])
            column = mixed(column)
            np.add.at(column, A.indices, mixed(row[at] + kind))
        order = np.lexsort((column, share, first, near))
        tied = np.flatnonzero((np.diff(near[order]) == 0) & (column[order][1:] == column[order][:-1]))
        if not tied.size:
            break
        one = order[tied[:1]]
        column[one] = mixed(column[one] + ODD)
    columns = np.lexsort((column, share, first, near))  # a predictor's own columns first
    return _Order(columns, np.lexsort((row, rank)), _row_signs(A, np.argsort(columns)))


def _row_signs(A: sp.csr_array, there: IntArray) -> FloatArray:
    """(rows,) -1 for rows whose first entry is negative in the new order."""
    at, sign = row_of_entries(A), np.ones(A.shape[0])
    entries = np.lexsort((there[A.indices], at))[A.indptr[:-1][np.diff(A.indptr) > 0]]
    sign[at[entries]] = np.where(A.data[entries] < 0.0, -1.0, 1.0)
    return sign


def _units(mip: Mip) -> FloatArray:
    """(columns,) the unit of continuous columns, from their bounds or costs."""
    size = np.fmax(np.abs(mip.lower), np.abs(mip.upper))
    priced = np.where(mip.cost != 0.0, 1.0 / np.maximum(np.abs(mip.cost), SMALLEST), 1.0)
    size = np.where(np.isfinite(size) & (size > 0.0), size, priced)
    return np.where(mip.integer, 1.0, size)
