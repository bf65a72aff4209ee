"""Recognises problems of rows, quadratic functions, and networks or trees that can be written as rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.problem import Problem
from dovetail.core.quadratic import QuadraticFunction
from dovetail.methods.quadratic_mip.curve import QuadCurve
from dovetail.reformulations.reformulated import Reformulated, reformulate
from dovetail.reformulations.relu_big_m import ReluBigM
from dovetail.run.context import SolveContext
from dovetail.structure.boxes import tightened_box
from dovetail.structure.relu_layers import relu_layers
from dovetail.structure.structure import Structure, structure_of

FACTOR_TOLERANCE = 1e-13
"""Relative rounding of factors of a matrix: a thousand roundings."""


@dataclass(frozen=True, eq=False)
class QuadraticPlan:
    """The problem with its networks as rows, and its quadratic functions."""

    written: Reformulated
    curves: tuple[QuadCurve, ...]
    unstable: int = 0
    """Number of neurons that may change sign."""

    def point(self, z: FloatArray, *, of_bound: bool) -> FloatArray:
        """The point of the problem for a point of the MIP, of that for points or of that for a bound."""
        return (self.written.for_bounds if of_bound else self.written).restrict(z)


def quadratic_plan(context: SolveContext) -> QuadraticPlan | None:
    """The plan of a solve's problem, or None; made once (see `SolveContext.once`)."""
    structure = context.once(structure_of)
    if not structure.quadratic:
        return None
    rest = _without_blocks(context.problem, structure.quadratic)
    relaxed = None if context.relaxed is None else _without_blocks(context.relaxed, structure.quadratic)
    curves = _curves(structure)
    box = structure.tight_box
    written = Reformulated.start(rest, box, relaxed)
    if not rest.blocks:
        return QuadraticPlan(written, curves)
    layers = relu_layers(rest, box)
    if layers is None:
        return None
    return QuadraticPlan(reformulate(written, (ReluBigM(layers),)), curves, layers.unstable)


def _without_blocks(problem: Problem, names: Collection[str]) -> Problem:
    return problem.derived(problem.mip, tuple(block for block in problem.blocks if block.name not in names))


def _curves(structure: Structure) -> tuple[QuadCurve, ...]:
    """All quadratic functions, over a box of all points that the check accepts."""
    problem = structure.proved
    box = tightened_box(structure.loose, structure.budget, seed=structure.seed, threads=structure.threads)
    fixed = problem.mip.lower == problem.mip.upper  # the check would let these move by a hair, but every
    fixed[problem.outputs] = False  # candidate is set to their values, unless a predictor writes them
    lower = np.where(fixed, problem.mip.lower, box.lower)
    upper = np.where(fixed, problem.mip.upper, box.upper)
    curves = []
    for block in structure.problem.blocks:
        if block.name not in structure.quadratic:
            continue
        low, high = lower[block.inputs], upper[block.inputs]
        slack = _slack(block, low, high)
        for i, (inputs, outputs) in enumerate(zip(block.inputs, block.outputs, strict=True)):
            for k, function in enumerate(structure.quadratic[block.name]):
                off = float(slack[i, k]) + _mismatch(function, low[i], high[i])
                curves.append(QuadCurve.of(int(outputs[k]), inputs, function, (low[i], high[i]), off))
    return tuple(curves)


def _slack(block: Block, low: FloatArray, high: FloatArray) -> FloatArray:
    """(samples, outputs) rounding of the samples; infinite if inputs are unbounded."""
    slack = np.full(block.outputs.shape, np.inf)
    finite = np.all(np.isfinite(low) & np.isfinite(high), axis=1)
    if np.any(finite):
        slack[finite] = block_slack(block, low[finite], high[finite])
    return slack


def _mismatch(function: QuadraticFunction, low: np.ndarray, high: np.ndarray) -> float:
    """The largest difference of a function from its factors."""
    most = np.maximum(np.abs(low), np.abs(high))[function.places] + np.abs(function.centre)
    largest = float(np.max(np.abs(function.Q), initial=0.0))
    return FACTOR_TOLERANCE * largest * float(most @ most) if largest > 0.0 else 0.0
