"""The one description of a problem; each property is computed on first access and then kept.

A solve has a single structure (`context.once(structure_of)`). Methods, plans and the facts of `auto` read
their properties from it, so that nothing is computed twice. It describes two problems over the same columns:
the one that points are checked against, and the one that bounds are proved for, if a reformulation made them
different.

    forms       proved, loose, loose_rows
    boxes       tight_box, loose_box, loose_rows_box, reached
    components  parts, proved_parts, same_rows, one_sample_each, kinds
    templates   components that are the same up to their data
    predictors  samples, classes, planes, relu_layers, curves, quadratic, tree_blocks,
                ensembles, trees, loose_trees
    integers    free_integers
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dovetail.bounds.box import Box, propagate
from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.core.arrays import BoolArray, IntArray
from dovetail.core.block import Block
from dovetail.core.class_rounding import block_steps
from dovetail.core.errors import UnsupportedError
from dovetail.core.problem import Problem
from dovetail.core.quadratic import QuadraticFunction
from dovetail.core.tree_ensemble import TreeEnsemble
from dovetail.run.budget import Budget
from dovetail.run.context import SolveContext
from dovetail.run.work import Stopwatch
from dovetail.structure.boxes import (
    MOST_CELLS,
    Reached,
    input_box,
    limits_within,
    reached_box,
    tightened_box,
)
from dovetail.structure.components import Components, SampleComponent, alike, components
from dovetail.structure.networks import required_graph
from dovetail.structure.relu_layers import ReluLayers, relu_layers
from dovetail.structure.templates import Templates, found_templates, stated_templates
from dovetail.structure.trees import TreeProblem, ensembles_of, in_cells


@dataclass(frozen=True, eq=False)
class Structure:
    """See above. Made from a problem alone, or with the data of a solve: time, seed and threads for LPs."""

    problem: Problem
    """The problem in which solutions are searched."""
    relaxed: Problem | None = None
    """The problem for which bounds are proved, if it differs."""
    budget: Budget = field(default_factory=Budget)
    seed: int = 0
    threads: int = 1
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    known_box: Box | None = None
    """The tight box, if it is known."""

    @property
    def proved(self) -> Problem:
        """The problem for which bounds are proved."""
        return self.relaxed or self.problem

    @cached_property
    def loose(self) -> Problem:
        """That problem in minimisation form, relaxed by the tolerances of the check: it contains every point
        that passes."""
        return self.proved.derived(self.proved.mip.minimised().loosened(), self.proved.blocks)

    @cached_property
    def loose_rows(self) -> Problem:
        """The same problem, but with the exact bounds of columns that no predictor writes: points are clipped
        to these."""
        mip = self.proved.mip.minimised().loosened(self.proved.outputs)
        return self.proved.derived(mip, self.proved.blocks)

    @cached_property
    def tight_box(self) -> Box:
        """The box of the problem, with inputs limited by LPs as long as this is efficient."""
        if self.known_box is not None:
            return self.known_box
        with self.stopwatch.measure("engine"):
            return tightened_box(self.problem, self.budget, seed=self.seed, threads=self.threads)

    @cached_property
    def loose_box(self) -> Box:
        """The box of `loose`, by its rows alone."""
        return propagate(self.loose.mip)

    @cached_property
    def loose_rows_box(self) -> Box:
        """The box of `loose_rows`, finite on inputs wherever the MIP without predictors makes it so."""
        return input_box(self.loose_rows, self.budget, seed=self.seed, threads=self.threads)

    @cached_property
    def reached(self) -> Reached | None:
        """The box of the values that predictors can give; None if the problem is too large for this."""
        if self.proved.mip.n_rows * self.proved.mip.n_columns > MOST_CELLS:
            return None
        box = input_box(self.loose, self.budget, seed=self.seed, threads=self.threads)
        return Reached(self.loose, reached_box(self.loose, box, self.tree_blocks or {}))

    @cached_property
    def parts(self) -> Components:
        """The components of the problem."""
        return components(self.problem)

    @cached_property
    def proved_parts(self) -> Components:
        """The components of the problem for which bounds are proved."""
        return self.parts if self.relaxed is None else components(self.relaxed)

    @cached_property
    def same_rows(self) -> bool:
        """Whether row i is the same in both problems, but for its sides."""
        mine, proved = self.problem.mip.A, self.proved.mip.A
        return mine is proved or (mine.shape == proved.shape and (mine != proved).nnz == 0)

    @cached_property
    def one_sample_each(self) -> list[SampleComponent] | None:
        """Its components, if each has exactly one sample; otherwise None."""
        return self.proved_parts.of_one_sample(self.proved)

    def kinds(self, most: int) -> list[tuple[IntArray, IntArray]] | None:
        """Its components grouped by kind, equal in all but their place (see `alike`); None: over `most`
        kinds, or the rows of the two problems differ."""
        return alike(self.proved, self.parts, most) if self.same_rows else None

    @cached_property
    def templates(self) -> Templates | None:
        """Components that are equal up to their data, as stated or as found; None if a column outside the
        components can move."""
        stated = stated_templates(self.problem)
        return stated if stated is not None else found_templates(self.problem, self.parts)

    @cached_property
    def samples(self) -> int:
        """The number of samples of all blocks."""
        return sum(block.samples for block in self.problem.blocks)

    @cached_property
    def classes(self) -> int:
        """Outputs that are classes."""
        return sum(block.outputs.size for block in self.problem.blocks if block.classifies)

    @cached_property
    def free_integers(self) -> BoolArray:
        """(columns,) integers that can take more than one value; class outputs among them."""
        lower, upper, integer = limits_within(self.problem, self.tight_box.lower, self.tight_box.upper)
        return np.asarray(integer & (upper - lower > 0.5))

    def planes(self, block: Block, device: str = "cpu", *, deployed: bool = False) -> NetworkPlanes | None:
        """Planes of a block's network, or with `deployed` of its deployed arithmetic; None if the network is
        not known operation by operation, or an operation has no planes."""
        key = block.name, device, deployed
        if key not in self._planes:
            try:
                graph = required_graph(self.proved, block)
                steps = block_steps(block, graph) if deployed else None
                self._planes[key] = NetworkPlanes(graph, device, steps)
            except UnsupportedError:
                self._planes[key] = None
        return self._planes[key]

    @cached_property
    def _planes(self) -> dict[tuple[str, str, bool], NetworkPlanes | None]:
        return {}

    @cached_property
    def relu_layers(self) -> ReluLayers | None:
        """All networks as layers of ReLUs, over the tight box; None if a predictor is not such a network."""
        return relu_layers(self.problem, self.tight_box)

    @property
    def curves(self) -> int:
        """Outputs of blocks that declare themselves quadratic, before any of them is evaluated."""
        return sum(
            block.outputs.size for block in self.problem.blocks if block.description.quadratic is not None
        )

    @cached_property
    def quadratic(self) -> dict[str, tuple[QuadraticFunction, ...]]:
        """The functions of each block, by its name, whose outputs are all quadratic in its inputs; blocks
        with a sample that reads a column twice are excluded."""
        return {
            block.name: describe(block.inputs.shape[1])
            for block in self.problem.blocks
            if (describe := block.description.quadratic) is not None
            and not block.classifies
            and not any(len(np.unique(sample)) < sample.size for sample in block.inputs)
        }

    @cached_property
    def tree_blocks(self) -> dict[str, TreeEnsemble] | None:
        """The ensembles of blocks that are trees, by their names, whatever the other blocks are; None if
        there are none, if they are too many, or if one cannot be read."""
        return ensembles_of(self.problem)

    @cached_property
    def ensembles(self) -> dict[str, TreeEnsemble] | None:
        """The ensemble of each block, by its name, if all blocks are trees, few enough, and none reads the
        output of another."""
        problem, trees = self.problem, [block.description.trees for block in self.problem.blocks]
        if None in trees or np.intersect1d(problem.inputs, problem.outputs).size:
            return None
        return self.tree_blocks

    @cached_property
    def trees(self) -> TreeProblem | None:
        """The problem in cells; None if a predictor is not a tree ensemble, or an input has no bound."""
        return self._in_cells(self.problem, self.tight_box) if self.ensembles is not None else None

    @cached_property
    def loose_trees(self) -> TreeProblem | None:
        """The problem in cells for bounds: its rows are relaxed by the tolerances of the check."""
        return self._in_cells(self.loose_rows, self.loose_rows_box) if self.ensembles is not None else None

    def _in_cells(self, problem: Problem, box: Box) -> TreeProblem | None:
        assert self.ensembles is not None
        return in_cells(problem, self.ensembles, box) if np.all(box.finite[problem.inputs]) else None


def structure_of(context: SolveContext) -> Structure:
    """The structure of a solve's problem; computed once (see `SolveContext.once`)."""
    given = context.problem, context.relaxed, context.budget, context.seed, context.threads, context.stopwatch
    return Structure(*given)
