"""What the inputs of a block are when nothing is done: the values that the rows give them.

A treatment is mostly stated as ``x - up + down = w``: with all else at 0 the input x is w. So is a distance,
``x - d <= w`` and ``x + d >= w``. The rows of an input that hold no other input and no output, and whose
other columns may be 0, limit it to an interval there; where that is a single value, it is known.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.block import Block
from dovetail.core.block_rows import Place, column_of, entries_of, places_of
from dovetail.core.problem import Problem
from dovetail.core.sparse import row_of_entries
from dovetail.core.template import FamilyColumns, Template

NEAR = 1e-9
"""Relative: the two ends of an interval came by two divisions, and are then the same value."""


def untouched_inputs(problem: Problem, block: Block) -> FloatArray:
    """(n, d) values of a block's inputs when all other columns of their rows are 0; NaN where unknown."""
    families = problem.families_of(block)
    if families is not None and families[0].template in problem.stated.waiting:
        return _stated_inputs(problem, families[0])
    mip = problem.mip
    tied = np.zeros(mip.n_columns, dtype=bool)
    tied[problem.inputs] = tied[problem.outputs] = True
    row, column, entry = row_of_entries(mip.A), mip.A.indices, mip.A.data
    in_the_way = tied[column] | (mip.lower[column] > 0.0) | (mip.upper[column] < 0.0)
    alone = np.bincount(row, in_the_way, mip.n_rows)[row] == 1.0
    mine = np.zeros(mip.n_columns, dtype=bool)
    mine[block.inputs] = True
    where = np.flatnonzero(alone & mine[column])
    low, high = _intervals(mip.row_lower[row[where]], mip.row_upper[row[where]], entry[where])
    least, most = np.full(mip.n_columns, -np.inf), np.full(mip.n_columns, np.inf)
    np.maximum.at(least, column[where], low)
    np.minimum.at(most, column[where], high)
    fixed = mip.lower == mip.upper
    least[fixed] = most[fixed] = mip.lower[fixed]
    return _single(least, most)[block.inputs]


def _stated_inputs(problem: Problem, inputs: FamilyColumns) -> FloatArray:
    """The same of families of a template that is not written out, by the rows of its blocks."""
    template, places = inputs.template, places_of(inputs)
    pairs = [
        pair for b in problem.blocks if (pair := problem.families_of(b)) and pair[0].template is template
    ]
    tied = {place for pair in pairs for families in pair for place in places_of(families)}
    rows = [(row, k, entries_of(template, row, k)) for row in template.rows for k in range(row.width)]
    values = np.empty((template.count, len(places)))
    for number, place in enumerate(places):
        least, most = np.full(template.count, -np.inf), np.full(template.count, np.inf)
        for row, k, entries in rows:
            if place not in entries or any(other in tied for other in entries if other != place):
                continue
            counts = _may_be_zero(template, {p: e for p, e in entries.items() if p != place})
            counts = counts & (entries[place] != 0.0)
            entry = np.where(entries[place] == 0.0, 1.0, entries[place])
            low, high = _intervals(column_of(row.lower, k), column_of(row.upper, k), entry)
            least = np.maximum(least, np.where(counts, low, -np.inf))
            most = np.minimum(most, np.where(counts, high, np.inf))
        own = template.families[place[0]]
        lower, upper = column_of(own.lower, place[1]), column_of(own.upper, place[1])
        values[:, number] = np.where(lower == upper, lower, _single(least, most))
    return values


def _may_be_zero(template: Template, entries: dict[Place, FloatArray]) -> BoolArray:
    """(blocks,) or (1,): whether all these columns of a row may be 0, or are not in it."""
    free = np.ones(1, dtype=bool)
    for (name, k), entry in entries.items():
        family = template.families[name]
        zero = (column_of(family.lower, k) <= 0.0) & (column_of(family.upper, k) >= 0.0)
        free = free & (zero | (entry == 0.0))
    return free


def _single(least: FloatArray, most: FloatArray) -> FloatArray:
    """What intervals hold that are a single value; NaN for others."""
    known = np.isfinite(least) & (np.abs(most - least) <= NEAR * np.maximum(1.0, np.abs(least)))
    return np.where(known, least, np.nan)


def _intervals(lower: FloatArray, upper: FloatArray, entry: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What rows with nothing else in them allow their one column."""
    ends = lower / entry, upper / entry
    return np.minimum(*ends), np.maximum(*ends)
