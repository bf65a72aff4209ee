"""The plan of the default method as a table: which method, when it applies, with how much of the time left.

Phases run in the order of `PHASES`; each gets its share of the time that is left when its turn comes. The
log's section lines and the table in docs/auto.md are made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dovetail.core.options import require_choice, require_count, require_flags
from dovetail.linearised.scaled_problem import scaled_problem
from dovetail.methods.block_prices.method import BlockPrices, priced_blocks
from dovetail.methods.certified_prices import method as certified_prices
from dovetail.methods.certified_prices.method import CertifiedPrices
from dovetail.methods.column_generation import ColumnGeneration
from dovetail.methods.exact_mip import ExactMip, writing_plan
from dovetail.methods.input_branching.method import InputBranching
from dovetail.methods.input_branching.plan import Plan as InputPlan
from dovetail.methods.input_branching.plan import input_plan
from dovetail.methods.integer_search import IntegerLocalSearch
from dovetail.methods.neighbourhood import Neighbourhood
from dovetail.methods.planes_lp import PlanesLp, planes_plan
from dovetail.methods.relu_branching import method as relu_branching
from dovetail.methods.relu_branching.method import ReluBranching
from dovetail.methods.sequential_linear import SequentialLinear
from dovetail.methods.template_pricing import TemplatePricing
from dovetail.methods.template_pricing.method import template_prices
from dovetail.methods.template_pricing.plan import template_plan
from dovetail.reformulations.enumerated_inputs import EnumeratedInputs
from dovetail.reformulations.reformulated import Reformulation
from dovetail.run.context import Method, SolveContext

MANY_INTEGERS = 2000
"""A MILP step over more of them finds nothing in its two seconds; dispatch of 10,000 binaries showed it."""
MANY_COMPONENTS = 200
"""With more of them columns come first: a MILP step over all their classes takes longer than ten pricings
(water, n = 400)."""
MANY_BLOCKS = 2000
"""With more blocks that are the same up to their data, nothing that takes them one by one is tried: an LP
over all of them takes minutes from 10,000 on (water)."""
MOST_CERTIFIED = 20_000
"""With more of them the sets that they move in are not written down before a minute is over."""
TEMPLATES_SHARE = 0.25
"""Of the time left, with fewer of them: its columns are where column generation begins."""
EASY_NEURONS, MOST_NEURONS = 64, 400
"""Neurons that may change sign. Up to the first HiGHS mostly closes the MIP in seconds, so that it comes
early; far beyond the second SCIP finds no point in two minutes (docs/results.md, E1)."""
EARLY_SHARE, LATE_SHARE = 0.5, 0.3
"""Of the time left, for the exact MIP: half where a proof is likely, less where a search may bring more."""
BRANCHING_SHARE = 0.5
"""Of the time left: with five inputs a proof takes seconds, and the points it meets are a search as well."""
PLANES_SHARE = 0.5
"""Of the time left: its boxes shrink most in the first rounds (dispatch)."""
COLUMNS_SHARE = 0.75
"""Of the time left; what it leaves goes to a proof, and comes back where there is none. With 0.6 a search of
20 s ended one or two samples short (water)."""
PRICES_SHARE = 0.9
"""Of the time left: columns have had most of it, and descents find little after them."""
BLOCKS_SHARE = 0.9
"""Of the time left: descents have had their part, and find little more (wine)."""
BLOCK_SECONDS = 20.0
"""A wine's network takes five to thirty; with less, descents have more use for the time."""
FIRST_STARTS, FIRST_SHARE = 3, 0.15
"""First points soon: three starts are the user's own, the cheapest and the quietest point."""
MIDDLE_SHARE, LAST_INTEGERS_SHARE = 0.15, 0.5
"""What comes after may bring as much; a proof, more."""


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
    """Free inputs that all networks read together, where there are few enough to branch over; else 0."""
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
        return cls(
            blocks,
            integers,
            integers - int(classes.sum()) if options.integer_search else 0,
            parts.count,
            bool(classes.any()) and coupled and options.column_generation,
            inputs.free if isinstance(inputs, InputPlan) else 0,
            options.exact and relu_branching.applies(context),
            options.exact and coupled and certified_prices.applies(context),
            _small_networks(context) if options.exact else 0,
            parts.count if coupled and options.exact and context.once(priced_blocks) is not None else 0,
            MOST_NEURONS + 1 if plan is None else plan.unstable,
        )

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


