"""All networks of a problem at once: values at many points, values and slopes at one.

Outputs of all blocks are laid end to end: block by block, sample by sample. A regression's value is
its output; a class output's value is its logit relative to the threshold (with k classes, k logits), and
`conditions` says which combinations of logits make a class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.mip import SMALLEST
from dovetail.core.problem import Problem
from dovetail.run.network_step import decision_values
from dovetail.run.stopwatch import Stopwatch

if TYPE_CHECKING:
    from dovetail.core.predictor import Forward

CHUNK = 16384
"""Rows per network call: enough to keep a core busy, few enough to stay in memory."""


@dataclass(frozen=True, eq=False)
class Linearisation:
    """The networks as they look from one point: value_o(x) is about offset_o + slope_o'x."""

    values: FloatArray
    """(m,) at the point."""
    entries: FloatArray
    """The slopes, in the order of `Networks.rows` and `Networks.columns`."""
    offset: FloatArray
    """(m,) what the linear model says at x = 0."""


@dataclass(frozen=True, eq=False)
class Conditions:
    """What makes a class: while column[c] is when[c], form[c]'values must be at least margin[c]."""

    column: IntArray
    when: BoolArray
    form: sp.csr_array
    margin: FloatArray

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.column.size)

    @cached_property
    def weights(self) -> sp.csr_array:
        """How much each value counts in each condition, whatever its sign."""
        return abs(self.form)

    def active(self, z: FloatArray) -> BoolArray:
        """Which conditions the classes in `z` call for."""
        return np.asarray((z[..., self.column] > 0.5) == self.when)


