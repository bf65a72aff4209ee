"""What predictors can give over a box, passed on to all that reads it: other predictors, and rows.

A state that a row makes of a network's output, and that the next network reads, often has no bound of its
own, as the host alone says nothing of outputs. What the first network can give bounds the state, and so on.

Where an output, or a row over outputs, would have to be what no predictor gives, nothing is feasible: no
branching is needed to prove that. It holds for all points that the check accepts where the rows and bounds
were loosened before, since ranges have room for whatever the deployed predictors round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from dovetail.analysis.block_graph import required_graph
from dovetail.analysis.boxes import input_box
from dovetail.bounds.box import Box, Crossed, narrow, propagate
from dovetail.bounds.planes.domain import Boxes
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.bounds.planes.output_ranges import output_ranges
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.errors import UnsupportedError
from dovetail.core.mip import TOLERANCE
from dovetail.core.problem import Problem
from dovetail.run.context import SolveContext

MOST_PASSES = 100
"""One for each network of the longest chain; a planning horizon has some dozens."""
MOST_CELLS = 200_000
"""Rows times columns: beyond that an LP over a box takes a second, and there may be thousands of samples."""


@dataclass(frozen=True, eq=False)
class Reached:
    """A problem in minimisation form, as loose as the check, and the box of its points."""

    problem: Problem
    box: Box

    @property
    def why_empty(self) -> str:
        """Why there is no point; "" where that is not proved."""
        if self.box.empty is None:
            return ""
        column, least, most = self.box.empty
        return (
            "proved by the ranges of the predictors' outputs: with what they can give, "
            f"{self.problem.mip.column_name(column)} would have to be at least {least:g} and at most {most:g}"
        )


def reached(context: SolveContext) -> Reached | None:
    """What the predictors of a solve can reach; None where the problem is too large to be looked at.

    Made once (see `SolveContext.once`).
    """
    problem = context.relaxed or context.problem
    if problem.mip.n_rows * problem.mip.n_columns > MOST_CELLS:
        return None
    loose = problem.derived(problem.mip.minimised().loosened(), problem.blocks)
    box = input_box(loose, context.budget, seed=context.seed, threads=context.threads)
    return Reached(loose, reached_box(loose, box))


def reached_box(problem: Problem, box: Box) -> Box:
    """`box`, tightened by what predictors give on it, until all were asked or nothing gives another bound.

    Outputs are those of the deployed predictors.
    """
    mip = problem.mip.minimised()
    waiting = [(block, np.arange(block.samples)) for block in problem.blocks]
    for _ in range(MOST_PASSES):
        if box.empty is not None:
            break
        lower, upper, still, empty = box.lower.copy(), box.upper.copy(), [], None
        for block, samples in waiting:
            ready = np.all(box.finite[block.inputs[samples]], axis=1)
            still += [(block, samples[~ready])] if not np.all(ready) else []
            if np.any(ready):
                empty = empty or _bound_outputs(problem, block, samples[ready], lower, upper)
        if empty is not None:
            return replace(box, empty=empty)
        if sum(samples.size for _, samples in still) == sum(samples.size for _, samples in waiting):
            break
        waiting, box = (
            still,
            replace(propagate(replace(mip, lower=lower, upper=upper)), complete=box.complete),
        )
    return box


def _bound_outputs(
    problem: Problem, block: Block, samples: IntArray, lower: FloatArray, upper: FloatArray
) -> Crossed | None:
    """Bounds of some samples' outputs, in place; an output that no value is left for, if there is one."""
    read, outputs = block.inputs[samples], block.outputs[samples]
    least, most = _trees(block, outputs) or _network(problem, block, lower[read], upper[read])
    if block.classifies:  # 0 or 1, whatever the column may be
        least, most = np.fmax(least, 0.0), np.fmin(most, 1.0)
        least = np.fmax(least, np.ceil(lower[outputs] - TOLERANCE))
        most = np.fmin(most, np.floor(upper[outputs] + TOLERANCE))
    return narrow(lower, upper, outputs, least, most)


def _trees(block: Block, outputs: IntArray) -> tuple[FloatArray, FloatArray] | None:
    """The ends of what an ensemble can give; None where it is none."""
    ensemble = None if block.classifies else block.description.trees_if_known()
    if ensemble is None:
        return None
    least, most = ensemble.widest_output_range
    return np.broadcast_to(least, outputs.shape), np.broadcast_to(most, outputs.shape)


def _network(
    problem: Problem, block: Block, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The ends of what a network can give, or of the classes it can; NaN where too little is known of it."""
    slack, boxes = block_slack(block, lower, upper), Boxes(torch.from_numpy(lower), torch.from_numpy(upper))
    try:
        ranges = output_ranges(NetworkPlanes(required_graph(problem, block)), boxes)
    except UnsupportedError:
        unknown = np.full((len(lower), block.outputs.shape[1]), np.nan)
        return unknown, unknown
    least, most = ranges.lower[-1].numpy(), ranges.upper[-1].numpy()
    if not block.classifies:
        return least - slack, most + slack
    never, always = _classes(least, most, slack)
    return np.where(always, 1.0, np.nan), np.where(never, 0.0, np.nan)


def _classes(least: FloatArray, most: FloatArray, slack: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Which classes are never given, and which always, by the ranges of their logits; NaN says neither.

    The slack is as `class_slack` has it: of one logit against 0, or of each logit against each other.
    """
    if least.shape[1] == 1:
        return most < -slack[:, :1], least > slack[:, 1:]
    behind = most[:, :, None] - least[:, None, :] < -slack  # (n, class, other)
    behind[:, np.arange(least.shape[1]), np.arange(least.shape[1])] = False
    never = np.asarray(behind.any(axis=2))
    return never, np.asarray(never.sum(axis=1, keepdims=True) - never == least.shape[1] - 1)
