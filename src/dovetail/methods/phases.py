"""The parts of the default method as a table: the method of each part, and the condition under which the part
runs.

Parts are begun in the order of `PHASES` and then work in turns (`run/turns.py`). The log's section lines and
the table in docs/auto.md are made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dovetail.methods.branching import Branching
from dovetail.methods.cell_columns import CellColumns
from dovetail.methods.cell_descent import CellDescent
from dovetail.methods.component_prices.prices import BlockPrices
from dovetail.methods.exact_mip import ExactMip
from dovetail.methods.facts import (
    MANY_BLOCKS,
    MANY_INTEGERS,
    MOST_CURVES,
    MOST_NEURONS,
    AutoOptions,
    Facts,
)
from dovetail.methods.integer_search import IntegerLocalSearch
from dovetail.methods.neighbourhood import Neighbourhood
from dovetail.methods.quadratic_mip import QuadraticMip
from dovetail.methods.sequential_linear import SequentialLinear
from dovetail.run.context import Method

KICKS = 8
"""Number of random restarts (kicks) in one turn of the integer search.

On eleven zoo problems, 50 kicks find better solutions on two and take three times as long; without kicks the
solutions are worse on eight."""


@dataclass(frozen=True)
class Phase:
    """One row of the table."""

    name: str
    when: str
    """The condition in words, for the documentation."""
    applies: Callable[[Facts], bool]
    method: Callable[[AutoOptions], Method]
    why: str
    """The line of the log when the part begins, with facts to be filled in."""
    needs_solution: bool = False
    """Whether the part begins only when a solution is known."""
    as_given: bool = False
    """Whether the part gets tree ensembles as predictors even if they were written as rows for other
    parts."""
    as_written: bool = False
    """Whether the part solves the MIP of the whole problem."""
    proves: bool = False
    """Whether the part proves bounds."""
    prices: bool = False
    """Whether the part chooses among columns at prices. Such a part counts as a search until a solution is
    known, because its columns often give the first solution of blocks that share constraints."""
    of_blocks: bool = False
    """Whether the part treats many equal blocks together, without turns and with all of the time."""

    def proves_now(self, *, solved: bool) -> bool:
        """Whether its work counts as that of proofs, after a solution is known or before."""
        return self.proves and (solved or not self.prices)

    def suits(self, facts: Facts) -> bool:
        """Whether the part suits the problem; many equal blocks have one part only."""
        return (self.of_blocks or not facts.many_blocks) and self.applies(facts)


PHASES = (
    Phase(
        "many blocks",
        f"more than {MANY_BLOCKS:,} equal blocks (up to their data) that share constraints; then no other "
        "part runs",
        lambda facts: facts.many_blocks,
        lambda options: BlockPrices(),
        "{blocks} blocks that are equal up to their data: all priced at once",
        of_blocks=True,
    ),
    Phase(
        "exact MIP",
        "all predictors became constraints (tables, trees)",
        lambda facts: facts.whole,
        lambda options: ExactMip(),
        "all predictors became constraints",
        as_written=True,
        proves=True,
    ),
    Phase(
        "block prices",
        "components that share constraints",
        lambda facts: 0 < facts.blocks <= MANY_BLOCKS,
        lambda options: BlockPrices(),
        "{blocks} blocks share constraints: columns and prices on these, and the least cost of each block at "
        "the prices, proved",
        proves=True,
        prices=True,
    ),
    Phase(
        "integer search",
        "integer variables other than classes, if they determine all inputs of the predictors",
        lambda facts: facts.choices > 0 and facts.decided,
        lambda options: IntegerLocalSearch(rounds=options.effort, kicks=KICKS, patience=2 * options.patience),
        "local search over the integers, evaluated by the predictors",
        as_given=True,
    ),
    Phase(
        "descents",
        f"not if all predictors are trees, nor with more than {MANY_INTEGERS:,} integers",
        lambda facts: not facts.many and facts.slopes,
        lambda options: SequentialLinear(
            starts=options.effort, patience=options.patience, bundle=options.bundle
        ),
        "sequential linear programming from many starts",
    ),
    Phase(
        "cell descent",
        "all predictors are tree ensembles",
        lambda facts: facts.tree_samples > 0,
        lambda options: CellDescent(rounds=options.effort, patience=options.patience),
        "{tree_samples} samples of tree ensembles: descents over the cells of their inputs",
    ),
    Phase(
        "integer search",
        "integer variables other than classes, if some inputs are continuous",
        lambda facts: facts.choices > 0 and not facts.decided,
        lambda options: IntegerLocalSearch(rounds=options.effort, kicks=KICKS, patience=2 * options.patience),
        "local search over the integers, evaluated by the predictors",
        as_given=True,
    ),
    Phase(
        "relaxation",
        f"more than {MANY_INTEGERS:,} integers, and not all predictors are trees",
        lambda facts: facts.many and facts.slopes,
        lambda options: Neighbourhood(rounds=options.effort, patience=2 * options.patience),
        "{integers} integers: relax, fix, then neighbourhoods",
    ),
    Phase(
        "cell columns",
        "all predictors are tree ensembles, in components that share constraints",
        lambda facts: facts.tree_components > 0,
        lambda options: CellColumns(),
        "{tree_components} components of tree ensembles share constraints: boxes of cells as columns",
        proves=True,
    ),
    Phase(
        "quadratic MIP",
        f"quadratic functions, at most {MOST_CURVES:,}, alone or beside networks of at most {MOST_NEURONS} "
        "neurons that can change sign",
        lambda facts: facts.curves > 0 and not facts.trees_beside_others,
        lambda options: QuadraticMip(),
        "{curves} quadratic functions: tangents and envelopes, then SCIP for the remaining gap",
        proves=True,
    ),
    Phase(
        "branching",
        "problems of which a box can be bounded fast, by planes or by an LP",
        lambda facts: facts.branched,
        lambda options: Branching(),
        "branch and bound over variables, neurons and thresholds of trees",
        as_given=True,
        proves=True,
    ),
    Phase(
        "exact MIP",
        f"otherwise, if at most {MOST_NEURONS} neurons can change sign",
        lambda facts: not facts.whole and facts.unstable <= MOST_NEURONS,
        lambda options: ExactMip(),
        "{unstable} neurons may change sign: few enough for a MIP with all neurons",
        proves=True,
    ),
    Phase(
        "neighbourhoods",
        f"not if all predictors are trees, nor with more than {MANY_INTEGERS:,} integers",
        lambda facts: not facts.many and facts.slopes,
        lambda options: Neighbourhood(rounds=options.effort, patience=2 * options.patience, relax=False),
        "MILPs in which most integers and signs of neurons are fixed as in the incumbent",
        needs_solution=True,
    ),
)


def as_markdown() -> str:
    """The table of docs/auto.md."""
    lines = ["| part | when |", "|---|---|"]
    return "\n".join(lines + [f"| {phase.name} | {phase.when} |" for phase in PHASES])
