"""Boxes for the columns of a problem: from bounds, from rows, from the host's LP relaxation, from predictors.

The paper's water model, for example, bounds its inputs only through budgets. Rows are propagated first, which
is cheap; the LP is asked only about inputs still without a bound.

The range of a predictor's outputs over a box is passed on to everything that reads them (`reached_box`):
other predictors, and rows. A state that a row computes from a network's output, and that the next network
reads, often has no bound of its own, because the MIP alone does not limit outputs. The output range of the
first network bounds the state, and so on. If an output, or a row over outputs, would need a value that no
predictor gives, the problem is infeasible: no branching is needed to prove that. This holds for all points
that the check accepts if the rows and bounds were relaxed before, since ranges include the rounding of the
deployed predictors.

The range each column is expected to move in, and sample points of every block's inputs.

A box may be infinite; a typical range never is. The typical ranges guide lengths and starting points and
never limit the search. An output without bounds gets its range from sample points of its inputs, so that
networks fed by other networks have one too.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch

from dovetail.bounds.box import PAD, Box, CrossedBounds, common, narrow, propagate, tidy
from dovetail.bounds.planes.domain import Boxes
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.bounds.safe_lp import SafeLp
from dovetail.core.arrays import BoolArray, FloatArray, IntArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_slack
from dovetail.core.errors import ModelError, UnsupportedError
from dovetail.core.mip import TOLERANCE, Mip
from dovetail.core.probe import within_reach
from dovetail.core.problem import Problem
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.run.budget import Budget
from dovetail.run.engine import least_seconds
from dovetail.structure.networks import required_graph

LP_SHARE = 0.25
"""Share of the time left for LPs on unbounded inputs."""
TIGHTEN_SHARE, TIGHTEN_SECONDS = 0.08, 2.0
"""Share of the time left, and seconds, for LPs that only tighten finite boxes."""
TRIAL, WORTH = 8, 0.01
"""The number of inputs after which tightening continues only if their boxes shrank by the given fraction."""
FIRST_SHARE = 0.25
"""Fraction of the time for tightening: if the first input takes longer, tightening is not begun."""
MOST_PASSES = 100
"""Largest number of passes: one for each network of the longest chain."""
MOST_CELLS = 200_000
"""Rows times columns beyond which an LP over a box takes a second, with possibly thousands of samples."""


def class_limits(
    problem: Problem, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Bounds and integrality with the fact that class outputs are 0 or 1."""
    lower, upper, integer = lower.copy(), upper.copy(), problem.mip.integer.copy()
    for block in problem.blocks:
        if block.classifies:
            columns = block.outputs.ravel()
            lower[columns] = np.maximum(np.ceil(lower[columns] - 1e-6), 0.0)
            upper[columns] = np.minimum(np.floor(upper[columns] + 1e-6), 1.0)
            integer[columns] = True
    return lower, upper, integer


