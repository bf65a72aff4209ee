"""All networks of a problem together: values at many inputs, and the linearisation at one solution.

The outputs of all blocks are concatenated, block by block and sample by sample. The value of a regression is
its output. The value of a class output is its logit minus the threshold (with k classes: k logits), and
`conditions` says which combinations of logits make a class.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block, classes_of
from dovetail.core.errors import UnsupportedError
from dovetail.core.jacobian import jacobian
from dovetail.core.mip import SMALLEST, TOLERANCE
from dovetail.core.problem import Problem
from dovetail.networks.evaluation import StackedGraphs, shape_of
from dovetail.networks.functions import LAYERS
from dovetail.networks.graph import Elementwise, Enclosed, Graph
from dovetail.run.guard import counter
from dovetail.run.network_step import decision_values
from dovetail.run.work import Stopwatch
from dovetail.structure.networks import required_graph

CHUNK = 16384
"""Rows per network call: a layer of a thousand neurons takes 128 MB."""


@dataclass(frozen=True, eq=False)
class Linearisation:
    """The networks to first order at one point: value_o(x) is about offset_o + slope_o'x."""

    values: FloatArray
    """(m,) values at the point."""
    slopes: FloatArray
    """One slope for each entry of the Jacobian, in the order of `Networks.rows` and `Networks.columns`."""
    offset: FloatArray
    """(m,) values of the linearisation at x = 0."""


