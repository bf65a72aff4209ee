"""A box that holds what predictors hand on to others: outputs of networks and trees, stage after stage.

A tree that reads a network's output needs its range before its cuts can be told apart there, and the other
way round. What no range is known of stays as the host has it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dovetail.analysis.host import limits_within
from dovetail.bounds.box import Box
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.problem import Problem
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.reformulations.neuron_ranges import neuron_ranges
from dovetail.reformulations.relu_big_m import dense_layers


def chained_box(problem: Problem, box: Box, ensembles: Mapping[str, TreeEnsemble]) -> Box:
    """`box` with the outputs of all blocks between what their predictors can give; trees by block."""
    reach = Box(*limits_within(problem, box.lower, box.upper)[:2])
    for stage in problem.stages:
        for block, samples in stage:
            if block.classifies:
                continue
            ensemble = ensembles.get(block.name)
            ends = (
                _network(problem, block, samples, reach) if ensemble is None else ensemble.widest_output_range
            )
            if ends is not None:
                outputs = block.outputs[samples]
                reach.lower[outputs] = np.maximum(reach.lower[outputs], ends[0])
                reach.upper[outputs] = np.minimum(reach.upper[outputs], ends[1])
    return reach


def _network(
    problem: Problem, block: Block, samples: IntArray, reach: Box
) -> tuple[FloatArray, FloatArray] | None:
    layers = dense_layers(problem, block)
    lower, upper = reach.lower[block.inputs[samples]], reach.upper[block.inputs[samples]]
    if layers is None or not np.all(np.isfinite(upper - lower)):
        return None
    slack = block_slack(block, lower, upper)
    low, high = neuron_ranges(layers, lower, upper, None)[-1]
    return low - slack, high + slack
