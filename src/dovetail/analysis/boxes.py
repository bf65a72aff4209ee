"""Boxes for the inputs of networks: from bounds, from rows, and from the host's LP relaxation.

The paper's water model, for one, bounds its inputs only through budgets. Rows are
propagated first, which is cheap; the LP is asked only about inputs still without a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dovetail.bounds.box import PAD, Box, propagate, tidy
from dovetail.bounds.safe_lp import SafeLp
from dovetail.core.mip import Mip
from dovetail.core.problem import Problem
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.run.lp_duration import least_seconds

LP_SHARE = 0.25
"""Part of the time left that the LPs may use."""
TIGHTEN_SHARE, TIGHTEN_SECONDS = 0.08, 2.0
"""The same where they only make finite boxes tighter."""
TRIAL, WORTH = 8, 0.01
"""After so many inputs tightening goes on only if boxes shrank by this part."""
FIRST_SHARE = 0.25
"""Of the time for tightening: where the first input alone takes more, there is no use in beginning."""


def input_box(problem: Problem, budget: Budget, *, seed: int = 0, threads: int = 1) -> Box:
    """A box that holds every feasible point, finite on the inputs wherever the host makes it so."""
    mip = problem.mip.minimised()
    box = propagate(mip)
    open_inputs = problem.inputs[~box.finite[problem.inputs]]
    if open_inputs.size == 0 or mip.n_rows == 0:
        return box
    return _relaxation(mip, box, open_inputs, budget.part(LP_SHARE * budget.left), seed, threads)


def tight_box(context: SolveContext) -> Box:
    """The tightened box of a solve's problem; made once (see `SolveContext.once`)."""
    with context.stopwatch.measure("engine"):
        return tightened_box(context.problem, context.budget, seed=context.seed, threads=context.threads)


def tightened_box(problem: Problem, budget: Budget, *, seed: int = 0, threads: int = 1) -> Box:
    """`input_box`, then every input's least and largest value over the LP relaxation, as long as it pays."""
    box = input_box(problem, budget, seed=seed, threads=threads)
    mip = problem.mip.minimised()
    inputs = problem.inputs
    loose = inputs[box.finite[inputs] & (box.upper - box.lower > PAD)[inputs]]
    if loose.size == 0 or mip.n_rows == 0:
        return box
    part = budget.part(min(TIGHTEN_SHARE * budget.left, TIGHTEN_SECONDS))
    if 2.0 * least_seconds(mip) > FIRST_SHARE * part.left:
        return box
    order = np.random.default_rng(seed).permutation(loose)
    return _shrunk(mip, box, order, part, seed, threads)


def _shrunk(mip: Mip, box: Box, inputs: np.ndarray, budget: Budget, seed: int, threads: int) -> Box:
    lower, upper = box.lower.copy(), box.upper.copy()
    ask = _extremes(mip, box, budget, seed, threads)
    width = (upper - lower)[inputs]
    for done, j in enumerate(inputs):
        if budget.over:
            break
        if done == TRIAL and np.mean((upper - lower)[inputs[:done]] / width[:done]) > 1.0 - WORTH:
            break
        least, most = ask(j, 1.0), ask(j, -1.0)
        lower[j], upper[j] = max(lower[j], least), min(upper[j], most)
    empty = tidy(mip, lower, upper)
    return Box(lower, upper, complete=box.complete, empty=box.empty or empty)


def _relaxation(mip: Mip, box: Box, inputs: np.ndarray, budget: Budget, seed: int, threads: int) -> Box:
    """Least and largest value of the inputs that have no bound, over the LP relaxation."""
    lower, upper = box.lower.copy(), box.upper.copy()
    ask = _extremes(mip, box, budget, seed, threads)
    open_sides = [(j, sign, bounds) for j in inputs for sign, bounds in ((1.0, lower), (-1.0, upper))]
    complete = True
    for j, sign, bounds in open_sides:
        if np.isfinite(bounds[j]):
            continue
        if budget.over:
            complete = False
            break
        bounds[j] = ask(j, sign)
    empty = tidy(mip, lower, upper)
    return Box(lower, upper, complete=complete, empty=box.empty or empty)


def _extremes(mip: Mip, box: Box, budget: Budget, seed: int, threads: int) -> Callable[[int, float], float]:
    """Least (sign 1) and largest (sign -1) value of a column over the LP relaxation: proved, not believed."""
    relaxed = replace(mip.as_checked(), lower=box.lower, upper=box.upper)
    lp, one = SafeLp(relaxed, seed=seed, threads=threads), np.ones(1)
    return lambda j, sign: lp.extreme(np.array([j]), one, sign, budget, room=PAD)[1]
