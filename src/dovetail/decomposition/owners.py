"""Evaluation of block solutions by the predictors themselves: outputs, and the variables of the linear part.

The search computes in float32. Solutions of the search must satisfy all conditions here, in float64 and with
the predictors as deployed. Predictors on the device of the search are evaluated there, without a transfer.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import cast

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import BoolArray, FloatArray
from dovetail.core.batch_rounding import double_copy
from dovetail.core.block import Block
from dovetail.core.mip import HAIR, TOLERANCE
from dovetail.core.predictor import OnDevice
from dovetail.decomposition.block_data import of, repeated
from dovetail.decomposition.move_program import MoveProgram, one_row
from dovetail.structure.templates import Places

ROWS = 1 << 20
"""Number of rows per call of predictors: fewer do not keep a GPU busy."""
NEAR, MOST_NEAR = 1e-5, 256
"""Relative to the largest value: a float32 lead below which the class may differ elsewhere. Few rows of a
million are so near; the nearest ones are evaluated."""


class Owners:
    """The predictors of all blocks of a program."""

    def __init__(self, program: MoveProgram, blocks: list[Block], device: str) -> None:
        self._program = program
        self._blocks = [blocks[reading.block] for reading in program.networks]
        self.here = all(_lives_on(block, device) for block in self._blocks)
        """Whether predictors are called on the device of the search."""
        self._device, self._at = device, device if self.here else "cpu"
        self.rests = [uploaded(reading.at_rest, self._at) for reading in program.networks]
        """(N, d) the inputs of each network at rest."""
        self._by_moves = [uploaded(reading.by_moves, self._at) for reading in program.networks]
        self._outputs = [uploaded(reading.outputs, self._at) for reading in program.networks]
        self._conditions = [
            repeated(uploaded(one_row(array), self._at), program.count)
            for array in (program.on_moves, program.on_outputs, program.least)
        ]
        self._alone = uploaded(~np.any(one_row(program.on_outputs) != 0.0, axis=(0, 2)), self._at)
        """(C,) conditions without outputs: satisfied in float32 means accepted by the check."""

    def confirmed(self, which: Tensor, moves: Tensor, claimed: Tensor | None) -> tuple[Tensor, Tensor]:
        """(n,) whether classes are as claimed and conditions satisfied, and the true (n, q) outputs."""
        which, moves = which.to(self._at), moves.to(self._at)
        claimed = None if claimed is None else claimed.to(self._at)
        found = [
            self._some(which[first : first + ROWS], moves[first : first + ROWS],
                       None if claimed is None else claimed[first : first + ROWS])
            for first in range(0, max(1, len(which)), ROWS)
        ]  # fmt: skip
        holds, outputs = (torch.cat(parts).to(self._device) for parts in zip(*found, strict=True))
        return holds, outputs

    def _some(self, which: Tensor, moves: Tensor, claimed: Tensor | None) -> tuple[Tensor, Tensor]:
        outputs = moves.new_empty((len(moves), len(self._program.output_columns)))
        holds = torch.ones(len(moves), dtype=torch.bool, device=moves.device)
        for block, rest, by_moves, places in zip(
            self._blocks, self.rests, self._by_moves, self._outputs, strict=True
        ):
            u = rest[which] + moves @ by_moves.T
            if self.here:
                values = cast(OnDevice, block.predictor).predict_tensor(u)
            else:
                values = torch.as_tensor(block.predictor.predict(u.numpy()))
            outputs[:, places] = _decoded(block, values)
            if block.classifies:
                holds[_unsteady(block, u, values)] = False
                if claimed is not None:
                    holds &= ((outputs - claimed)[:, places].abs() < 0.5).all(dim=1)
        on_moves, on_outputs, asked = (of(array, which) for array in self._conditions)
        if asked.shape[1]:
            value = (on_moves * moves[:, None, :]).sum(dim=2) + (on_outputs * outputs[:, None, :]).sum(dim=2)
            room = torch.where(self._alone, 0.5 * TOLERANCE, HAIR * (1.0 + value.abs()))
            holds &= (value >= asked - room).all(dim=1)
        return holds, outputs

    def write(self, moves: Tensor, outputs: Tensor, z: Tensor, places: Places, first: int) -> None:
        """Write all blocks into a point; `places` are their columns there, for blocks counted from
        `first`."""
        rests = dict(enumerate(map(self._rest_of, self._program.rest)))
        moves, outputs = moves.to(self._at), outputs.to(self._at)
        for j, values in enumerate(columns_of(self._program, moves, outputs, rests)):
            at = places.column(j, first, first + len(moves))
            z[at if isinstance(at, slice) else uploaded(at, str(z.device))] = values.to(z.device)

    def _rest_of(self, rest: FloatArray) -> Tensor:
        """The values of a column at rest; inputs of networks are already on the device."""
        for reading, there in zip(self._program.networks, self.rests, strict=True):
            for place in range(there.shape[1]):
                if len(rest) > 1 and _one_column(rest, reading.at_rest[:, place]):
                    return there[:, place]
        return uploaded(rest, self._at)


def columns_of(
    program: MoveProgram, moves: Tensor, outputs: Tensor, rests: dict[int, Tensor] | None = None
) -> Iterator[Tensor]:
    """The local columns of all blocks, one by one, at (N, k) moves and (N, q) outputs in float64; (1,) if
    all are equal. `rests`: columns at rest that are on the device already."""
    k, device = program.coordinates, str(moves.device)
    for column, rest in enumerate(program.rest):
        values = rests[column] if rests else uploaded(rest, device)
        for gain in program.gains:
            if gain.column != column:
                continue
            if gain.part >= 2 * k:
                part = outputs[:, gain.part - 2 * k]
            else:
                part = (moves[:, gain.part] if gain.part < k else -moves[:, gain.part - k]).clamp(min=0.0)
            values = values + part * uploaded(gain.amount, device)
        yield values


def uploaded(array: np.ndarray, device: str) -> Tensor:
    """An array on a device."""
    with warnings.catch_warnings():  # the arrays must not be written to, and no caller does
        warnings.simplefilter("ignore", UserWarning)
        return torch.as_tensor(array, device=device)


def _lives_on(block: Block, device: str) -> bool:
    """Whether a predictor can be called on a device other than the CPU."""
    here, there = torch.device(device), torch.device(block.description.device)
    same = there.type == here.type and (there.index or 0) == (here.index or 0)
    return here.type != "cpu" and same and isinstance(block.predictor, OnDevice)


def _one_column(one: FloatArray, other: FloatArray) -> bool:
    """Whether two arrays share memory."""
    return bool(one.__array_interface__ == other.__array_interface__)


def _decoded(block: Block, values: Tensor) -> Tensor:
    """As `Block.decode`."""
    if not block.classifies:
        return values.double()
    if values.shape[1] == 1:
        return (values >= block.threshold).double()
    return torch.nn.functional.one_hot(values.argmax(dim=1), values.shape[1]).double()


def _unsteady(block: Block, u: Tensor, values: Tensor) -> Tensor:
    """Rows whose class differs alone or in float64: about one block in a million, which the check would
    refuse."""
    none = torch.zeros(0, dtype=torch.long, device=u.device)
    if block.description.is_float64 or not len(u):
        return none
    if values.shape[1] == 1:
        lead = (values[:, 0] - block.threshold).abs()
    else:
        two = values.topk(2, dim=1).values
        lead = two[:, 0] - two[:, 1]
    near = (lead <= NEAR * values.abs().max()).nonzero().ravel()
    if len(near) > MOST_NEAR:
        near = near[lead[near].topk(MOST_NEAR, largest=False).indices]
    if not len(near):
        return none
    turns = _turning(block, u[near].cpu().numpy(), values[near].cpu().numpy())
    return near[torch.as_tensor(turns, device=u.device)]


def _turning(block: Block, u: FloatArray, values: FloatArray) -> BoolArray:
    """(n,) whether the class of a row differs alone or in float64."""
    copy = double_copy(block.predictor, block.description)
    others = [np.concatenate([block.predictor.predict(u[i : i + 1]) for i in range(len(u))])]
    others += [] if copy is None else [copy(u)]
    here = block.decode(values)
    return np.asarray(np.any([block.decode(other) != here for other in others], axis=(0, 2)))
