"""Whether planes can stand for the networks of a problem: known ones, of few inputs each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.bounds.box import Box
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.branching.network_cells import few_inputs
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.class_rounding import block_slack
from dovetail.core.mip import Mip
from dovetail.run.context import SolveContext
from dovetail.structure.structure import structure_of

MOST_SAMPLES = 400
"""Their cuts fill the LP."""


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
        if block.classifies or not np.all(np.isfinite(upper - lower)) or not np.all(few_inputs(lower, upper)):
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