class Networks:
    """Every block of a problem, evaluated in one batch per block."""

    def __init__(self, problem: Problem, stopwatch: Stopwatch, device: str | None = None) -> None:
        self._watch = stopwatch
        self._blocks, self._stages = problem.blocks, problem.stages
        self._places = [device if device is not None else b.description.device for b in problem.blocks]
        self._forwards: list[Forward] = [
            block.predictor.snapshot(place) for block, place in zip(problem.blocks, self._places, strict=True)
        ]
        self._whole = problem.mip.integer.copy()
        self._whole[[j for b in problem.blocks if b.classifies for j in b.outputs.ravel()]] = True
        self._limits = problem.mip.lower, problem.mip.upper
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
        """Where slopes stand: entries of one output in one column, even where a sample reads it twice."""
        row, column = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        first = 0
        for block in self._blocks:
            q, d = block.outputs.shape[1], block.inputs.shape[1]
            row.append(np.repeat(first + np.arange(block.outputs.size), d))
            column.append(np.repeat(block.inputs, q, axis=0).ravel())
            first += block.outputs.size
        keys = np.concatenate(row) * columns + np.concatenate(column)
        places, self._slot = np.unique(keys, return_inverse=True)
        self.rows, self.columns = np.divmod(places, columns)
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

    def jacobian(self, entries: FloatArray) -> sp.csr_array:
        """Slopes as a matrix over the host's columns."""
        return sp.csr_array((entries, self.columns, self.first_entry), shape=self.shape)

    def level(self, view: Linearisation, entries: FloatArray) -> FloatArray:
        """(m,) what a view's linear model says of a point, given by its value at each entry."""
        slopes = np.bincount(self.rows, view.entries * entries, minlength=self.count)
        return np.asarray(view.offset + slopes)

    def values(self, Z: FloatArray) -> FloatArray:
        """(T, m) the networks' values at each row of `Z`, one call per block."""
        Z = np.atleast_2d(Z)
        parts = [np.empty((len(Z), 0))]
        with self._watch.measure("nn"), self._watch.measure("network"), torch.no_grad():
            for b, block in enumerate(self._blocks):
                rows = Z[:, block.inputs].reshape(-1, block.inputs.shape[1])
                parts.append(self._forward(b, rows).reshape(len(Z), -1))
        return np.concatenate(parts, axis=1)

    def with_predictions(self, Z: FloatArray, values: FloatArray) -> FloatArray:
        """`Z` with every output as the networks have it, stage by stage; `values` are those at `Z` itself."""
        Z = Z.copy()
        if len(self._stages) == 1:
            Z[:, self.outputs] = np.where(self.classes, self._decided(values), values)
            return Z
        for number in range(len(self._stages)):
            self.predict_stage(Z, number)
        return Z

    def predict_stage(self, Z: FloatArray, number: int) -> None:
        """The outputs of one stage, in place."""
        with self._watch.measure("nn"), self._watch.measure("network"), torch.no_grad():
            for block, samples in self._stages[number]:
                b = self._blocks.index(block)
                inputs, outputs = block.inputs[samples], block.outputs[samples]
                found = self._forward(b, Z[:, inputs].reshape(-1, inputs.shape[1]))
                if block.classifies:
                    found = _classes(found)
                Z[:, outputs] = found.reshape(len(Z), *outputs.shape)

    def _decided(self, values: FloatArray) -> FloatArray:
        """(T, m) classes where outputs are classes, values elsewhere."""
        if not self.classes.any():
            return values
        decided, first = values.copy(), 0
        for block in self._blocks:
            last = first + block.outputs.size
            if block.classifies:
                logits = values[:, first:last].reshape(-1, block.outputs.shape[1])
                decided[:, first:last] = _classes(logits).reshape(len(values), -1)
            first = last
        return decided

    def _forward(self, b: int, rows: FloatArray) -> FloatArray:
        chunks = [
            decision_values(self._blocks[b], self._forwards[b](self._tensor(b, rows[k : k + CHUNK])))
            .cpu()
            .numpy()
            for k in range(0, len(rows), CHUNK)
        ]
        return chunks[0] if len(chunks) == 1 else np.concatenate(chunks)

    def _tensor(self, b: int, rows: FloatArray) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(rows), device=self._places[b])

    def linearise(self, z: FloatArray, *, whole: bool = False) -> Linearisation:
        """Values and slopes at `z`.

        With `whole`, a slope along an integer column is the difference to its neighbours, not the
        derivative: across a whole step a derivative may say anything.
        """
        values, slopes = [np.empty(0)], [np.empty(0)]
        with self._watch.measure("nn"), self._watch.measure("network"):
            for b, block in enumerate(self._blocks):
                value, slope = self._slopes(b, z[block.inputs])
                if whole:
                    self._differences(b, block, z, value, slope)
                values.append(value.ravel())
                slopes.append(slope.ravel())
        at, flat = np.concatenate(values), np.concatenate(slopes)
        entries = np.bincount(self._slot, flat, minlength=self.columns.size).astype(np.float64)
        entries[np.abs(entries) < SMALLEST] = 0.0
        linear = np.bincount(self.rows, entries * z[self.columns], minlength=self.count)
        return Linearisation(at, entries, at - linear)

    def _slopes(self, b: int, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, q) values and (n, q, d) derivatives of one block."""
        u = self._tensor(b, inputs).requires_grad_(True)
        values = decision_values(self._blocks[b], self._forwards[b](u))
        q = values.shape[1]
        slopes = []
        for k in range(q):
            if values.requires_grad:
                (slope,) = torch.autograd.grad(
                    values[:, k].sum(), u, retain_graph=k < q - 1, allow_unused=True
                )
            else:
                slope = None
            slopes.append(torch.zeros_like(u) if slope is None else slope)
        return values.detach().cpu().numpy(), torch.stack(slopes, dim=1).cpu().numpy()

    def _differences(self, b: int, block: Block, z: FloatArray, value: FloatArray, slope: FloatArray) -> None:
        """Replace slopes along integer inputs by what one whole step up or down really changes."""
        lower, upper = self._limits
        samples, places = np.nonzero(self._whole[block.inputs])
        if samples.size == 0:
            return
        columns = block.inputs[samples, places]
        step = np.where(z[columns] + 1.0 <= upper[columns] + 1e-6, 1.0, -1.0)
        movable = upper[columns] - lower[columns] > 0.5
        read = block.inputs[samples] == columns[:, None]  # a sample may read a column more than once
        with torch.no_grad():
            there = self._forward(b, z[block.inputs[samples]] + read * step[:, None])
        secant = (there - value[samples]) / (step * read.sum(axis=1))[:, None]
        slope[samples[movable], :, places[movable]] = secant[movable]

    @cached_property
    def conditions(self) -> Conditions:
        """The conditions of all class outputs."""
        column: list[int] = []
        when, margin = [], []
        row, place, sign = [], [], []
        first = 0
        for block in self._blocks:
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
                        place += [at + k, at + j] if pairs else [at]
                        sign += [1.0, -1.0] if pairs else [1.0 if wanted else -1.0]
            first += block.outputs.size
        form = sp.csr_array((sign, (row, place)), shape=(len(column), self.count)) if column else None
        return Conditions(
            np.array(column, dtype=np.int64),
            np.array(when, dtype=bool),
            form if form is not None else sp.csr_array((0, self.count)),
            np.array(margin),
        )


def _classes(logits: FloatArray) -> FloatArray:
    """0 or 1 by the sign of a single logit, one-hot of the largest of several."""
    if logits.shape[1] == 1:
        return (logits >= 0.0).astype(np.float64)
    return np.asarray(np.eye(logits.shape[1])[logits.argmax(axis=1)])
