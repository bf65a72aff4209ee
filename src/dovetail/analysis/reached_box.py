"""What networks can reach from one to the next where rows of the host lie between them.

A state that a row makes of a network's output, and that the next network reads, often has no bound of its
own, as the host alone says nothing of outputs. What the first network can give bounds the state, and so on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from dovetail.analysis.block_graph import block_graph
from dovetail.bounds.box import Box, propagate
from dovetail.bounds.planes.domain import Boxes
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.problem import Problem

MOST_PASSES = 100
"""One for each network of the longest chain; a planning horizon has some dozens."""


def reached_box(problem: Problem, box: Box) -> Box:
    """`box`, tightened by what networks give on it, until every input has a bound or nothing gives another.

    Outputs are those of the deployed predictors, rows hold as the check has them.
    """
    mip = problem.mip.minimised()
    waiting = [(block, np.arange(block.samples)) for block in problem.blocks]
    for _ in range(MOST_PASSES):
        if np.all(box.finite[problem.inputs]):
            break
        lower, upper, still = box.lower.copy(), box.upper.copy(), []
        for block, samples in waiting:
            ready = np.all(box.finite[block.inputs[samples]], axis=1)
            still.append((block, samples[~ready]))
            if np.any(ready):
                _bound_outputs(problem, block, samples[ready], lower, upper)
        if sum(samples.size for _, samples in still) == sum(samples.size for _, samples in waiting):
            break
        waiting, box = still, propagate(replace(mip, lower=lower, upper=upper))
    return box


def _bound_outputs(
    problem: Problem, block: Block, samples: IntArray, lower: FloatArray, upper: FloatArray
) -> None:
    """Bounds of some samples' outputs, in place; none where the network is not known well enough."""
    read, outputs = block.inputs[samples], block.outputs[samples]
    if block.classifies:
        ends: tuple[FloatArray, FloatArray] = np.zeros(outputs.shape), np.ones(outputs.shape)
    else:
        graph, slack = block_graph(problem, block), block_slack(block, lower[read], upper[read])
        if graph is None or not np.all(np.isfinite(slack)):
            return
        boxes = Boxes(torch.from_numpy(lower[read]), torch.from_numpy(upper[read]))
        ranges = NetworkPlanes(graph).ranges(boxes)
        ends = ranges.lower[-1].numpy() - slack, ranges.upper[-1].numpy() + slack
    lower[outputs] = np.maximum(lower[outputs], ends[0])
    upper[outputs] = np.minimum(upper[outputs], ends[1])
