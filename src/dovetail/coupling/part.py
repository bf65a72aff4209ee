"""The networks' side of a split problem: parts, each a batch of samples with copies of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.mip import Mip
from dovetail.core.sparse import entries_of


@dataclass(frozen=True, eq=False)
class SampleRow:
    """lower <= sum of entries <= upper over one sample's own copies and outputs, by position."""

    on_inputs: FloatArray
    on_outputs: FloatArray
    lower: float
    upper: float
    name: str


@dataclass(frozen=True, eq=False)
class Member:
    """A block's predictor inside a part: where, among the copies, its inputs are."""

    block: Block
    positions: IntArray
    """(s, d): a sample of the part holds s samples of the block, each with d inputs."""


@dataclass(frozen=True, eq=False)
class CoupledBatch:
    """A batch of samples that take their network step together."""

    name: str
    members: tuple[Member, ...]
    columns: IntArray
    """(n, d) the columns that each sample has copies of."""
    outputs: IntArray
    """(n, q) the members' output columns, one member after the other."""
    couples_outputs: bool
    rows: tuple[tuple[SampleRow, ...], ...]
    """For each sample, the limits that went with the network."""
    classes: tuple[int | None, ...]
    """For each sample of a classifier, the one class its limits leave, or None."""
    taken: tuple[int, ...] = ()
    """Rows of the host that left the MIP for `rows` and `classes`."""

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.columns)

    @property
    def block(self) -> Block:
        """The block of its first, and for most parts only, member."""
        return self.members[0].block

    @property
    def is_alone(self) -> bool:
        """Whether it is one block with copies of its inputs and nothing else."""
        sizes = [member.positions.shape for member in self.members]
        return sizes == [(1, self.columns.shape[1])]


def alone(
    block: Block,
    *,
    couples_outputs: bool,
    rows: tuple[tuple[SampleRow, ...], ...] | None = None,
    classes: tuple[int | None, ...] | None = None,
    taken: tuple[int, ...] = (),
) -> CoupledBatch:
    """A part that is one block, with copies of its inputs and nothing else."""
    n, d = block.inputs.shape
    return CoupledBatch(
        block.name,
        (Member(block, np.arange(d)[None, :]),),
        block.inputs,
        block.outputs,
        couples_outputs,
        ((),) * n if rows is None else rows,
        (None,) * n if classes is None else classes,
        taken,
    )


def sample_row(mip: Mip, r: int, columns: IntArray, outputs: IntArray) -> SampleRow:
    """A row of the host over one sample's copies and outputs, which are all that it touches."""
    copy = {int(j): k for k, j in enumerate(columns)}
    output = {int(j): k for k, j in enumerate(outputs)}
    on_inputs, on_outputs = np.zeros(len(columns)), np.zeros(len(outputs))
    for j, a in zip(*entries_of(mip.A, r), strict=True):
        if int(j) in output:
            on_outputs[output[int(j)]] = a
        else:
            on_inputs[copy[int(j)]] = a
    limits = float(mip.row_lower[r]), float(mip.row_upper[r])
    return SampleRow(on_inputs, on_outputs, *limits, mip.row_name(r))


def output_bounds(mip: Mip, outputs: IntArray, copies: int) -> list[SampleRow]:
    """The finite bounds of one sample's outputs, as rows over its `copies` inputs and its outputs."""
    rows = []
    for o, j in enumerate(outputs):
        if np.isfinite(mip.lower[j]) or np.isfinite(mip.upper[j]):
            on_outputs = np.zeros(len(outputs))
            on_outputs[o] = 1.0
            name = f"the bounds of {mip.column_name(int(j))}"
            limits = float(mip.lower[j]), float(mip.upper[j])
            rows.append(SampleRow(np.zeros(copies), on_outputs, *limits, name))
    return rows