def _small_networks(context: SolveContext) -> int:
    plan = context.once(planes_plan)
    return 0 if plan is None else len(plan.samples)


@dataclass(frozen=True)
class Phase:
    """One row of the plan."""

    name: str
    when: str
    """In words, as the documentation has it."""
    applies: Callable[[Facts], bool]
    share: float
    """Of the time left."""
    method: Callable[[AutoOptions], Method]
    why: str
    """The section line of the log, facts to be filled in."""
    rewritten: tuple[Reformulation, ...] = ()
    """What the problem is rewritten by for this phase, where it can be."""
    least_seconds: float = 0.0
    """With less than that it would come to nothing, and the others have more use for the time."""
    needs_points: bool = False
    """Whether it begins with the points that methods before it have been at."""
    of_blocks: bool = False
    """Whether it takes all blocks at once, so that it holds with many of them."""


def _descents(options: AutoOptions) -> SequentialLinear:
    return SequentialLinear(starts=options.effort, patience=options.patience, bundle=options.bundle)


def _first_descents(options: AutoOptions) -> SequentialLinear:
    starts = FIRST_STARTS if options.effort is None else min(FIRST_STARTS, options.effort)
    return replace(_descents(options), starts=starts)


def _integer_search(options: AutoOptions) -> Method:
    return IntegerLocalSearch(rounds=options.effort, patience=options.patience)


