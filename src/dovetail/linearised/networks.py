"""All networks of a problem at once: values at many points, the linearisation at one.

Outputs of all blocks are laid end to end: block by block, sample by sample. A regression's value is
its output; a class output's value is its logit relative to the threshold (with k classes, k logits), and
`conditions` says which combinations of logits make a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block, classes_of
from dovetail.core.jacobian import jacobian
from dovetail.core.mip import SMALLEST, TOLERANCE
from dovetail.core.problem import Problem
from dovetail.run.network_step import decision_values
from dovetail.run.stopwatch import Stopwatch

if TYPE_CHECKING:
    from dovetail.core.predictor import Forward

CHUNK = 16384
"""Rows per network call: enough to keep a core busy, few enough that a layer of a thousand neurons takes
128 MB."""


@dataclass(frozen=True, eq=False)
class Linearisation:
    """The networks to first order around one point: value_o(x) is about offset_o + slope_o'x."""

    values: FloatArray
    """(m,) at the point."""
    slopes: FloatArray
    """One for each entry of the Jacobian, in the order of `Networks.rows` and `Networks.columns`."""
    offset: FloatArray
    """(m,) what it says at x = 0."""


class Networks:
    """Every block of a problem, evaluated in one batch per block."""

    def __init__(self, problem: Problem, stopwatch: Stopwatch, device: str | None = None) -> None:
        self._stopwatch = stopwatch
        self._blocks, self._stages = problem.blocks, problem.stages
        self._devices = [device if device is not None else b.description.device for b in problem.blocks]
        self._forwards: list[Forward] = [
            block.predictor.snapshot(own) for block, own in zip(problem.blocks, self._devices, strict=True)
        ]
        self._integer = problem.mip.integer.copy()
        for block in problem.blocks:
            if block.classifies:
                self._integer[block.outputs] = True
        self._lower, self._upper = problem.mip.lower, problem.mip.upper
        nothing = np.empty(0, dtype=np.int64)
        self.outputs: IntArray = np.concatenate([nothing, *(b.outputs.ravel() for b in problem.blocks)])
        """(m,) the host column of each output."""
        self.classes: BoolArray = np.repeat(
            np.array([b.classifies for b in problem.blocks], dtype=bool),
            [b.outputs.size for b in problem.blocks],
        )
        """(m,) which outputs are classes."""
        self._pattern(problem.mip.n_columns)

    def _pattern(self, columns: int) -> None:
        """The Jacobian's sparsity: one entry for an output and a column, even where a sample reads it twice.

        `rows` and `columns` are the entries' output and host column, `first_entry` where an output's begin.
        """
        row, column = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        first = 0
        for block in self._blocks:
            q, d = block.outputs.shape[1], block.inputs.shape[1]
            row.append(np.repeat(first + np.arange(block.outputs.size), d))
            column.append(np.repeat(block.inputs, q, axis=0).ravel())
            first += block.outputs.size
        keys = np.concatenate(row) * columns + np.concatenate(column)
        entries, self._entry_of = np.unique(keys, return_inverse=True)
        self.rows, self.columns = np.divmod(entries, columns)
        self.shape = (first, columns)
        self.first_entry = np.searchsorted(self.rows, np.arange(first + 1))

    @property
    def count(self) -> int:
        """How many outputs there are."""
        return int(self.outputs.size)

    @cached_property
    def inputs(self) -> IntArray:
        """All columns that some network reads."""
        return np.unique(self.columns)

    @cached_property
    def class_groups(self) -> list[IntArray]:
        """The output columns of each classified sample."""
        return [outputs for block in self._blocks if block.classifies for outputs in block.outputs]

    def jacobian(self, linearisation: Linearisation) -> sp.csr_array:
        """Slopes as a matrix over the host's columns."""
        return sp.csr_array((linearisation.slopes, self.columns, self.first_entry), shape=self.shape)

    def model_values(self, linearisation: Linearisation, at_entries: FloatArray) -> FloatArray:
        """(m,) what a linearisation says of a point, which is given by its value at each entry."""
        linear = np.bincount(self.rows, linearisation.slopes * at_entries, minlength=self.count)
        return np.asarray(linearisation.offset + linear)

    def values(self, Z: FloatArray) -> FloatArray:
        """(T, m) the networks' values at each row of `Z`, one call per block."""
        Z = np.atleast_2d(Z)
        parts = [np.empty((len(Z), 0))]
        with self._stopwatch.measure("nn"), self._stopwatch.measure("network"), torch.no_grad():
            for b, block in enumerate(self._blocks):
                rows = Z[:, block.inputs].reshape(-1, block.inputs.shape[1])
                parts.append(self._forward(b, rows).reshape(len(Z), -1))
        return np.concatenate(parts, axis=1)

    def with_predictions(self, Z: FloatArray, values: FloatArray) -> FloatArray:
        """`Z` with every output as the networks have it, stage by stage; `values` are those at `Z` itself."""
        Z = Z.copy()
        if len(self._stages) == 1:
            Z[:, self.outputs] = self._decoded(values)
            return Z
        for number in range(len(self._stages)):
            self.predict_stage(Z, number)
        return Z

    def predict_stage(self, Z: FloatArray, number: int) -> None:
        """The outputs of one stage, in place."""
        with self._stopwatch.measure("nn"), self._stopwatch.measure("network"), torch.no_grad():
            for block, samples in self._stages[number]:
                b = self._blocks.index(block)
                inputs, outputs = block.inputs[samples], block.outputs[samples]
                found = self._forward(b, Z[:, inputs].reshape(-1, inputs.shape[1]))
                if block.classifies:
                    found = classes_of(found)
                Z[:, outputs] = found.reshape(len(Z), *outputs.shape)

    def _decoded(self, values: FloatArray) -> FloatArray:
        """(T, m) classes where outputs are classes, values elsewhere."""
        if not self.classes.any():
            return values
        decoded, first = values.copy(), 0
        for block in self._blocks:
            last = first + block.outputs.size
            if block.classifies:
                logits = values[:, first:last].reshape(-1, block.outputs.shape[1])
                decoded[:, first:last] = classes_of(logits).reshape(len(values), -1)
            first = last
        return decoded

    def _forward(self, b: int, rows: FloatArray) -> FloatArray:
        chunks = [
            decision_values(self._blocks[b], self._forwards[b](self._tensor(b, rows[k : k + CHUNK])))
            .cpu()
            .numpy()
            for k in range(0, len(rows), CHUNK)
        ]
        return chunks[0] if len(chunks) == 1 else np.concatenate(chunks)

    def _tensor(self, b: int, rows: FloatArray) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(rows), device=self._devices[b])

    def linearise(self, z: FloatArray, *, secants: bool = False) -> Linearisation:
        """Values and slopes at `z`.

        With `secants`, a slope along an integer column is the difference to its neighbours, not the
        derivative: across a whole step a derivative may say anything.
        """
        values, derivatives = [np.empty(0)], [np.empty(0)]
        with self._stopwatch.measure("nn"), self._stopwatch.measure("network"):
            for b, block in enumerate(self._blocks):
                value, slope = self._slopes(b, z[block.inputs])
                if secants:
                    self._replace_by_secants(b, block, z, value, slope)
                values.append(value.ravel())
                derivatives.append(slope.ravel())
        at, flat = np.concatenate(values), np.concatenate(derivatives)
        slopes = np.bincount(self._entry_of, flat, minlength=self.columns.size).astype(np.float64)
        slopes[np.abs(slopes) < SMALLEST] = 0.0  # HiGHS would drop them, but not their part of the offset
        linear = np.bincount(self.rows, slopes * z[self.columns], minlength=self.count)
        return Linearisation(at, slopes, at - linear)

    def _slopes(self, b: int, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, q) values and (n, q, d) derivatives of one block."""
        u = self._tensor(b, inputs).requires_grad_(True)
        values = decision_values(self._blocks[b], self._forwards[b](u))
        return values.detach().cpu().numpy(), jacobian(values, u).cpu().numpy()

    def _replace_by_secants(
        self, b: int, block: Block, z: FloatArray, value: FloatArray, slope: FloatArray
    ) -> None:
        """Slopes along integer inputs become what one whole step up, or down at the bound, really changes."""
        lower, upper = self._lower, self._upper
        samples, features = np.nonzero(self._integer[block.inputs])
        if samples.size == 0:
            return
        columns = block.inputs[samples, features]
        step = np.where(z[columns] + 1.0 <= upper[columns] + TOLERANCE, 1.0, -1.0)
        movable = upper[columns] - lower[columns] > 0.5
        read = block.inputs[samples] == columns[:, None]  # a sample may read a column more than once
        with torch.no_grad():
            there = self._forward(b, z[block.inputs[samples]] + read * step[:, None])
        secant = (there - value[samples]) / (step * read.sum(axis=1))[:, None]
        slope[samples[movable], :, features[movable]] = secant[movable]

    @cached_property
    def conditions(self) -> ClassConditions:
        """The conditions of all class outputs."""
        return ClassConditions.of(self._blocks, self.count)


@dataclass(frozen=True, eq=False)
class ClassConditions:
    """While column[c] is when[c], form[c]'values must be at least margin[c].

    A single logit must be above the margin for class 1 and below minus the margin for class 0; of several,
    the class's own must lead each other one by the margin.
    """

    column: IntArray
    """(c,) the class output, 0 or 1, that calls for the condition."""
    when: BoolArray
    """(c,) the value of that output which does."""
    form: sp.csr_array
    """(c, m) the combination of values, in the order of `Networks.outputs`."""
    margin: FloatArray
    """(c,) the block's epsilon."""

    @classmethod
    def of(cls, blocks: Sequence[Block], outputs: int) -> ClassConditions:
        """The conditions of all classified samples among so many outputs."""
        column: list[int] = []
        when, margin = [], []
        row, value, sign = [], [], []
        first = 0
        for block in blocks:
            q = block.outputs.shape[1]
            for i in range(block.samples if block.classifies else 0):
                at = first + i * q
                pairs = [(k, j) for k in range(q) for j in range(q) if k != j]
                # one logit decides alone: against itself at 0
                for k, j in pairs or [(0, 0)]:
                    for wanted in (True,) if pairs else (True, False):
                        c = len(column)
                        column.append(int(block.outputs[i, k]))
                        when.append(wanted)
                        margin.append(block.epsilon)
                        row += [c, c] if pairs else [c]
                        value += [at + k, at + j] if pairs else [at]
                        sign += [1.0, -1.0] if pairs else [1.0 if wanted else -1.0]
            first += block.outputs.size
        form = sp.csr_array((sign, (row, value)), shape=(len(column), outputs)) if column else None
        return cls(
            np.array(column, dtype=np.int64),
            np.array(when, dtype=bool),
            form if form is not None else sp.csr_array((0, outputs)),
            np.array(margin),
        )

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.column.size)

    @cached_property
    def weights(self) -> sp.csr_array:
        """How much each value counts in each condition, whatever its sign."""
        return abs(self.form)

    def active(self, z: FloatArray) -> BoolArray:
        """Which conditions the classes in a point, or in each of several, call for."""
        return np.asarray((z[..., self.column] > 0.5) == self.when)

    def shortfall(self, z: FloatArray, values: FloatArray) -> FloatArray:
        """How far the values are from the classes in `z`: 0 where a condition holds or is not called for."""
        return np.asarray(np.maximum(self.margin - values @ self.form.T, 0.0) * self.active(z))
