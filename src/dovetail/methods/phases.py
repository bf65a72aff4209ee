"""The plan of the default method as a table: which method, when it applies, with how much of the time left.

Phases run in the order of `PHASES`; each gets its share of the time that is left when its turn comes. The
log's section lines and the table in docs/auto.md are made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dovetail.decomposition import TemplatePricing
from dovetail.decomposition.method import template_prices
from dovetail.methods.branching import Branching, InputBranching
from dovetail.methods.cell_columns import CellColumns
from dovetail.methods.cell_descent import CellDescent
from dovetail.methods.component_prices.column_generation import ColumnGeneration
from dovetail.methods.component_prices.prices import CertifiedPrices
from dovetail.methods.exact_mip import ExactMip
from dovetail.methods.facts import (
    EASY_NEURONS,
    MANY_BLOCKS,
    MANY_INTEGERS,
    MOST_CURVES,
    MOST_NEURONS,
    AutoOptions,
    Facts,
)
from dovetail.methods.in_turn import InTurn
from dovetail.methods.integer_search import IntegerLocalSearch
from dovetail.methods.neighbourhood import Neighbourhood
from dovetail.methods.quadratic_mip import QuadraticMip
from dovetail.methods.sequential_linear import SequentialLinear
from dovetail.reformulations.enumerated_inputs import EnumeratedInputs
from dovetail.reformulations.reformulated import Reformulation
from dovetail.run.context import Method

MANY_COMPONENTS = 200
"""With more of them columns come first: a MILP step over all their classes takes longer than ten pricings
(water, n = 400)."""
MOST_CERTIFIED = 20_000
"""With more of them the sets that they move in are not written down before a minute is over."""
TEMPLATES_SHARE = 0.25
"""Of the time left, with fewer of them: its columns are where column generation begins."""
EARLY_SHARE, LATE_SHARE = 0.5, 0.3
"""Of the time left, for the exact MIP: half where a proof is likely, less where a search may bring more."""
FIRST_BOXES, FIRST_NODES = 1024, 64
"""Of input branching and of branching, in their first turns: about half a second of one core each."""
BRANCHING_SHARE = 0.5
"""Of the time left: with five inputs a proof takes seconds, and the points it meets are a search as well."""
CURVES_SHARE = 0.5
"""Of the time left: convex ones close in the first second, others at leisure or never."""
COLUMNS_SHARE = 0.75
"""Of the time left; what it leaves goes to a proof, and comes back where there is none. With 0.6 a search of
20 s ended one or two samples short (water)."""
GPU_COLUMNS_SHARE = 0.1
"""The same where a GPU proves: that gains for minutes, and pricing there has found what columns would (6x64:
nothing more in 23 s)."""
PRICES_SHARE = 0.9
"""Of the time left: columns have had most of it, and descents find little after them."""
BLOCKS_SHARE = 0.9
"""Of the time left: descents have had their part, and find little more (wine)."""
BLOCK_SECONDS = 20.0
"""A wine's network takes five to thirty; with less, descents have more use for the time."""
FIRST_STARTS, FIRST_SHARE = 3, 0.15
"""First points soon: three starts are the user's own, the cheapest and the quietest point; more, while no
point is known."""
FIRST_CELLS_SHARE, CELLS_SHARE, LAST_CELLS_SHARE = 0.01, 0.15, 1.0
"""First points of trees come in a tenth of a second, and good ones in seconds; a proof may bring as much, and
where rows are shared columns bring more (water: 30 samples after another second)."""
CELL_COLUMNS_SHARE = 0.8
"""Of the time left: it gives up soon where no box can be closed, and where they can, nothing else gets as far
(water)."""
BOXES_SHARE = 0.5
"""Of the time left: with 0.7, or with half and engines on the rows of trees after it, fourteen problems ended
much alike."""
FIRST_KICKS = 4
"""Of each of the first descents over cells: boxes find what they miss, and prove it (diet)."""
FIRST_INTEGER_KICKS = 8
"""Of the first search over integers, from one start: on eleven zoo problems 50 find more on two of them, in
three times the time; without any, less is found on eight."""
MIDDLE_SHARE, LAST_INTEGERS_SHARE = 0.15, 0.5
"""What comes after may bring as much; a proof, more."""


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
    as_given: bool = False
    """Whether it takes tree ensembles as predictors, also where they were written as rows for the others."""
    of_blocks: bool = False
    """Whether it takes all blocks at once, so that it holds with many of them."""

    def suits(self, facts: Facts) -> bool:
        """Whether it has its turn; with many blocks only what takes all of them at once has one."""
        return (self.of_blocks or not facts.many_blocks) and self.applies(facts)


