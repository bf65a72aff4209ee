"""One component of a problem as a problem of its own, written out as a MIP: what does it cost at prices?

Rows and columns are as far out as the check accepts, and networks off by what their arithmetic may be off: no
point that passes the check has a component outside. The ranges of neurons are tightened by LPs over the
component's rows once, and again, at given prices, for points no dearer than the best one known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dovetail.bounds.box import Box
from dovetail.bounds.safe_lp import SafeLp
from dovetail.branching.confirmed import hidden
from dovetail.branching.root import NothingLeft
from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.problem import Problem
from dovetail.methods.branching_model import tightened
from dovetail.mip.turns import answer_of
from dovetail.reformulations.reformulated import Reformulated
from dovetail.reformulations.relu_big_m import written_out
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.run.engine import MipStatus
from dovetail.structure.boxes import tightened_box
from dovetail.structure.components import component_problem
from dovetail.structure.relu_layers import ReluLayers, relu_layers

BOX_SECONDS, TIGHTEN_SHARE = 2.0, 0.1
"""For the box of a component's inputs; and of the time that one question has, for LPs under its cutoff."""
GAP = 1e-3
"""Of the engine: what is left of a proof's gap comes from prices that are not quite right, and is larger."""
CUTOFF_ROOM = 1e-6
"""Relative to 1 + the cost: the best point known is not cut off."""


@dataclass(frozen=True, eq=False)
class BlockAnswer:
    """What a component costs at some prices."""

    bound: float
    """It costs no less."""
    x: FloatArray | None
    """The cheapest point met, over the component's columns."""
    closed: bool
    """The engine came to its end."""
    by_engine: bool = False
    """The bound is the engine's word."""


@dataclass(frozen=True, eq=False)
class BlockProgram:
    """One component, or several that are alike."""

    problem: Problem
    columns: IntArray
    """(members, columns) of the whole problem, in the order that they have here."""
    layers: ReluLayers
    box: Box

    @property
    def members(self) -> int:
        """How many components are like this."""
        return len(self.columns)

    @classmethod
    def of(
        cls, problem: Problem, columns: IntArray, rows: IntArray, context: SolveContext
    ) -> BlockProgram | None:
        """The component that the first row of `columns` holds; None where it cannot be written out."""
        cut_out = component_problem(problem, columns[0], rows)
        own = cut_out.derived(cut_out.mip.loosened(), cut_out.blocks)
        box = tightened_box(own, context.budget.part(BOX_SECONDS), seed=context.seed, threads=context.threads)
        layers = relu_layers(own, box)
        return None if layers is None or not layers.proves else cls(own, columns, layers, box)

    def tightened(self, context: SolveContext, budget: Budget) -> BlockProgram:
        """The same with ranges that hold for all of its points."""
        try:
            layers = tightened(self.problem, self.layers, self.box, np.inf, context, budget)
        except NothingLeft:  # an empty component: the engine may say so
            return self
        return replace(self, layers=layers, box=layers.box or self.box)

    def least(
        self, cost: FloatArray, known: FloatArray, engine: str, context: SolveContext, budget: Budget
    ) -> BlockAnswer:
        """What it costs at least, where `known`, one of its points, costs `cost @ known`."""
        problem = self.problem.derived(replace(self.problem.mip, cost=cost), self.problem.blocks)
        given = Reformulated.start(problem, self.box)
        value = float(cost @ known)
        cutoff = value + CUTOFF_ROOM * (1.0 + abs(value))
        part = budget.part(TIGHTEN_SHARE * budget.left)
        try:
            layers = tightened(problem, self.layers, self.box, cutoff, context, part)
        except NothingLeft:
            return BlockAnswer(cutoff, known, True)
        written = written_out(layers, given)
        mip = written.problem.mip
        bound = (
            SafeLp(mip, seed=context.seed, threads=context.threads)
            .minimise(mip.cost, mip.offset, budget)
            .bound
        )
        bound = min(bound, cutoff)
        said = answer_of(
            "MIP of a block", mip, budget, seed=context.seed, threads=context.threads, engine=engine,
            start=written.lift(known), gap=GAP, cutoff=cutoff,
        )  # fmt: skip
        if said is None or said.x is None:  # the word of an engine that lost its start counts for nothing
            return BlockAnswer(bound, None, False)
        word = min(said.bound - hidden(mip, said.x), cutoff)
        done = said.status is MipStatus.OPTIMAL
        return BlockAnswer(max(bound, word), written.restrict(said.x), done, by_engine=word > bound)
