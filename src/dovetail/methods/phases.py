"""The plan of the default method as a table: which method, when it applies, with how much of the time left.

Phases run in the order of `PHASES`; each gets its share of the time that is left when its turn comes. The
log's section lines and the table in docs/auto.md are made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dovetail.decomposition import TemplatePricing
from dovetail.decomposition.method import template_prices
from dovetail.methods.block_prices.method import BlockPrices
from dovetail.methods.branching import Branching, InputBranching
from dovetail.methods.cell_columns import CellColumns
from dovetail.methods.certified_prices.method import CertifiedPrices
from dovetail.methods.column_generation import ColumnGeneration
from dovetail.methods.exact_mip import ExactMip
from dovetail.methods.facts import (
    EASY_NEURONS,
    MANY_BLOCKS,
    MANY_COMPONENTS,
    MOST_CURVES,
    MOST_NEURONS,
    AutoOptions,
    Facts,
)
from dovetail.methods.in_turn import InTurn
from dovetail.methods.quadratic_mip import QuadraticMip
from dovetail.methods.search import Search
from dovetail.run.context import Method

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
FIRST_ROUNDS, FIRST_SHARE = 2, 0.3
"""First points soon: two turns of each move after its last gain, so that proofs begin in a second."""
MIDDLE_SHARE = 0.15
"""What comes after may bring as much."""
CELL_COLUMNS_SHARE = 0.8
"""Of the time left: it gives up soon where no box can be closed, and where they can, nothing else gets as far
(water)."""
BOXES_SHARE = 0.5
"""Of the time left: with 0.7, or with half and engines on the rows of trees after it, fourteen problems ended
much alike."""


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


def _search(options: AutoOptions) -> Search:
    return Search(
        rounds=options.effort,
        patience=options.patience,
        bundle=options.bundle,
        integers=options.integer_search,
        enumeration=options.enumeration,
    )


def _first_search(options: AutoOptions) -> Search:
    rounds = min(FIRST_ROUNDS, options.effort or FIRST_ROUNDS)
    return replace(_search(options), rounds=rounds, while_better=options.effort is None)


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
        "first search",
        f"otherwise, but not where columns come first: classes in more than {MANY_COMPONENTS} components",
        lambda facts: not facts.columns_first,
        FIRST_SHARE,
        _first_search,
        "each kind of moves a few times, more while they gain",
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
        "search",
        "integers beside classes, or a late exact MIP or block prices follow, and no columns",
        lambda facts: facts.choices > 0 or ((facts.hard or facts.exact_blocks > 0) and not facts.priced),
        MIDDLE_SHARE,
        lambda options: replace(_search(options), yields=options.effort is None),
        "all moves, before long proofs",
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
        f"otherwise at most {MOST_NEURONS} neurons can change sign, and no block prices",
        lambda facts: facts.hard,
        LATE_SHARE,
        lambda options: ExactMip(),
        "{unstable} neurons may change sign: written out for a proof, late",
    ),
    Phase(
        "last search",
        "but for many blocks",
        lambda facts: True,
        1.0,
        _search,
        "all moves, while there is time and they bring something",
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