def share_in_words(share: float) -> str:
    """How much of the time left."""
    return "all" if share == 1.0 else f"{100 * share:g} %"


def _descents(options: AutoOptions) -> SequentialLinear:
    return SequentialLinear(starts=options.effort, patience=options.patience, bundle=options.bundle)


def _first_descents(options: AutoOptions) -> SequentialLinear:
    starts = FIRST_STARTS if options.effort is None else min(FIRST_STARTS, options.effort)
    return replace(_descents(options), starts=starts, until_feasible=options.effort is None)


def _cell_descent(options: AutoOptions) -> CellDescent:
    return CellDescent(rounds=options.effort, patience=options.patience)


def _first_cell_descent(options: AutoOptions) -> CellDescent:
    rounds = min(FIRST_STARTS, options.effort or FIRST_STARTS)
    return replace(_cell_descent(options), rounds=rounds, kicks=FIRST_KICKS)


def _first_integer_search(options: AutoOptions) -> Method:
    free = options.effort is None
    return IntegerLocalSearch(
        rounds=1, kicks=FIRST_INTEGER_KICKS, patience=options.patience, until_feasible=free
    )


def _integer_search(options: AutoOptions) -> Method:
    return IntegerLocalSearch(rounds=options.effort, patience=options.patience, yields=options.effort is None)


