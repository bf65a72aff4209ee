"""The range each column is expected to move in, and sample points of every block's inputs.

A box may be infinite; a typical range never is. It is a guide for lengths and starting points and
never limits anything. An output without bounds gets its range from what its network says
over sample points of its inputs, so that networks fed by other networks have one too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.bounds.box import Box
from dovetail.core.arrays import FloatArray
from dovetail.core.errors import ModelError
from dovetail.core.probe import within_reach
from dovetail.core.problem import Problem

POINTS = 64
"""Samples of a block's inputs: enough for a spread within a tenth or so, and still one cheap batch."""
WIDEST = 1e10
"""A wider box says nothing about how far its column moves, and its squares are beyond what engines take."""
INNER = 0.1
"""A classifier is sampled over the middle tenth of its box: what matters is how far from the threshold
searches start, and they start at the middle. A regression is sampled over the whole box."""


@dataclass(frozen=True, eq=False)
class TypicalRanges:
    """Finite limits per column, and (64, d) points per block."""

    lower: FloatArray
    upper: FloatArray
    play: FloatArray
    """How much each column typically varies: its width; for a network's output its standard deviation."""
    points: dict[str, FloatArray]

    @property
    def width(self) -> FloatArray:
        """Length of each column's range; 1 for a column that cannot move."""
        width = self.upper - self.lower
        return np.where(width > 0, width, 1.0)

    @property
    def middle(self) -> FloatArray:
        """The centre of each column's range."""
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
                # a bound on one side only, beyond everything the network says
                lower[column] = np.minimum(lower[column], upper[column])
    low, high = within_reach(lower, upper)
    play = np.where(np.isnan(deviation), high - low, deviation)
    sampled = {name: np.concatenate(parts)[:POINTS] for name, parts in points.items()}
    return TypicalRanges(low, high, play, sampled)


def require_finite_inputs(problem: Problem, box: Box) -> None:
    """Refuse inputs whose box stays infinite or is as good as that, unless another network writes them."""
    written = np.isin(problem.inputs, problem.outputs)
    usable = box.upper - box.lower <= WIDEST
    open_ends = problem.inputs[~usable[problem.inputs] & ~written]
    if open_ends.size:
        j = int(open_ends[0])
        asked = "even over the host's LP relaxation" if box.complete else "as far as there was time to look"
        raise ModelError(
            f"{problem.mip.column_name(j)} is the input of a network and has no useful box "
            f"([{box.lower[j]:g}, {box.upper[j]:g}], {asked}), so there is no length to scale it by. "
            'Give it bounds, or use scaling="none".'
        )