class _BlockBatch(Protocol):
    """K blocks with equally many samples, evaluated in one call."""

    def values(self, X: FloatArray) -> FloatArray:
        """(K, n, q) decision values at n points (K, n, d) of each block."""

    def slopes(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The values, and their (K, n, q, d) derivatives."""


class Networks:
    """All blocks of a problem; blocks with equal networks are evaluated in one batch."""

    def __init__(self, problem: Problem, stopwatch: Stopwatch, device: str | None = None) -> None:
        self._stopwatch = stopwatch
        self._blocks, self._stages = problem.blocks, problem.stages
        self._groups, self._alone = _groups(problem, device)
        self._integer = problem.mip.integer.copy()
        for block in problem.blocks:
            if block.classifies:
                self._integer[block.outputs] = True
        self._lower, self._upper = problem.mip.lower, problem.mip.upper
        nothing = np.empty(0, dtype=np.int64)
        self.outputs: IntArray = np.concatenate([nothing, *(b.outputs.ravel() for b in problem.blocks)])
        """(m,) the column of each output."""
        self.classes: BoolArray = np.repeat(
            np.array([b.classifies for b in problem.blocks], dtype=bool),
            [b.outputs.size for b in problem.blocks],
        )
        """(m,) which outputs are classes."""
        self._pattern(problem.mip.n_columns)

    def _pattern(self, columns: int) -> None:
        """The Jacobian's sparsity: one entry for an output and a column, even if a sample reads it twice.
        `rows` and `columns` are output and column of the entries, `first_entry` the first entry of each
        output."""
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
        """Number of outputs."""
        return int(self.outputs.size)

    @cached_property
    def inputs(self) -> IntArray:
        """All columns that networks read."""
        return np.unique(self.columns)

    @cached_property
    def class_groups(self) -> list[IntArray]:
        """The output columns of each classified sample."""
        return [outputs for block in self._blocks if block.classifies for outputs in block.outputs]

    def jacobian(self, linearisation: Linearisation) -> sp.csr_array:
        """Slopes as a matrix over all columns."""
        return sp.csr_array((linearisation.slopes, self.columns, self.first_entry), shape=self.shape)

    def model_values(self, linearisation: Linearisation, at_entries: FloatArray) -> FloatArray:
        """(m,) values of a linearisation at a point, which is given by its value at each entry."""
        linear = np.bincount(self.rows, linearisation.slopes * at_entries, minlength=self.count)
        return np.asarray(linearisation.offset + linear)

    def values(self, Z: FloatArray) -> FloatArray:
        """(T, m) the networks' values at each row of `Z`, one call per group of blocks."""
        Z = np.atleast_2d(Z)
        parts = [np.empty((len(Z), 0))] * len(self._blocks)
        with self._stopwatch.measure("nn"), self._stopwatch.measure("network"), torch.no_grad():
            for group in self._groups:
                rows = np.stack([self._rows(b, Z) for b in group.blocks])
                for b, found in zip(group.blocks, group.networks.values(rows), strict=True):
                    parts[b] = found.reshape(len(Z), -1)
        return np.concatenate([np.empty((len(Z), 0)), *parts], axis=1)

    def _rows(self, b: int, Z: FloatArray) -> FloatArray:
        """The inputs of a block's samples at some points."""
        inputs = self._blocks[b].inputs
        return Z[:, inputs].reshape(-1, inputs.shape[1])

    def with_predictions(self, Z: FloatArray, values: FloatArray) -> FloatArray:
        """`Z` with every output set to the networks' value, stage by stage; `values` are those at `Z`
        itself."""
        Z = Z.copy()
        if len(self._stages) == 1:
            Z[:, self.outputs] = self._decoded(values)
            return Z
        for number in range(len(self._stages)):
            self.predict_stage(Z, number)
        return Z

    def predict_stage(self, Z: FloatArray, number: int) -> None:
        """Set the outputs of one stage."""
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
        found: FloatArray = self._alone[b].values(rows[None])[0]
        return found

    def linearise(self, z: FloatArray, *, secants: bool = False) -> Linearisation:
        """Values and slopes at `z`. With `secants`, the slope along an integer column is the difference to
        its neighbours, because a derivative is a poor estimate of the change over an integer step."""
        values, derivatives = [np.empty(0)] * len(self._blocks), [np.empty(0)] * len(self._blocks)
        with self._stopwatch.measure("nn"), self._stopwatch.measure("network"):
            for group in self._groups:
                found = group.networks.slopes(np.stack([z[self._blocks[b].inputs] for b in group.blocks]))
                for b, value, slope in zip(group.blocks, *found, strict=True):
                    if secants:
                        self._replace_by_secants(b, self._blocks[b], z, value, slope)
                    values[b], derivatives[b] = value.ravel(), slope.ravel()
        at = np.concatenate([np.empty(0), *values])
        flat = np.concatenate([np.empty(0), *derivatives])
        slopes = np.bincount(self._entry_of, flat, minlength=self.columns.size).astype(np.float64)
        slopes[np.abs(slopes) < SMALLEST] = 0.0  # HiGHS would drop them, but not their part of the offset
        linear = np.bincount(self.rows, slopes * z[self.columns], minlength=self.count)
        return Linearisation(at, slopes, at - linear)

    def _replace_by_secants(
        self, b: int, block: Block, z: FloatArray, value: FloatArray, slope: FloatArray
    ) -> None:
        """Replace slopes along integer inputs by the change over one step up (or down at the bound)."""
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
class _Group:
    """Blocks, by their places, that are evaluated together."""

    blocks: tuple[int, ...]
    networks: _BlockBatch


def _groups(problem: Problem, device: str | None) -> tuple[list[_Group], list[_BlockBatch]]:
    """All blocks in groups, and each block as a group of one."""
    alike: dict[Hashable, list[int]] = {}
    graphs = dict[int, Graph]()
    for b, block in enumerate(problem.blocks):
        graph = _graph(problem, block) if (device or block.description.device) == "cpu" else None
        alike.setdefault(b if graph is None else (shape_of(graph), block.samples), []).append(b)
        if graph is not None:
            graphs[b] = graph
    groups, alone = list[_Group](), dict[int, _BlockBatch]()
    for places in alike.values():
        blocks = [problem.blocks[b] for b in places]
        if places[0] in graphs:
            groups.append(_Group(tuple(places), _GraphEvaluation(blocks, [graphs[b] for b in places])))
            alone |= {b: _GraphEvaluation([problem.blocks[b]], [graphs[b]]) for b in places}
        else:
            alone[places[0]] = _CopyEvaluation(blocks[0], device or blocks[0].description.device)
            groups.append(_Group(tuple(places), alone[places[0]]))
    return groups, [alone[b] for b in range(len(problem.blocks))]


def _graph(problem: Problem, block: Block) -> Graph | None:
    """The graph of affine maps, activations and products; for a class, of its logit. None for others: the
    matrix of a convolution is large, and compositions of exponentials may overflow."""
    description = block.description
    if description.program is None or (block.classifies and block.outputs.shape[1] > 1):
        return None
    try:
        if description.program(block.inputs.shape[1]).convolves:
            return None
        graph = required_graph(problem, block)
    except UnsupportedError:
        return None
    kinds = {step.operation.kind for step in graph.steps if isinstance(step.operation, Elementwise)}
    whole = any(isinstance(step.operation, Enclosed) for step in graph.steps)
    return graph if kinds <= set(LAYERS) and not whole else None


class _GraphEvaluation:
    """Blocks with known graphs, evaluated by numpy."""

    def __init__(self, blocks: Sequence[Block], graphs: Sequence[Graph]) -> None:
        self._graphs = StackedGraphs(graphs)
        self._counters = [counter(block.predictor) for block in blocks]

    def _count(self, X: FloatArray) -> None:
        for count in self._counters:
            count(X.shape[1])

    def values(self, X: FloatArray) -> FloatArray:
        self._count(X)
        chunks = [self._graphs.values(X[:, k : k + CHUNK]) for k in range(0, X.shape[1], CHUNK)]
        return chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis=1)

    def slopes(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        self._count(X)
        return self._graphs.slopes(X)


class _CopyEvaluation:
    """One block, evaluated by a copy of its network, with torch's derivatives."""

    def __init__(self, block: Block, device: str) -> None:
        self._block, self._device = block, device
        self._forward = block.predictor.snapshot(device)

    def values(self, X: FloatArray) -> FloatArray:
        parts = [self._values(self._tensor(X[0, k : k + CHUNK])) for k in range(0, X.shape[1], CHUNK)]
        return np.concatenate([part.cpu().numpy() for part in parts])[None]

    def slopes(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        u = self._tensor(X[0]).requires_grad_(True)
        values = self._values(u)
        return values.detach().cpu().numpy()[None], jacobian(values, u).cpu().numpy()[None]

    def _values(self, u: Tensor) -> Tensor:
        return decision_values(self._block, self._forward(u))

    def _tensor(self, rows: FloatArray) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(rows), device=self._device)


@dataclass(frozen=True, eq=False)
class ClassConditions:
    """While column[c] is when[c], form[c]'values must be at least margin[c]. A single logit must be above
    the margin for class 1 and below minus the margin for class 0; with several classes, the class's logit
    must exceed each other one by the margin."""

    column: IntArray
    """(c,) the class output, 0 or 1, that activates the condition."""
    when: BoolArray
    """(c,) the value of that output."""
    form: sp.csr_array
    """(c, m) the combination of values, in the order of `Networks.outputs`."""
    margin: FloatArray
    """(c,) the block's epsilon."""

    @classmethod
    def of(cls, blocks: Sequence[Block], outputs: int) -> ClassConditions:
        """The conditions of all classified samples."""
        column: list[int] = []
        when, margin = [], []
        row, value, sign = [], [], []
        first = 0
        for block in blocks:
            q = block.outputs.shape[1]
            for i in range(block.samples if block.classifies else 0):
                at = first + i * q
                pairs = [(k, j) for k in range(q) for j in range(q) if k != j]
                # a single logit decides the class: it is compared with 0
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
        """Number of conditions."""
        return int(self.column.size)

    @cached_property
    def weights(self) -> sp.csr_array:
        """The absolute weight of each value in each condition."""
        return abs(self.form)

    def active(self, z: FloatArray) -> BoolArray:
        """The conditions that the classes in a point, or in each of several, activate."""
        return np.asarray((z[..., self.column] > 0.5) == self.when)

    def shortfall(self, z: FloatArray, values: FloatArray) -> FloatArray:
        """The violation of active conditions by the values for the classes in `z`."""
        return np.asarray(np.maximum(self.margin - values @ self.form.T, 0.0) * self.active(z))
