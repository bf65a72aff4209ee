"""Whether a problem is rows, networks that can be written as rows, and quadratic functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.analysis.boxes import tight_box, tightened_box
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.problem import Problem
from dovetail.core.quadratic import QuadraticFunction
from dovetail.methods.quadratic_mip.curve import Curve
from dovetail.reformulations.reformulated import Reformulated, reformulate
from dovetail.reformulations.relu_big_m import ReluBigM, relu_plan
from dovetail.run.context import SolveContext

FACTORED = 1e-13
"""What factors of a matrix may be off by, relative to its largest number: a thousand roundings."""


@dataclass(frozen=True, eq=False)
class QuadraticPlan:
    """The problem with its networks as rows, and its curves."""

    written: Reformulated
    curves: tuple[Curve, ...]
    unstable: int
    """Neurons that may change sign."""


def quadratic_plan(context: SolveContext) -> QuadraticPlan | None:
    """How the problem of a solve is taken apart, or None; made once (see `SolveContext.once`)."""
    problem = context.problem
    quadratic = {block.name: found for block in problem.blocks if (found := _functions(block)) is not None}
    if not quadratic:
        return None
    rest = _without(problem, quadratic)
    box, unstable = context.once(tight_box), 0
    relaxed = None if context.relaxed is None else _without(context.relaxed, quadratic)
    written = Reformulated.start(rest, box, relaxed)
    if rest.blocks:
        plan = relu_plan(rest, box)
        if plan is None:
            return None
        unstable = plan.unstable
        written = reformulate(written, (ReluBigM(plan),))
    return QuadraticPlan(written, _curves(context, quadratic), unstable)


def _without(problem: Problem, names: object) -> Problem:
    assert isinstance(names, dict)
    return problem.derived(problem.mip, tuple(block for block in problem.blocks if block.name not in names))


def _functions(block: Block) -> tuple[QuadraticFunction, ...] | None:
    """A block's outputs, where all are quadratic in its inputs and no input is read twice."""
    describe = block.description.quadratic
    if describe is None or block.classifies:
        return None
    twice = any(len(np.unique(sample)) < sample.size for sample in block.inputs)
    return None if twice else describe(block.inputs.shape[1])


def _curves(context: SolveContext, quadratic: dict[str, tuple[QuadraticFunction, ...]]) -> tuple[Curve, ...]:
    """All of them, over a box that holds whatever passes the check."""
    problem = context.relaxed or context.problem
    loose = problem.derived(problem.mip.minimised().loosened(), problem.blocks)
    box = tightened_box(loose, context.budget, seed=context.seed, threads=context.threads)
    fixed = problem.mip.lower == problem.mip.upper  # which the check would let move by a hair
    lower = np.where(fixed, problem.mip.lower, box.lower)
    upper = np.where(fixed, problem.mip.upper, box.upper)
    curves = []
    for block in context.problem.blocks:
        for sample, outputs in zip(block.inputs, block.outputs, strict=True):
            if block.name not in quadratic:
                break
            low, high = lower[sample], upper[sample]
            slack = block_slack(block, low[None], high[None])[0]
            for k, function in enumerate(quadratic[block.name]):
                off = float(slack[k]) + _mismatch(function, low, high)
                curves.append(Curve.of(int(outputs[k]), sample, function, (low, high), off))
    return tuple(curves)


def _mismatch(function: QuadraticFunction, low: np.ndarray, high: np.ndarray) -> float:
    """How far the factors of a function may be from it."""
    most = np.maximum(np.abs(low), np.abs(high)) + np.abs(function.centre)
    return FACTORED * float(np.max(np.abs(function.Q), initial=0.0)) * float(most @ most)
