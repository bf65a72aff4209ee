"""Columns as the owners' own predictors see them: what the search found in float32 has to hold there."""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.batch_rounding import double_copy
from dovetail.core.block import Block
from dovetail.core.mip import HAIR, TOLERANCE
from dovetail.decomposition.move_program import MoveProgram, one_row

NEAR, MOST_NEAR = 1e-5, 256
"""Of the largest value: a lead in float32 below which the class may be another elsewhere. Few rows of a
million are so near; the nearest ones are looked at."""


def confirmed(
    program: MoveProgram,
    blocks: list[Block],
    which: IntArray | slice,
    moves: FloatArray,
    claimed: FloatArray | None,
) -> tuple[BoolArray, FloatArray]:
    """(n,) whether classes are as claimed and conditions met, and the true (n, q) outputs."""
    outputs = np.empty((len(moves), len(program.output_columns)))
    holds = np.ones(len(moves), dtype=bool)
    for reading in program.networks:
        block = blocks[reading.block]
        u = reading.at_rest[which]
        u = u + moves @ reading.by_moves.T if np.any(moves) else u
        values = block.predictor.predict(u)
        outputs[:, reading.outputs] = block.decode(values)
        if block.classifies:
            holds[_unsteady(block, u, values)] = False
        if block.classifies and claimed is not None:
            holds &= np.all(np.abs(outputs - claimed)[:, reading.outputs] < 0.5, axis=1)
    conditions = program.conditions
    if conditions.least.shape[1]:
        value = np.einsum("nck,nk->nc", conditions.on_moves[which], moves)
        value += np.einsum("ncq,nq->nc", conditions.on_outputs[which], outputs)
        least = conditions.least[which]
        allowed = np.where(by_moves_alone(program), 0.5 * TOLERANCE, HAIR * (1.0 + np.abs(value)))
        holds &= np.all(value >= least - allowed, axis=1)
    return holds, outputs


def by_moves_alone(program: MoveProgram) -> BoolArray:
    """(C,) conditions that no output is in: whoever meets them in float32 passes the check."""
    return np.asarray(~np.any(one_row(program.conditions.on_outputs) != 0.0, axis=(0, 2)))


def _unsteady(block: Block, u: FloatArray, values: FloatArray) -> IntArray:
    """Rows whose class is another one alone or in float64: one such block in a million, and no point with it
    passes the check."""
    if block.description.is_float64 or not len(u):
        return np.zeros(0, dtype=np.int64)
    lead = block.lead(values)
    near = np.flatnonzero(lead <= NEAR * np.abs(values).max())
    if near.size > MOST_NEAR:
        near = near[np.argpartition(lead[near], MOST_NEAR)[:MOST_NEAR]]
    return near[turning(block, u[near], values[near])] if near.size else near


def turning(block: Block, u: FloatArray, values: FloatArray) -> BoolArray:
    """(n,) whether the class of a row is another one alone or in float64."""
    copy = double_copy(block.predictor, block.description)
    others = [np.concatenate([block.predictor.predict(u[i : i + 1]) for i in range(len(u))])]
    others += [] if copy is None else [copy(u)]
    here = block.decode(values)
    return np.asarray(np.any([block.decode(other) != here for other in others], axis=(0, 2)))
