"""Columns as the owners' own predictors see them: what the search found in float32 has to hold there."""

from __future__ import annotations

import numpy as np

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.methods.template_pricing.move_program import MoveProgram

HAIR = 1e-9
"""Relative: sums of conditions are rounded."""


def confirmed(
    program: MoveProgram, blocks: list[Block], which: IntArray, moves: FloatArray, claimed: FloatArray | None
) -> tuple[BoolArray, FloatArray]:
    """(n,) whether classes are as claimed and conditions met, and the true (n, q) outputs."""
    outputs = np.empty((len(which), len(program.output_columns)))
    holds = np.ones(len(which), dtype=bool)
    for reading in program.networks:
        block = blocks[reading.block]
        u = reading.at_rest[which] + moves @ reading.by_moves.T
        outputs[:, reading.outputs] = block.decode(block.predictor.predict(u))
        if block.classifies and claimed is not None:
            holds &= np.all(np.abs(outputs - claimed)[:, reading.outputs] < 0.5, axis=1)
    conditions = program.conditions
    if conditions.least.shape[1]:
        value = np.einsum("nck,nk->nc", conditions.on_moves[which], moves)
        value += np.einsum("ncq,nq->nc", conditions.on_outputs[which], outputs)
        least = conditions.least[which]
        holds &= np.all(value >= least - HAIR * (1.0 + np.abs(value)), axis=1)
    return holds, outputs


def used(program: MoveProgram, which: IntArray, moves: FloatArray, outputs: FloatArray) -> FloatArray:
    """(n, R) what columns use of the coupling sides, in float64."""
    k, total = program.coordinates, np.zeros((len(which), program.sides.count), order="F")
    for entry, (side, part) in enumerate(zip(program.use_side, program.use_part, strict=True)):
        numbers = program.use[:, entry]
        amount = numbers[:1] if numbers.strides[0] == 0 else numbers[which]  # the same in all blocks, or not
        if part == 2 * k + outputs.shape[1]:
            total[:, side] += amount
        elif part >= 2 * k:
            total[:, side] += amount * outputs[:, part - 2 * k]
        else:
            total[:, side] += amount * np.maximum(moves[:, part] if part < k else -moves[:, part - k], 0.0)
    return total