PHASES = (
    Phase(
        "many blocks",
        f"more than {MANY_BLOCKS:,} blocks, the same up to their data, that share rows; nothing else then",
        lambda facts: facts.many_blocks,
        1.0,
        lambda options: TemplatePricing(),
        "{blocks} blocks that are the same up to their data: all priced at once",
        of_blocks=True,
    ),
    Phase(
        "certified template prices",
        f"after it, up to {MOST_CERTIFIED:,} blocks",
        lambda facts: MANY_BLOCKS < facts.blocks <= MOST_CERTIFIED,
        1.0,
        lambda options: CertifiedPrices(source=lambda context: context.once(template_prices)),
        "each block's least cost at the prices, proved by branch and bound over signs",
        of_blocks=True,
    ),
    Phase(
        "template pricing",
        "50 such blocks or more",
        lambda facts: 0 < facts.blocks <= MANY_BLOCKS,
        TEMPLATES_SHARE,
        lambda options: TemplatePricing(),
        "{blocks} blocks that are the same up to their data: all priced at once",
    ),
    Phase(
        "relaxation",
        f"more than {MANY_INTEGERS:,} integers",
        lambda facts: facts.many,
        1.0,
        lambda options: Neighbourhood(rounds=1),
        "{integers} integers: relax, fix, large neighbourhoods",
    ),
    Phase(
        "first descents",
        f"otherwise, but not where columns come first: more than {MANY_COMPONENTS} components",
        lambda facts: not facts.many and (not facts.priced or facts.components <= MANY_COMPONENTS),
        FIRST_SHARE,
        _first_descents,
        "sequential linear steps from a few starts",
        (EnumeratedInputs(),),
    ),
    Phase(
        "input branching",
        "networks that read few inputs together (at most 12 free ones, and an LP per box that is small)",
        lambda facts: facts.joint_inputs > 0,
        BRANCHING_SHARE,
        lambda options: InputBranching(),
        "{joint_inputs} inputs are all that the networks read: branch and bound over them",
    ),
    Phase(
        "ReLU branching",
        "one ReLU network over a box, a simplex or a ball, more inputs than can be branched over",
        lambda facts: facts.one_network and not facts.joint_inputs,
        BRANCHING_SHARE,
        lambda options: ReluBranching(),
        "one network over a closed-form set: branch and bound over the signs of its neurons",
    ),
    Phase(
        "early exact MIP",
        f"at most {EASY_NEURONS} neurons can change sign",
        lambda facts: facts.easy,
        EARLY_SHARE,
        lambda options: ExactMip(),
        "{unstable} neurons may change sign: few enough to be written out, early",
    ),
    Phase(
        "first integer search",
        "integers beside classes",
        lambda facts: facts.choices > 0,
        FIRST_SHARE,
        _integer_search,
        "{choices} integers beside classes: local search over them by the networks themselves",
    ),
    Phase(
        "column generation",
        "class outputs in several components that share rows",
        lambda facts: facts.priced,
        COLUMNS_SHARE,
        lambda options: ColumnGeneration(rounds=options.effort),
        "class outputs, {components} components that share rows: columns and prices",
        needs_points=True,
    ),
    Phase(
        "certified prices",
        "such components, each a ReLU network over a box, a simplex or a ball",
        lambda facts: facts.priced and facts.certified,
        PRICES_SHARE,
        lambda options: CertifiedPrices(),
        "each component's least cost at the prices, proved by branch and bound over signs",
    ),
    Phase(
        "planes LP",
        "networks that read few inputs each (at most 4), but together more than can be branched over",
        lambda facts: facts.small_networks > 0 and not facts.joint_inputs,
        PLANES_SHARE,
        lambda options: PlanesLp(),
        "{small_networks} networks read few inputs each: planes over cells of these, in the host's LP",
    ),
    Phase(
        "middle descents",
        "a late exact MIP or block prices follow, and no columns came before",
        lambda facts: (facts.hard or facts.exact_blocks > 0) and not facts.priced,
        MIDDLE_SHARE,
        _descents,
        "more starts, before the proof",
        (EnumeratedInputs(),),
    ),
    Phase(
        "block prices",
        "components that share rows, of few kinds, each small enough for an exact MIP",
        lambda facts: facts.exact_blocks > 0,
        BLOCKS_SHARE,
        lambda options: BlockPrices(),
        "{exact_blocks} blocks share rows: prices on these, and each block's least cost at them, proved",
        least_seconds=BLOCK_SECONDS,
        needs_points=True,
    ),
    Phase(
        "late exact MIP",
        f"more neurons than that, at most {MOST_NEURONS}, can change sign, and no block prices",
        lambda facts: facts.hard,
        LATE_SHARE,
        lambda options: ExactMip(),
        "{unstable} neurons may change sign: written out for a proof, late",
    ),
    Phase(
        "last integer search",
        "integers beside classes",
        lambda facts: facts.choices > 0,
        LAST_INTEGERS_SHARE,
        _integer_search,
        "integers once more, from more starts",
    ),
    Phase(
        "last descents",
        f"no more than {MANY_INTEGERS:,} integers",
        lambda facts: not facts.many,
        1.0,
        _descents,
        "more starts, while there is time and they bring something",
        (EnumeratedInputs(),),
    ),
    Phase(
        "neighbourhoods",
        f"more than {MANY_INTEGERS:,} integers",
        lambda facts: facts.many,
        1.0,
        lambda options: Neighbourhood(rounds=options.effort, relax=False),
        "neighbourhoods of the best point",
    ),
)


def planned(facts: Facts) -> list[Phase]:
    """The phases of a problem, in their order; with many blocks only what takes all of them at once."""
    return [phase for phase in PHASES if phase.applies(facts) and (phase.of_blocks or not facts.many_blocks)]


def as_markdown() -> str:
    """The plan as the table of docs/auto.md."""
    lines = ["| phase | when | of the time left |", "| --- | --- | --- |"]
    for phase in PHASES:
        lines.append(f"| {phase.name} | {phase.when} | {share_in_words(phase.share)} |")
    return "\n".join(lines)


def share_in_words(share: float) -> str:
    """How much of the time left."""
    return "all" if share == 1.0 else f"{100 * share:g} %"
