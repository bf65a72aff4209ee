"""A problem whose predictors are all tree ensembles, in cells: made once for all methods that know them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.analysis.boxes import input_box, tight_box
from dovetail.analysis.host import limits_within
from dovetail.analysis.input_cells import InputCells
from dovetail.analysis.leaf_boxes import LeafBoxes, leaf_boxes
from dovetail.bounds.box import Box
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.problem import Problem
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.run.context import SolveContext

MOST_LEAVES = 1_000_000
"""Of all samples together: a quarter of a gigabyte of demands, and some seconds. Beyond it trees are
taken as functions."""


@dataclass(frozen=True, eq=False)
class TreeSample:
    """One sample of a block."""

    block: Block
    outputs: IntArray
    """Its columns."""
    boxes: LeafBoxes

    def decoded(self, scores: FloatArray) -> FloatArray:
        """(..., outputs) what the output columns are for (..., scores)."""
        values = self.boxes.ensemble.linked(scores)
        if not self.block.classifies:
            return values
        return self.block.decode(values.reshape(-1, values.shape[-1])).reshape(values.shape)

    def decoded_range(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(..., outputs) least and largest output columns for (..., scores) between two bounds, proved.

        A class that rounding may decide either way is left open.
        """
        least, most = self.boxes.ensemble.output_range(low, high)
        block = self.block
        if not block.classifies:
            return least, most
        if least.shape[-1] == 1:
            return (least >= block.threshold).astype(float), (most >= block.threshold).astype(float)
        ahead = np.max(least, axis=-1, keepdims=True)
        may_win = most >= ahead
        alone = may_win & (may_win.sum(axis=-1, keepdims=True) == 1)
        return alone.astype(float), may_win.astype(float)


@dataclass(frozen=True, eq=False)
class TreeProblem:
    """The host in minimisation form, within its box, the cells of its inputs, and all samples."""

    problem: Problem
    host: Mip
    cells: InputCells
    samples: tuple[TreeSample, ...]

    @property
    def whole(self) -> BoolArray:
        """(J,) which of the cells' columns are integer."""
        return np.asarray(self.host.integer[self.cells.columns])

    def outputs_at(self, cells: IntArray) -> FloatArray:
        """(columns,) what all outputs are where inputs are in these cells; 0 elsewhere."""
        found = np.zeros(self.host.n_columns)
        for sample in self.samples:
            found[sample.outputs] = sample.decoded(sample.boxes.scores(cells))
        return found

    def bounds_in(self, cells: IntArray, outputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(columns,) the host's bounds for points in these cells, outputs held."""
        lower, upper, flat = self.host.lower.copy(), self.host.upper.copy(), self.cells.flat(cells)
        lower[self.cells.columns], upper[self.cells.columns] = self.cells.inner[flat], self.cells.high[flat]
        held = self.problem.outputs
        lower[held] = upper[held] = outputs[held]
        return lower, upper


def tree_problem(context: SolveContext) -> TreeProblem | None:
    """The problem of a solve in cells; None where some predictor is no tree ensemble, or reads another's
    output, or where trees are too many or an input has no bound."""
    problem = context.problem
    ensembles = context.once(tree_ensembles)
    if ensembles is None:
        return None
    box = context.once(tight_box)
    return in_cells(problem, ensembles, box) if np.all(box.finite[problem.inputs]) else None


def loose_tree_problem(context: SolveContext) -> TreeProblem | None:
    """What bounds are proved of: rows as far out as the check accepts."""
    problem = context.relaxed or context.problem
    ensembles = context.once(tree_ensembles)
    if ensembles is None:
        return None
    loose = problem.derived(loosened(problem), problem.blocks)
    box = input_box(loose, context.budget, seed=context.seed, threads=context.threads)
    return in_cells(loose, ensembles, box) if np.all(box.finite[problem.inputs]) else None


def loosened(problem: Problem) -> Mip:
    """Rows, and bounds of outputs, as far out as the check accepts; other columns of points are clipped."""
    mip = problem.mip.minimised()
    room = np.zeros(mip.n_columns)
    room[problem.outputs] = np.where(mip.integer[problem.outputs], 0.0, TOLERANCE)
    return replace(
        mip,
        row_lower=mip.row_lower - TOLERANCE,
        row_upper=mip.row_upper + TOLERANCE,
        lower=mip.lower - room,
        upper=mip.upper + room,
    )


def tree_ensembles(context: SolveContext) -> list[TreeEnsemble] | None:
    """That of each block, where all of them are such, and few enough."""
    problem = context.problem
    if not problem.blocks or any(block.description.trees is None for block in problem.blocks):
        return None
    if np.intersect1d(problem.inputs, problem.outputs).size:
        return None
    known = [block.description.trees_if_known() for block in problem.blocks]
    found = [ensemble for ensemble in known if ensemble is not None]
    if len(found) < len(known):
        return None
    leaves = sum(int(e.is_leaf.sum()) * b.samples for e, b in zip(found, problem.blocks, strict=True))
    return found if leaves <= MOST_LEAVES else None


def in_cells(problem: Problem, ensembles: list[TreeEnsemble], box: Box) -> TreeProblem:
    """A problem of tree ensembles, one for each block, in a box that is finite on its inputs."""
    low, high, integer = limits_within(problem, box.lower, box.upper)
    columns = problem.inputs
    cuts: list[list[FloatArray]] = [[np.empty(0)] for _ in columns]
    for block, ensemble in zip(problem.blocks, ensembles, strict=True):
        for j, cut in enumerate(ensemble.cuts):
            for place in np.unique(np.searchsorted(columns, block.inputs[:, j])):
                cuts[place].append(cut)
    cells = InputCells.of(
        columns, [np.concatenate(parts) for parts in cuts], low[columns], high[columns], integer[columns]
    )
    samples = tuple(
        TreeSample(block, block.outputs[i], leaf_boxes(ensemble, block.inputs[i], cells))
        for block, ensemble in zip(problem.blocks, ensembles, strict=True)
        for i in range(block.samples)
    )
    mip = problem.mip.minimised()
    host = replace(mip, lower=low, upper=high, integer=integer)
    return TreeProblem(problem, host, cells, samples)
