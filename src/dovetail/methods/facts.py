"""What the default method may use, and what it sees of a problem before it chooses its phases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dovetail.analysis.tree_problem import tree_problem
from dovetail.core.options import require_choice, require_count, require_flags
from dovetail.linearised.scaled_problem import scaled_problem
from dovetail.methods.block_prices.method import priced_blocks
from dovetail.methods.cell_columns.method import tree_parts
from dovetail.methods.certified_prices import method as certified_prices
from dovetail.methods.exact_mip import writing_plan
from dovetail.methods.input_branching.plan import MOST_INPUTS, input_plan
from dovetail.methods.input_branching.plan import Plan as InputPlan
from dovetail.methods.planes_lp import planes_plan
from dovetail.methods.quadratic_mip import count_curves, quadratic_plan
from dovetail.methods.relu_branching import method as relu_branching
from dovetail.methods.template_pricing.plan import template_plan
from dovetail.run.context import SolveContext

MANY_INTEGERS = 2000
"""A MILP step over more of them finds nothing in its two seconds; dispatch of 10,000 binaries showed it."""
MANY_BLOCKS = 2000
"""With more blocks that are the same up to their data, nothing that takes them one by one is tried: an LP
over all of them takes minutes from 10,000 on (water)."""
EASY_NEURONS, MOST_NEURONS = 64, 400
"""Neurons that may change sign. Up to the first HiGHS mostly closes the MIP in seconds, so that it comes
early; far beyond the second SCIP finds no point in two minutes (docs/results.md, E1)."""
MOST_CURVES = 5_000
"""Quadratic functions. Their planes are made one by one: half a millisecond to one each, before the first LP
and again in each round."""
FEW_TREE_SAMPLES = 4
"""Samples of tree ensembles: boxes over the inputs of more of them are too many to be closed."""


@dataclass(frozen=True)
class AutoOptions:
    """Options of the default method: what may be used, and how much of it."""

    effort: int | None = None
    """Starts, rounds and neighbourhoods of each method; None: as many as the time allows."""
    patience: int = 20
    """Starts in a row that may end in a local optimum known before; then the search ends early."""
    tables: bool = True
    exact: bool = True
    template_pricing: bool = True
    column_generation: bool = True
    integer_search: bool = True
    enumeration: bool = True
    """Whether integer inputs with few combinations get a binary for each, in descents."""
    bundle: int = 8
    """Linearisations that descents keep as cuts (see `SequentialLinear`)."""
    scaling: Literal["box", "none"] = "box"
    """Trust regions in units of each input's own box, or of one width for all."""

    def __post_init__(self) -> None:
        if self.effort is not None:
            require_count("Auto: effort", self.effort, at_least=1)
        require_count("Auto: patience", self.patience, at_least=1)
        require_count("Auto: bundle", self.bundle, at_least=0)
        require_choice("Auto: scaling", self.scaling, ("box", "none"))
        require_flags(
            "Auto",
            self,
            "tables",
            "exact",
            "template_pricing",
            "column_generation",
            "integer_search",
            "enumeration",
        )