def limits_within(
    problem: Problem, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """`class_limits` of a box from rows; if no class fits it, those of the problem itself, whose
    infeasibility is proved elsewhere."""
    low, high, integer = class_limits(problem, lower, upper)
    own_low, own_high, _ = class_limits(problem, problem.mip.lower, problem.mip.upper)
    return *common(own_low, own_high, low, high)[:2], integer


def input_box(problem: Problem, budget: Budget, *, seed: int = 0, threads: int = 1) -> Box:
    """A box that contains every feasible point, finite on the inputs if the constraints make it so."""
    mip = problem.mip.minimised()
    box = propagate(mip)
    open_inputs = problem.inputs[~box.finite[problem.inputs]]
    if open_inputs.size == 0 or mip.n_rows == 0:
        return box
    lp = _relaxation(mip, box, seed, threads)
    return _lp_ranges(mip, box, lp, open_inputs, budget.part(LP_SHARE * budget.left), finite=False)


def tightened_box(problem: Problem, budget: Budget, *, seed: int = 0, threads: int = 1) -> Box:
    """`input_box` with every input tightened over the LP relaxation, as long as this pays."""
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
    return _lp_ranges(mip, box, _relaxation(mip, box, seed, threads), order, part, finite=True)


def _relaxation(mip: Mip, box: Box, seed: int, threads: int) -> SafeLp:
    return SafeLp(replace(mip.as_checked(), lower=box.lower, upper=box.upper), seed=seed, threads=threads)


def _lp_ranges(mip: Mip, box: Box, lp: SafeLp, inputs: IntArray, budget: Budget, *, finite: bool) -> Box:
    """Proved ranges of inputs over the LP relaxation: for unbounded sides, or for `finite` ones as long as
    this pays."""
    lower, upper, complete = box.lower.copy(), box.upper.copy(), box.complete
    width = (upper - lower)[inputs]
    for done, j in enumerate(inputs):
        if finite and done == TRIAL and np.mean((upper - lower)[inputs[:done]] / width[:done]) > 1.0 - WORTH:
            break
        for sign, bounds in ((1.0, lower), (-1.0, upper)):
            if np.isfinite(bounds[j]) and not finite:
                continue
            complete &= finite or not budget.over
            if not budget.over:
                found = lp.extreme(np.array([j]), np.ones(1), sign, budget, room=PAD)[1]
                bounds[j] = sign * max(sign * bounds[j], sign * found)
    empty = tidy(mip, lower, upper)
    return Box(lower, upper, complete=complete, empty=box.empty or empty)


@dataclass(frozen=True, eq=False)
class Reached:
    """A problem in minimisation form, relaxed as in the check, and a box of its points."""

    problem: Problem
    box: Box

    @property
    def why_empty(self) -> str:
        """Why there is no point; "" if infeasibility is not proved."""
        if self.box.empty is None:
            return ""
        column, least, most = self.box.empty
        return (
            "proved by the ranges of the predictors' outputs: with the outputs that are possible, "
            f"{self.problem.mip.column_name(column)} would have to be at least {least:g} and at most {most:g}"
        )


def reached_box(problem: Problem, box: Box, ensembles: Mapping[str, TreeEnsemble] | None = None) -> Box:
    """`box`, tightened by the output ranges of its predictors, until nothing changes. Outputs are those of
    the deployed predictors. `ensembles` are the ensembles of blocks of trees by name, if known."""
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
                empty = empty or _bound_outputs(problem, block, samples[ready], lower, upper, ensembles or {})
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
    problem: Problem,
    block: Block,
    samples: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    ensembles: Mapping[str, TreeEnsemble],
) -> CrossedBounds | None:
    """Tighten the output bounds of some samples in place; returns an output without any possible value, if
    there is one."""
    read, outputs = block.inputs[samples], block.outputs[samples]
    least, most = _trees(block, outputs, ensembles) or _network(problem, block, lower[read], upper[read])
    if block.classifies:  # 0 or 1, whatever the column's bounds
        least, most = np.fmax(least, 0.0), np.fmin(most, 1.0)
        least = np.fmax(least, np.ceil(lower[outputs] - TOLERANCE))
        most = np.fmin(most, np.floor(upper[outputs] + TOLERANCE))
    return narrow(lower, upper, outputs, least, most)


def _trees(
    block: Block, outputs: IntArray, ensembles: Mapping[str, TreeEnsemble]
) -> tuple[FloatArray, FloatArray] | None:
    """The output range of an ensemble; None for other predictors."""
    if block.classifies:
        return None
    ensemble = ensembles.get(block.name) or block.description.trees_if_known()
    if ensemble is None:
        return None
    least, most = ensemble.widest_output_range
    return np.broadcast_to(least, outputs.shape), np.broadcast_to(most, outputs.shape)


