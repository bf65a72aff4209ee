"""Blocks whose predictors live where their columns are: confirmed there, and written into points there.

What `confirmed` and `MoveProgram.columns` do in numpy is done in torch here, in float64 as there: a million
rows need not travel to be asked, nor columns to be put in their places.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import cast

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.core.mip import HAIR, TOLERANCE
from dovetail.core.predictor import OnDevice
from dovetail.decomposition.block_data import of, repeated
from dovetail.decomposition.confirmed import MOST_NEAR, NEAR, by_moves_alone, turning
from dovetail.decomposition.move_program import MoveProgram, one_row

ROWS = 1 << 20
"""That predictors are asked about at once: a GPU is not busy with much fewer."""


def device_blocks(program: MoveProgram, blocks: list[Block], device: str) -> DeviceBlocks | None:
    """None on a CPU, and where some predictor lives elsewhere."""
    here = torch.device(device)
    if here.type == "cpu":
        return None
    for reading in program.networks:
        block = blocks[reading.block]
        there = torch.device(block.description.device)
        same = there.type == here.type and (there.index or 0) == (here.index or 0)
        if not same or not isinstance(block.predictor, OnDevice):
            return None
    return DeviceBlocks(program, blocks, device)


class DeviceBlocks:
    """See above."""

    def __init__(self, program: MoveProgram, blocks: list[Block], device: str) -> None:
        self._program, self._device = program, device
        self._blocks = [blocks[reading.block] for reading in program.networks]
        self.rests = [uploaded(reading.at_rest, device) for reading in program.networks]
        """(N, d) what each network reads of blocks at rest."""
        self._by_moves = [uploaded(reading.by_moves, device) for reading in program.networks]
        self._outputs = [uploaded(reading.outputs, device) for reading in program.networks]
        conditions = program.conditions
        self._conditions = [
            repeated(uploaded(one_row(array), device), program.count)
            for array in (conditions.on_moves, conditions.on_outputs, conditions.least)
        ]
        self._alone = uploaded(by_moves_alone(program), device)

    def confirmed(self, which: Tensor, moves: Tensor, claimed: Tensor | None) -> tuple[Tensor, Tensor]:
        """(n,) whether classes are as claimed and conditions met, and the true (n, q) outputs."""
        found = [
            self._some(which[first : first + ROWS], moves[first : first + ROWS],
                       None if claimed is None else claimed[first : first + ROWS])
            for first in range(0, max(1, len(which)), ROWS)
        ]  # fmt: skip
        holds, outputs = (torch.cat(parts) for parts in zip(*found, strict=True))
        return holds, outputs

    def _some(self, which: Tensor, moves: Tensor, claimed: Tensor | None) -> tuple[Tensor, Tensor]:
        outputs = moves.new_empty((len(moves), len(self._program.output_columns)))
        holds = torch.ones(len(moves), dtype=torch.bool, device=moves.device)
        for block, rest, by_moves, places in zip(
            self._blocks, self.rests, self._by_moves, self._outputs, strict=True
        ):
            u = rest[which] + moves @ by_moves.T
            values = cast(OnDevice, block.predictor).predict_tensor(u)
            outputs[:, places] = _decoded(block, values)
            if block.classifies:
                holds[_unsteady(block, u, values)] = False
                if claimed is not None:
                    holds &= ((outputs - claimed)[:, places].abs() < 0.5).all(dim=1)
        on_moves, on_outputs, asked = (of(array, which) for array in self._conditions)
        if asked.shape[1]:
            value = (on_moves * moves[:, None, :]).sum(dim=2) + (on_outputs * outputs[:, None, :]).sum(dim=2)
            holds &= (
                value >= asked - torch.where(self._alone, 0.5 * TOLERANCE, HAIR * (1.0 + value.abs()))
            ).all(dim=1)
        return holds, outputs

    def columns(self, moves: Tensor, outputs: Tensor) -> Iterator[Tensor]:
        """The local columns of all blocks, one by one, at (N, k) moves and (N, q) outputs in float64; (1,)
        where all have the same."""
        program, k = self._program, self._program.coordinates
        for column, rest in enumerate(program.rest):
            values = self._rest_of(rest)
            for gain in program.gains:
                if gain.column == column:
                    amount = uploaded(gain.amount, self._device)
                    if gain.part >= 2 * k:
                        part = outputs[:, gain.part - 2 * k]
                    else:
                        part = (moves[:, gain.part] if gain.part < k else -moves[:, gain.part - k]).clamp(
                            min=0.0
                        )
                    values = values + part * amount
            yield values

    def _rest_of(self, rest: FloatArray) -> Tensor:
        """A column at rest; what a network reads is here already."""
        for reading, there in zip(self._program.networks, self.rests, strict=True):
            for place in range(there.shape[1]):
                if len(rest) > 1 and _one_column(rest, reading.at_rest[:, place]):
                    return there[:, place]
        return uploaded(rest, self._device)


def uploaded(array: np.ndarray, device: str) -> Tensor:
    """As it is, on a device."""
    with warnings.catch_warnings():  # of arrays that must not be written to: nobody does
        warnings.simplefilter("ignore", UserWarning)
        return torch.as_tensor(array, device=device)


def _one_column(one: FloatArray, other: FloatArray) -> bool:
    """Whether two names are of the same numbers in memory."""
    return bool(one.__array_interface__ == other.__array_interface__)


def _decoded(block: Block, values: Tensor) -> Tensor:
    """As `Block.decode`."""
    if not block.classifies:
        return values
    if values.shape[1] == 1:
        return (values >= block.threshold).to(values.dtype)
    return torch.nn.functional.one_hot(values.argmax(dim=1), values.shape[1]).to(values.dtype)


def _unsteady(block: Block, u: Tensor, values: Tensor) -> Tensor:
    """Rows whose class is another one alone or in float64."""
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
    turns = turning(block, u[near].cpu().numpy(), values[near].cpu().numpy())
    return near[torch.as_tensor(turns, device=u.device)]