_COLUMNS = Phase(
    "column generation",
    "class outputs in several components that share rows, and not all predictors are trees",
    lambda facts: facts.priced and facts.slopes and not facts.certified,
    COLUMNS_SHARE,
    lambda options: ColumnGeneration(rounds=options.effort),
    "class outputs, {components} components that share rows: columns and prices",
    needs_points=True,
)
_YIELDING = replace(
    _COLUMNS,
    when="the same components, where certified prices follow; it stops early when it no longer improves",
    applies=lambda facts: facts.priced and facts.slopes and facts.certified and not facts.on_gpu,
    method=lambda options: ColumnGeneration(rounds=options.effort, yields=True),
)

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
        f"more than {MANY_INTEGERS:,} integers, and not all predictors are trees",
        lambda facts: facts.many and facts.slopes,
        1.0,
        lambda options: Neighbourhood(rounds=1),
        "{integers} integers: relax, fix, large neighbourhoods",
    ),
    Phase(
        "first descents",
        f"otherwise, but not for trees, nor where columns come first: more than {MANY_COMPONENTS} components",
        lambda facts: (
            not facts.many and facts.slopes and (not facts.priced or facts.components <= MANY_COMPONENTS)
        ),
        FIRST_SHARE,
        _first_descents,
        "sequential linear steps from a few starts",
        (EnumeratedInputs(),),
    ),
    Phase(
        "first cell descent",
        "all predictors are tree ensembles, in components that share rows",
        lambda facts: facts.tree_components > 0,
        FIRST_CELLS_SHARE,
        _first_cell_descent,
        "{tree_samples} samples of tree ensembles: a first point by descents over cells",
    ),
    Phase(
        "first integer search",
        "integers beside classes",
        lambda facts: facts.choices > 0,
        FIRST_SHARE,
        _first_integer_search,
        "a local search over the integers, by the predictors themselves",
        as_given=True,
    ),
    Phase(
        "quadratic program",
        f"quadratic functions, at most {MOST_CURVES:,}, and no other predictor",
        lambda facts: facts.only_curves and not facts.trees_beside_others,
        CURVES_SHARE,
        lambda options: QuadraticMip(),
        "{curves} quadratic functions: tangents and envelopes, and SCIP for what they leave open",
    ),
    Phase(
        "cell columns",
        "all predictors are tree ensembles, in components that share rows",
        lambda facts: facts.tree_components > 0,
        CELL_COLUMNS_SHARE,
        lambda options: CellColumns(),
        "{tree_components} components of tree ensembles share rows: boxes of cells as columns",
    ),
    Phase(
        "cell descent",
        "all predictors are tree ensembles",
        lambda facts: facts.tree_samples > 0,
        CELLS_SHARE,
        _first_cell_descent,
        "{tree_samples} samples of tree ensembles: descents over the cells of their inputs",
    ),
    Phase(
        "cell branching",
        "tree ensembles, alone or beside other predictors",
        lambda facts: facts.cuts > 0 or facts.trees_beside_others,
        BOXES_SHARE,
        lambda options: Branching(),
        "branch and bound over boxes of cells",
        as_given=True,
    ),
    Phase(
        "quadratic MIP",
        f"quadratic functions beside networks of at most {MOST_NEURONS} neurons that can change sign",
        lambda facts: facts.curves > 0 and not facts.only_curves and not facts.trees_beside_others,
        CURVES_SHARE,
        lambda options: QuadraticMip(),
        "{curves} quadratic functions: tangents and envelopes, and SCIP for what they leave open",
    ),
    Phase(
        "proofs in turn",
        "networks that read few inputs together (at most 12; more where nothing else proves a bound)",
        lambda facts: facts.joint_inputs > 0,
        BRANCHING_SHARE,
        lambda options: InTurn(((InputBranching(), FIRST_BOXES), (Branching(), FIRST_NODES))),
        "{joint_inputs} inputs of all networks together: branch and bound over them, and over neurons",
    ),
    Phase(
        "early exact MIP",
        f"integers, or blocks as for block prices, and at most {EASY_NEURONS} neurons can change sign",
        lambda facts: facts.easy,
        EARLY_SHARE,
        lambda options: ExactMip(),
        "{unstable} neurons may change sign: few enough to be written out, early",
    ),
    Phase(
        "integer search",
        "integers beside classes",
        lambda facts: facts.choices > 0,
        FIRST_SHARE,
        _integer_search,
        "local search over the integers, by the predictors themselves",
        as_given=True,
    ),
    _COLUMNS,
    _YIELDING,
    replace(
        _YIELDING,
        when="the same components, where certified prices run on a GPU",
        applies=lambda facts: facts.priced and facts.slopes and facts.certified and facts.on_gpu,
        share=GPU_COLUMNS_SHARE,
    ),
    Phase(
        "certified prices",
        "the same components, each a ReLU network over a box, a simplex or a ball",
        lambda facts: facts.priced and facts.certified,
        PRICES_SHARE,
        lambda options: CertifiedPrices(),
        "each component's least cost at the prices, proved by branch and bound over signs",
    ),
    Phase(
        "branching",
        "not all predictors are trees, and the LP of a box is small enough",
        lambda facts: facts.branched,
        BRANCHING_SHARE,
        lambda options: Branching(),
        "branch and bound over columns, neurons and cuts of trees",
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
        "components that share rows, of few kinds, each small enough for branch and bound",
        lambda facts: facts.exact_blocks > 0,
        BLOCKS_SHARE,
        lambda options: CertifiedPrices(),
        "{exact_blocks} blocks share rows: prices on these, and each block's least cost at them, proved",
        least_seconds=BLOCK_SECONDS,
        needs_points=True,
    ),
    Phase(
        "late exact MIP",
        f"otherwise at most {MOST_NEURONS} neurons can change sign, and no block prices",
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
        as_given=True,
    ),
    Phase(
        "last cell descent",
        "all predictors are tree ensembles",
        lambda facts: facts.tree_samples > 0,
        LAST_CELLS_SHARE,
        _cell_descent,
        "more starts over the cells of trees",
    ),
    Phase(
        "last descents",
        f"no more than {MANY_INTEGERS:,} integers, and not all are trees",
        lambda facts: not facts.many and facts.slopes,
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
    """The phases of a problem, in their order."""
    return [phase for phase in PHASES if phase.suits(facts)]


def as_markdown() -> str:
    """The plan as the table of docs/auto.md."""
    lines = ["| phase | when | of the time left |", "| --- | --- | --- |"]
    for phase in PHASES:
        lines.append(f"| {phase.name} | {phase.when} | {share_in_words(phase.share)} |")
    return "\n".join(lines)
