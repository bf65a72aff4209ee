"""In which order predictors are asked: a sample that reads what another one writes comes after it."""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import IntArray
from dovetail.core.block import Block
from dovetail.core.errors import PredictorError
from dovetail.core.sparse import joined_ranges
from dovetail.core.stated_program import StatedProgram

Stage = tuple[tuple[Block, IntArray], ...]
"""Samples (by block) whose inputs depend on earlier stages only, so that they can be evaluated together."""


def stages(program: StatedProgram, blocks: tuple[Block, ...]) -> tuple[Stage, ...]:
    """Samples by the length of the longest chain of predictors that leads to them."""
    counts = np.array([block.samples for block in blocks], dtype=np.int64)
    block_of = np.repeat(np.arange(len(blocks)), counts)
    sample_of = np.arange(block_of.size) - np.repeat(np.cumsum(counts) - counts, counts)
    source, reader = _edges(program, blocks, counts)
    level = _levels(source, reader, block_of.size)
    if np.any(level < 0):
        stuck = _on_a_cycle(source, reader, level)
        block, i = blocks[block_of[stuck]], int(sample_of[stuck])
        column = program.column_name(int(block.outputs[i][0]))
        raise PredictorError(
            f"{block.name} (sample {i}, output {column}) depends on its own output through a "
            "cycle of predictors; break the cycle with a separate column and a row that ties the two."
        )
    found: list[list[tuple[Block, IntArray]]] = [[] for _ in range(int(level.max(initial=-1)) + 1)]
    order = np.lexsort((block_of, level))  # of one level and block: in the order of the samples
    key = level[order] * len(blocks) + block_of[order]
    for part in np.split(order, np.flatnonzero(np.diff(key)) + 1) if order.size else []:
        found[level[part[0]]].append((blocks[block_of[part[0]]], sample_of[part]))
    return tuple(tuple(stage) for stage in found)


def _edges(program: StatedProgram, blocks: tuple[Block, ...], counts: IntArray) -> tuple[IntArray, IntArray]:
    """Who reads what whom writes, samples of all blocks numbered one after the other."""
    first = np.cumsum(counts) - counts
    writer = np.full(program.n_columns, -1, dtype=np.int64)
    for block, begin in zip(blocks, first, strict=True):
        writer[block.outputs] = (begin + np.arange(block.samples))[:, None]
    source, reader = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for block, begin in zip(blocks, first, strict=True):
        written_by = writer[block.inputs]
        i, k = np.nonzero(written_by >= 0)
        source.append(written_by[i, k])
        reader.append(begin + i)
    return np.concatenate(source), np.concatenate(reader)


def _levels(source: IntArray, reader: IntArray, count: int) -> IntArray:
    """(count,) the length of the longest chain to each sample; -1 on a cycle and behind it."""
    waiting = np.bincount(reader, minlength=count)
    order = np.argsort(source, kind="stable")
    readers = reader[order]
    ends = np.searchsorted(source[order], np.arange(count + 1))
    level = np.full(count, -1, dtype=np.int64)
    ready, depth = np.flatnonzero(waiting == 0), 0
    while ready.size:
        level[ready] = depth
        fed = readers[joined_ranges(ends[ready], ends[ready + 1])]
        np.subtract.at(waiting, fed, 1)
        fed = np.unique(fed)
        ready, depth = fed[waiting[fed] == 0], depth + 1
    return level


def _on_a_cycle(source: IntArray, reader: IntArray, level: IntArray) -> int:
    """A sample that leads to itself: back from one without a level, until one comes again."""
    stuck = (level[source] < 0) & (level[reader] < 0)
    before = dict(zip(reader[stuck].tolist(), source[stuck].tolist(), strict=True))
    sample, seen = int(np.flatnonzero(level < 0)[0]), set[int]()
    while sample not in seen:
        seen.add(sample)
        sample = before[sample]
    return sample
