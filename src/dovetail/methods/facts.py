"""What the default method may use, and what it sees of a problem before it chooses its phases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

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
from dovetail.methods.quadratic_mip import QuadraticPlan, count_curves, quadratic_plan
from dovetail.methods.relu_branching import method as relu_branching
from dovetail.methods.template_pricing.plan import template_plan
from dovetail.run.context import SolveContext
from dovetail.run.failures import expendable

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
    """What the choice of phases rests on; the defaults say that nothing is known, and hold where a fact
    cannot be found out."""

    blocks: int = 0
    """That are the same up to their data and share rows; 0 where they are not."""
    integers: int = 0
    """Integer columns that can move, classes among them."""
    choices: int = 0
    """Those beside classes."""
    components: int = 1
    priced: bool = False
    """Class outputs in several components that share rows."""
    joint_inputs: int = 0
    """Free inputs that all networks read together, where there are few enough to branch over, or nothing else
    proves a bound; else 0."""
    one_network: bool = False
    """A single ReLU network over a set that has a closed form: a box, a simplex, a ball."""
    certified: bool = False
    """Components that share rows, each a ReLU network over such a set."""
    small_networks: int = 0
    """Samples, where each reads few inputs and is known operation by operation; else 0."""
    exact_blocks: int = 0
    """Components that share rows, where each of them alone is small enough for an exact MIP; else 0."""
    unstable: int = MOST_NEURONS + 1
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
    branched: bool = False
    """Networks beside no more than a few integers, where anything is to be proved."""
    on_gpu: bool = False
    """Whether proofs of many components run on a GPU."""

    @classmethod
    def of(cls, context: SolveContext, options: AutoOptions) -> Facts:
        """Found out once, before the first phase, each by its entry in `LOOKUPS`; where blocks are many,
        nothing else is. A fact whose look-up fails keeps its default, which costs the phases that need it."""
        facts = cls()
        for name, lookup in LOOKUPS.items():
            if facts.many_blocks:
                break
            with expendable(f"fact: {name.replace('_', ' ')}"):
                found: dict[str, Any] = {name: lookup(Case(context, options, facts))}
                facts = replace(facts, **found)
        return facts

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


class Case(NamedTuple):
    """What a fact is found out of."""

    context: SolveContext
    options: AutoOptions
    known: Facts
    """The facts before it."""


def _blocks(case: Case) -> int:
    plan = case.context.once(template_plan) if case.options.template_pricing else None
    return 0 if plan is None else plan.count


def _integers(case: Case) -> int:
    return int(np.count_nonzero(case.context.once(scaled_problem).free_integers))


def _choices(case: Case) -> int:
    classes = int(case.context.once(scaled_problem).networks.classes.sum())
    return case.known.integers - classes if case.options.integer_search else 0


def _components(case: Case) -> int:
    return case.context.once(scaled_problem).parts.count


def _coupled(case: Case) -> bool:
    """Whether components share rows."""
    parts = case.context.once(scaled_problem).parts
    return parts.count > 1 and not np.all(parts.private_rows)


def _priced(case: Case) -> bool:
    classes = case.context.once(scaled_problem).networks.classes
    return case.options.column_generation and bool(classes.any()) and _coupled(case)


def _joint_inputs(case: Case) -> int:
    plan = case.context.once(input_plan) if case.options.exact else None
    free = plan.free if isinstance(plan, InputPlan) else 0
    return free if free <= MOST_INPUTS or not case.known.has_proof else 0


def _one_network(case: Case) -> bool:
    return case.options.exact and relu_branching.applies(case.context)


def _certified(case: Case) -> bool:
    return case.options.exact and _coupled(case) and certified_prices.applies(case.context)


def _small_networks(case: Case) -> int:
    plan = case.context.once(planes_plan) if case.options.exact else None
    return 0 if plan is None else len(plan.samples)


def _exact_blocks(case: Case) -> int:
    exact = case.options.exact and _coupled(case) and case.context.once(priced_blocks) is not None
    return case.known.components if exact else 0


def _written_out(case: Case) -> bool:
    """Whether a MIP of the whole problem may be looked at."""
    return case.options.exact and case.known.integers <= MANY_INTEGERS


def _unstable(case: Case) -> int:
    plan = case.context.once(writing_plan) if _written_out(case) else None
    return MOST_NEURONS + 1 if plan is None else plan.unstable


def _tree_samples(case: Case) -> int:
    trees = case.context.once(tree_problem)
    return 0 if trees is None else len(trees.samples)


def _cuts(case: Case) -> int:
    trees = case.context.once(tree_problem)
    return 0 if trees is None or not case.options.exact else trees.cells.cuts


def _tree_components(case: Case) -> int:
    parts = case.context.once(tree_parts) if case.options.column_generation else None
    return 0 if parts is None or case.context.once(tree_problem) is None else parts.count


def _quadratic(case: Case) -> QuadraticPlan | None:
    """The plan of the quadratic functions, where there are few enough."""
    if not _written_out(case) or count_curves(case.context.problem) > MOST_CURVES:
        return None
    plan = case.context.once(quadratic_plan)
    return None if plan is None or plan.unstable > MOST_NEURONS else plan


def _curves(case: Case) -> int:
    plan = _quadratic(case)
    return 0 if plan is None else len(plan.curves)


def _only_curves(case: Case) -> bool:
    plan = _quadratic(case)
    return plan is not None and plan.written.previous is None


def _branched(case: Case) -> bool:
    return _written_out(case) and case.known.slopes


def _on_gpu(case: Case) -> bool:
    return (case.context.device or "cpu") != "cpu"


LOOKUPS: dict[str, Callable[[Case], int | bool]] = {
    "blocks": _blocks,
    "integers": _integers,
    "choices": _choices,
    "components": _components,
    "priced": _priced,
    "unstable": _unstable,
    "one_network": _one_network,
    "certified": _certified,
    "small_networks": _small_networks,
    "exact_blocks": _exact_blocks,
    "tree_samples": _tree_samples,
    "cuts": _cuts,
    "tree_components": _tree_components,
    "curves": _curves,
    "only_curves": _only_curves,
    "joint_inputs": _joint_inputs,
    "branched": _branched,
    "on_gpu": _on_gpu,
}
"""How each fact is found out, in this order."""
