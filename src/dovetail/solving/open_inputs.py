"""Inputs of networks that nothing limits: there the network's own extrapolation decides.

Rows and bounds may leave an input without a limit on one side. A network says something of every value,
however far from all that it was trained on, and a search goes wherever that looks best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.bounds.box import propagate
from dovetail.core.arrays import IntArray
from dovetail.core.problem import Problem
from dovetail.run.budget import Budget
from dovetail.structure.boxes import input_box

SHARE, SECONDS = 0.02, 1.0
"""Of the time left, and at the most: LPs for the inputs that single rows leave open."""
MOST_ENTRIES = 2_000_000
"""Of the matrix: passing its rows on takes longer than anybody wants to wait for a warning."""


@dataclass(frozen=True)
class OpenInput:
    """A column, and the sides on which it has no limit."""

    column: int
    name: str
    below: bool
    above: bool

    def __str__(self) -> str:
        sides = ["below"] * self.below + ["above"] * self.above
        return f"{self.name} ({' and '.join(sides)})"


def open_inputs(
    problem: Problem, budget: Budget, *, seed: int = 0, threads: int = 1
) -> tuple[OpenInput, ...]:
    """Those inputs; none where there was no time to be sure."""
    if problem.stated.nonzeros > MOST_ENTRIES:
        return ()
    inputs, open_columns = _read_by_networks(problem), np.zeros(problem.stated.n_columns, dtype=bool)
    for part in problem.stated.columns:
        part.of(open_columns)[:] = ~(np.isfinite(part.lower) & np.isfinite(part.upper))
    if not np.any(open_columns[inputs]):
        return ()
    mip = problem.mip
    if np.all(propagate(mip.minimised()).finite[inputs]):
        return ()
    box = input_box(problem, budget.part(min(SHARE * budget.left, SECONDS)), seed=seed, threads=threads)
    if not box.complete:
        return ()
    below, above = np.isneginf(box.lower), np.isposinf(box.upper)
    made = np.zeros(mip.n_columns, dtype=bool)
    made[problem.outputs] = True  # what one network gives and another reads is limited by the first
    which = inputs[(below | above)[inputs] & ~made[inputs]]
    return tuple(OpenInput(int(j), mip.column_name(int(j)), bool(below[j]), bool(above[j])) for j in which)


def _read_by_networks(problem: Problem) -> IntArray:
    """What predictors read that were trained on something: a quadratic term holds everywhere."""
    trained = [block for block in problem.blocks if block.description.quadratic is None]
    if len(trained) == len(problem.blocks):
        return problem.inputs
    none = np.empty(0, dtype=np.int64)
    return np.unique(np.concatenate([none, *(block.inputs.ravel() for block in trained)]))