@dataclass(frozen=True)
class Facts:
    """What the choice of phases rests on."""

    blocks: int
    """That are the same up to their data and share rows; 0 where they are not."""
    integers: int
    """Integer columns that can move, classes among them."""
    choices: int
    """Those beside classes."""
    components: int
    priced: bool
    """Class outputs in several components that share rows."""
    joint_inputs: int
    """Free inputs that all networks read together, where there are few enough to branch over, or nothing else
    proves a bound; else 0."""
    one_network: bool
    """A single ReLU network over a set that has a closed form: a box, a simplex, a ball."""
    certified: bool
    """Components that share rows, each a ReLU network over such a set."""
    small_networks: int
    """Samples, where each reads few inputs and is known operation by operation; else 0."""
    exact_blocks: int
    """Components that share rows, where each of them alone is small enough for an exact MIP; else 0."""
    unstable: int
    """Neurons that may change sign if all networks are written out; too many where they cannot be."""
    tree_samples: int = 0
    """Samples, where all predictors are tree ensembles; else 0."""
    cuts: int = 0
    """Of the inputs of these, within their box, where anything is to be proved; else 0."""
    tree_components: int = 0
    """Components of these that share rows; else 0."""
    curves: int = 0
    """Quadratic functions, where all else is rows, or predictors that can be written as rows; else 0."""
    only_curves: bool = False
    """Whether there are no other predictors."""
    on_gpu: bool = False
    """Whether proofs of many components run on a GPU."""

    @classmethod
    def of(cls, context: SolveContext, options: AutoOptions) -> Facts:
        """Measured once, before the first phase; where blocks are many, nothing else is."""
        templates = context.once(template_plan) if options.template_pricing else None
        blocks = 0 if templates is None else templates.count
        if blocks > MANY_BLOCKS:
            return cls(blocks, 0, 0, 0, False, 0, False, False, 0, 0, MOST_NEURONS + 1)
        scaled = context.once(scaled_problem)
        integers = int(np.count_nonzero(scaled.free_integers))
        parts, classes = scaled.parts, scaled.networks.classes
        coupled = parts.count > 1 and not np.all(parts.private_rows)
        plan = context.once(writing_plan) if options.exact and integers <= MANY_INTEGERS else None
        inputs = context.once(input_plan) if options.exact else None
        free = inputs.free if isinstance(inputs, InputPlan) else 0
        found = cls(
            blocks,
            integers,
            integers - int(classes.sum()) if options.integer_search else 0,
            parts.count,
            bool(classes.any()) and coupled and options.column_generation,
            free if free <= MOST_INPUTS else 0,
            options.exact and relu_branching.applies(context),
            options.exact and coupled and certified_prices.applies(context),
            _small_networks(context) if options.exact else 0,
            parts.count if coupled and options.exact and context.once(priced_blocks) is not None else 0,
            MOST_NEURONS + 1 if plan is None else plan.unstable,
            *_trees(context, options),
            *(_curves(context) if options.exact and integers <= MANY_INTEGERS else (0, False)),
            on_gpu=(context.device or "cpu") != "cpu",
        )
        return found if found.has_proof else replace(found, joint_inputs=free)

    @property
    def has_proof(self) -> bool:
        """Whether some phase proves a bound of the networks."""
        counts = self.joint_inputs + self.small_networks + self.exact_blocks + self.cuts + self.curves
        return counts > 0 or self.easy or self.hard or self.one_network or (self.priced and self.certified)

    @property
    def slopes(self) -> bool:
        """Whether anything has a slope: trees are steps."""
        return self.tree_samples == 0

    @property
    def few_tree_samples(self) -> bool:
        """Whether boxes over the inputs of all trees may be closed."""
        return self.cuts > 0 and self.tree_samples <= FEW_TREE_SAMPLES

    @property
    def many_blocks(self) -> bool:
        """Too many for all that takes them one by one."""
        return self.blocks > MANY_BLOCKS

    @property
    def many(self) -> bool:
        """Too many integers for a MILP over all of them."""
        return self.integers > MANY_INTEGERS

    @property
    def easy(self) -> bool:
        """Few enough neurons for an early proof."""
        return self.unstable <= EASY_NEURONS

    @property
    def hard(self) -> bool:
        """Few enough neurons for a late proof, where no prices tell their blocks apart."""
        return EASY_NEURONS < self.unstable <= MOST_NEURONS and not self.exact_blocks


def _trees(context: SolveContext, options: AutoOptions) -> tuple[int, int, int]:
    trees, parts = context.once(tree_problem), context.once(tree_parts)
    if trees is None:
        return 0, 0, 0
    coupled = 0 if parts is None or not options.column_generation else parts.count
    return len(trees.samples), trees.cells.cuts if options.exact else 0, coupled


def _curves(context: SolveContext) -> tuple[int, bool]:
    if count_curves(context.problem) > MOST_CURVES:
        return 0, False
    plan = context.once(quadratic_plan)
    if plan is None or plan.unstable > MOST_NEURONS:
        return 0, False
    return len(plan.curves), plan.written.previous is None


def _small_networks(context: SolveContext) -> int:
    plan = context.once(planes_plan)
    return 0 if plan is None else len(plan.samples)
