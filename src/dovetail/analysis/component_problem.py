"""One component of a problem as a problem of its own: its columns, the rows that are its alone, samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dovetail.analysis.components import Components
from dovetail.core.arrays import IntArray
from dovetail.core.block import Block
from dovetail.core.problem import Problem


def component_columns(problem: Problem, parts: Components) -> Iterator[IntArray]:
    """Each component's columns: its own, and those at which its samples' inputs are fixed."""
    for c, mine in enumerate(parts.members):
        read = [block.inputs[_samples(block, parts, c)].ravel() for block in problem.blocks]
        yield np.union1d(mine, np.concatenate(read))


def component_problem(problem: Problem, columns: IntArray, rows: IntArray) -> Problem:
    """Some columns and rows, and the samples whose outputs are among them, in minimisation form."""
    mip = problem.mip.minimised()
    place = np.full(mip.n_columns, -1)
    place[columns] = np.arange(columns.size)
    own = replace(
        mip,
        cost=mip.cost[columns],
        A=mip.A[rows][:, columns],
        row_lower=mip.row_lower[rows],
        row_upper=mip.row_upper[rows],
        lower=mip.lower[columns],
        upper=mip.upper[columns],
        integer=mip.integer[columns],
        offset=0.0,
        names=None,
        row_names=None,
    )
    blocks = tuple(
        replace(block, inputs=place[block.inputs[mine]], outputs=place[block.outputs[mine]])
        for block in problem.blocks
        for mine in [np.flatnonzero(place[block.outputs[:, 0]] >= 0)]
        if mine.size
    )
    return problem.derived(own, blocks)


def _samples(block: Block, parts: Components, c: int) -> IntArray:
    return np.flatnonzero(parts.owner[block.outputs[:, 0]] == c)
