"""Networks as layers of ReLUs with their ranges, for MIPs with neurons.

Ranges of neurons come from planes over the input boxes, which use that neurons of one layer read the same
inputs. Neurons that cannot change sign need no binary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from dovetail.bounds.box import Box, common, narrow
from dovetail.bounds.planes.domain import Boxes
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.probe import computes
from dovetail.core.problem import Problem
from dovetail.networks.layers import Activation, Dense, Layer, folded, program_of, thresholded
from dovetail.networks.program import Program
from dovetail.structure.boxes import limits_within

LARGEST = 1e6
"""Largest bound of a neuron: larger ones make rows that engines solve wrongly."""
MOST_WORK = 2e9
"""Multiplications (about a second) beyond which a network is too large to be written out."""

LayerRanges = tuple[tuple[FloatArray, FloatArray], ...]
"""(n, size) ranges of the inputs, then of each layer."""


def dense_layers(problem: Problem, block: Block) -> tuple[Layer, ...] | None:
    """A block's layers if all can be written exactly: dense, ReLU, a class at the end."""
    layers = block.description.layers_if_known()
    if layers is None or not computes(problem.mip, block, layers):
        return None
    if block.classifies:
        layers = thresholded(layers, block.outputs.shape[1], block.threshold, 0.0)
    if any(isinstance(layer, Activation) and layer.kind != "relu" for layer in layers):
        return None
    return folded(layers)


@dataclass(frozen=True, eq=False)
class LayerBounding:
    """Layers prepared for bounds over any boxes."""

    layers: tuple[Layer, ...]
    inputs: int

    def ranges(self, lower: FloatArray, upper: FloatArray, known: LayerRanges | None = None) -> LayerRanges:
        """Ranges for samples with inputs between (n, d) bounds, intersected with `known`."""
        by_planes = self._by_planes(lower, upper)
        low, high = (lower, upper) if known is None else common(lower, upper, *known[0])[:2]
        ranges = [(low, high)]
        for place, step in enumerate(self._steps, start=1):
            least, most = step.ranges(low, high)
            low, high = least[:, step.outputs], most[:, step.outputs]
            for other in (by_planes, known):
                if other is not None:
                    low, high, _ = common(low, high, *other[place])
            ranges.append((low, high))
        return tuple(ranges)

    @cached_property
    def _steps(self) -> tuple[Program, ...]:
        """The ranges layer by layer."""
        steps, size = list[Program](), self.inputs
        for layer in self.layers:
            steps.append(program_of((layer,), size))
            size = steps[-1].outputs.size
        return tuple(steps)

    @cached_property
    def _planes(self) -> NetworkPlanes | None:
        """The ranges by planes, for layers that are steps of the graph."""
        planes = NetworkPlanes(program_of(self.layers, self.inputs).graph())
        return planes if len(planes.graph.steps) == len(self.layers) else None

    def _work(self, samples: int) -> float:
        """Number of multiplications: the rows of every layer, both signs, passed back through all layers
        before."""
        total, before = 0.0, 0.0
        for layer in self.layers:
            if isinstance(layer, Dense):
                before += layer.weight.size
                total += 2.0 * len(layer.bias) * before
        return samples * total

    def _by_planes(self, lower: FloatArray, upper: FloatArray) -> LayerRanges | None:
        if not self.layers or self._work(len(lower)) > MOST_WORK or self._planes is None:
            return None
        domain = Boxes(torch.from_numpy(np.array(lower)), torch.from_numpy(np.array(upper)))
        found = self._planes.output_ranges(domain)
        return tuple((low.numpy(), high.numpy()) for low, high in zip(found.lower, found.upper, strict=True))


@dataclass(frozen=True, eq=False)
class Piece:
    """Samples of one block with their layers and ranges."""

    block: Block
    samples: IntArray
    layers: tuple[Layer, ...]
    ranges: LayerRanges
    slack: FloatArray
    """The error of the layers for each sample: per output, or in the form of `class_slack`."""
    bounding: LayerBounding
    """The object that computed the ranges."""


@dataclass(frozen=True, eq=False)
class ReluLayers:
    """All networks of a problem, sample by sample in the order of evaluation."""

    pieces: tuple[Piece, ...]
    unstable: int
    """Number of neurons that may change sign over the box, which need binaries."""
    box: Box | None = None
    """The bounds of columns; None: the bounds of the problem."""

    @property
    def depth(self) -> int:
        """Number of ReLU layers of the deepest network."""
        return max((sum(isinstance(one, Activation) for one in p.layers) for p in self.pieces), default=0)

    @property
    def proves(self) -> bool:
        """Whether every output of a network has a known error."""
        return all(piece.block.classifies or np.all(np.isfinite(piece.slack)) for piece in self.pieces)


def relu_layers(problem: Problem, box: Box, known: ReluLayers | None = None) -> ReluLayers | None:
    """The ReLU layers of a problem over a box; None if a block is not such a network or has no range. Ranges
    are intersected with `known`."""
    reach = Box(*limits_within(problem, box.lower, box.upper)[:2])
    networks = (
        {block.name: dense_layers(problem, block) for block in problem.blocks}
        if known is None
        else {piece.block.name: piece.layers for piece in known.pieces}
    )
    pieces: list[Piece] = []
    unstable = 0
    for stage in problem.stages:
        for block, samples in stage:
            layers = networks[block.name]
            lower, upper = reach.lower[block.inputs[samples]], reach.upper[block.inputs[samples]]
            if layers is None or not np.all(np.isfinite(upper - lower)):
                return None
            slack = block_slack(block, lower, upper)
            before = None if known is None else known.pieces[len(pieces)]
            bounding = LayerBounding(layers, lower.shape[1]) if before is None else before.bounding
            ranges = bounding.ranges(lower, upper, None if before is None else before.ranges)
            pieces.append(Piece(block, samples, layers, ranges, slack, bounding))
            if not all(np.max(np.abs(side), initial=0.0) <= LARGEST for pair in ranges[1:] for side in pair):
                return None  # too large, or NaN
            for layer, (lower, upper) in zip(layers, ranges, strict=False):
                if isinstance(layer, Activation):
                    unstable += int(np.count_nonzero((lower < 0) & (upper > 0)))
            lower, upper = ranges[-1]
            if not block.classifies:  # the known ranges of outputs, for the networks that read them
                narrow(reach.lower, reach.upper, block.outputs[samples], lower - slack, upper + slack)
    return ReluLayers(tuple(pieces), unstable)
