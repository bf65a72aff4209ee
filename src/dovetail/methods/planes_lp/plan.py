"""Whether planes can stand for the networks of a problem: known ones, of few inputs each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.bounds.box import Box
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.class_rounding import block_slack
from dovetail.core.mip import Mip
from dovetail.run.context import SolveContext
from dovetail.structure.structure import structure_of

MOST_INPUTS, MOST_SAMPLES = 4, 400
"""Inputs of one sample that can move: cells are as many as a power of it. Samples: their cuts fill the LP."""
WIDE = 1e-5
"""Inputs whose box is narrower are as good as fixed: a fixed one may be off by 1e-6 either way."""


@dataclass(frozen=True, eq=False)
class Sample:
    """One sample of a network that reads few inputs."""

    planes: NetworkPlanes
    inputs: IntArray
    outputs: IntArray
    slack: FloatArray
    """(q,) how far the deployed network may be from its graph."""


@dataclass(frozen=True, eq=False)
class PlanesPlan:
    """What is known of a problem that can be bounded so."""

    mip: Mip
    """In minimisation form, as far out as the check accepts."""
    box: Box
    samples: tuple[Sample, ...]
    inputs: IntArray
    """Columns that some network reads."""

    @property
    def count(self) -> int:
        """How many samples."""
        return len(self.samples)


def planes_plan(context: SolveContext) -> PlanesPlan | None:
    """Whether and how planes can stand for the networks; made once (see `SolveContext.once`)."""
    structure = context.once(structure_of)
    if structure.samples > MOST_SAMPLES:
        return None
    loose, box = structure.loose, structure.loose_box
    samples: list[Sample] = []
    for block in loose.blocks:
        lower, upper = box.lower[block.inputs], box.upper[block.inputs]
        moving = np.count_nonzero(upper - lower > WIDE, axis=1)
        if block.classifies or not np.all(np.isfinite(upper - lower)) or np.max(moving) > MOST_INPUTS:
            return None
        slack = block_slack(block, lower, upper)
        planes = structure.planes(block)
        if planes is None or not np.all(np.isfinite(slack)):
            return None
        for i in range(block.samples):
            samples.append(Sample(planes, block.inputs[i], block.outputs[i], slack[i]))
    if not samples:
        return None
    return PlanesPlan(loose.mip, box, tuple(samples), loose.inputs)