def _network(
    problem: Problem, block: Block, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The output range of a network, or of its classes; NaN if too little is known."""
    slack, boxes = block_slack(block, lower, upper), Boxes(torch.from_numpy(lower), torch.from_numpy(upper))
    try:
        ranges = NetworkPlanes(required_graph(problem, block)).output_ranges(boxes)
    except UnsupportedError:
        unknown = np.full((len(lower), block.outputs.shape[1]), np.nan)
        return unknown, unknown
    least, most = ranges.lower[-1].numpy(), ranges.upper[-1].numpy()
    if not block.classifies:
        return least - slack, most + slack
    never, always = _classes(least, most, slack)
    return np.where(always, 1.0, np.nan), np.where(never, 0.0, np.nan)


def _classes(least: FloatArray, most: FloatArray, slack: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Which classes are never given, and which always, from the ranges of their logits; NaN if neither is
    known. The slack has the form of `class_slack`."""
    if least.shape[1] == 1:
        return most < -slack[:, :1], least > slack[:, 1:]
    behind = most[:, :, None] - least[:, None, :] < -slack  # (n, class, other)
    behind[:, np.arange(least.shape[1]), np.arange(least.shape[1])] = False
    never = np.asarray(behind.any(axis=2))
    return never, np.asarray(never.sum(axis=1, keepdims=True) - never == least.shape[1] - 1)


def grid(columns: IntArray, lower: FloatArray, upper: FloatArray, most: int) -> FloatArray | None:
    """(k, columns) all combinations within the bounds, or None if there are more than `most`."""
    low, high = np.ceil(lower[columns]), np.floor(upper[columns])
    counts = high - low + 1.0
    with np.errstate(over="ignore"):  # an overflow means too many combinations
        if not np.all(np.isfinite(counts)) or np.prod(counts) > most:
            return None
    ranges = [first + np.arange(int(count)) for first, count in zip(low, counts, strict=True)]
    return np.array(list(itertools.product(*ranges))).reshape(int(np.prod(counts)), columns.size)


POINTS = 64
"""Number of samples of a block's inputs: enough for a spread within about a tenth."""
WIDEST = 1e10
"""Wider boxes do not show the typical range of a column, and their squares exceed the numbers that engines
accept."""
INNER = 0.1
"""Classifiers are sampled over the middle tenth of their box, where searches start; regressions over the
whole box."""


@dataclass(frozen=True, eq=False)
class TypicalRanges:
    """Finite limits per column, and (64, d) sample points per block."""

    lower: FloatArray
    upper: FloatArray
    play: FloatArray
    """The typical variation of each column: its width; for an output its standard deviation."""
    points: dict[str, FloatArray]

    @property
    def width(self) -> FloatArray:
        """Width of each column's range; 1 for a fixed column."""
        width = self.upper - self.lower
        return np.where(width > 0, width, 1.0)

    @property
    def middle(self) -> FloatArray:
        """Centre of each column's range."""
        return 0.5 * (self.lower + self.upper)


def typical_ranges(problem: Problem, box: Box, seed: int = 0) -> TypicalRanges:
    """Sample every block over its box, in topological order."""
    rng = np.random.default_rng(seed)
    lower, upper = box.lower.copy(), box.upper.copy()
    deviation = np.full(problem.mip.n_columns, np.nan)
    points: dict[str, list[FloatArray]] = {block.name: [] for block in problem.blocks}
    for stage in problem.stages:
        for block, samples in stage:
            rows = block.inputs[rng.choice(samples, POINTS)]
            low, high = within_reach(lower[rows], upper[rows])
            part = INNER if block.classifies else 1.0
            X = 0.5 * (low + high) + part * (high - low) * rng.uniform(-0.5, 0.5, rows.shape)
            Y = block.decode(block.predictor.predict(X))
            points[block.name].append(X)
            slack = np.maximum(Y.std(axis=0), 1e-3 * np.abs(Y).max(axis=0))
            deviation[block.outputs[samples]] = 1.0 if block.classifies else slack
            for o, column in enumerate(block.outputs[samples].T):
                least, most = Y[:, o].min() - slack[o], Y[:, o].max() + slack[o]
                lower[column] = np.where(np.isfinite(lower[column]), lower[column], least)
                upper[column] = np.where(np.isfinite(upper[column]), upper[column], most)
                # a bound on one side only, beyond the whole range of the network
                lower[column] = np.minimum(lower[column], upper[column])
    low, high = within_reach(lower, upper)
    play = np.where(np.isnan(deviation), high - low, deviation)
    sampled = {name: np.concatenate(parts)[:POINTS] for name, parts in points.items()}
    return TypicalRanges(low, high, play, sampled)


def require_finite_inputs(problem: Problem, box: Box) -> None:
    """Refuse inputs with an infinite or useless box, unless another network writes them."""
    written = np.isin(problem.inputs, problem.outputs)
    usable = box.upper - box.lower <= WIDEST
    open_ends = problem.inputs[~usable[problem.inputs] & ~written]
    if open_ends.size:
        j = int(open_ends[0])
        asked = "even over the LP without predictors" if box.complete else "as far as the time allowed"
        raise ModelError(
            f"{problem.mip.column_name(j)} is the input of a network and has no useful box "
            f"([{box.lower[j]:g}, {box.upper[j]:g}], {asked}), so there is no length to scale it by. "
            'Give it bounds, or use scaling="none".'
        )
