"""The search of `auto`: descents, moves of integers, neighbourhoods and cells of trees, in turns.

    descents         sequential linear steps from many starts
    integer moves    hundreds of neighbours judged by the networks in one batch
    neighbourhoods   MILPs in which most integers, and signs of neurons, are held as at the best point
    cells            descents over the cells of trees, where all predictors are trees

All of them share the incumbent, and what they learn stays from one phase to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.core.options import require_count, require_flags
from dovetail.linearised.scaled_problem import ScaledProblem, scaled_problem
from dovetail.methods.cell_descent.method import CellDescent
from dovetail.methods.facts import MANY_INTEGERS
from dovetail.methods.integer_search import IntegerLocalSearch
from dovetail.methods.neighbourhood import Neighbourhood
from dovetail.methods.portfolio import Move, moves_of, take_turns
from dovetail.methods.sequential_linear import SequentialLinear
from dovetail.reformulations.enumerated_inputs import EnumeratedInputs
from dovetail.reformulations.reformulated import Reformulated, context_of, reformulate
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.failures import expendable
from dovetail.structure.structure import structure_of

KICKS = 8
"""Of one turn of moves of integers: on eleven zoo problems 50 find more on two of them, in three times the
time; without any, less is found on eight."""
CELL_KICKS = 4
"""Of one turn over cells: boxes find what they miss, and prove it (diet)."""


@dataclass(frozen=True)
class Search:
    """All moves that a problem allows."""

    rounds: int | None = None
    """Turns of each move; None: until the time is over or all have lost patience."""
    patience: int = 20
    """Descents in a row that end in a local optimum known before; of other moves, half of those in vain."""
    bundle: int = 8
    integers: bool = True
    """Whether integers are moved by the networks' own values."""
    enumeration: bool = True
    """Whether integer inputs with few combinations get a binary for each, in descents."""
    while_better: bool = False
    """Whether to go on beyond `rounds` while no point is known, and moves beyond theirs while they gain."""
    yields: bool = False
    """Whether it leaves its time to others where it has brought nothing for long."""

    name = "search"

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_count("Search: rounds", self.rounds, at_least=1)
        require_count("Search: patience", self.patience, at_least=1)
        require_flags("Search", self, "integers", "enumeration", "while_better", "yields")

    def solve(self, context: SolveContext) -> MethodOutcome:
        """One turn after the other."""
        return take_turns(
            context,
            self._moves(context),
            self.rounds,
            until_feasible=self.while_better,
            renews=self.while_better,
            yields=self.yields,
        )

    def _moves(self, context: SolveContext) -> list[Move]:
        """Those that the problem allows, each made once for all phases of a solve."""
        structure, moves = context.once(structure_of), list[Move]()
        free = int(np.count_nonzero(structure.free_integers))
        if structure.trees is not None:
            moves += moves_of(context, CellDescent(patience=self.patience, kicks=CELL_KICKS))
        elif free <= MANY_INTEGERS:
            inner = context.once(enumerated) if self.enumeration else context
            moves += moves_of(inner, SequentialLinear(patience=self.patience, bundle=self.bundle))
        longer = 2 * self.patience
        if self.integers and free > structure.classes:
            moves += moves_of(context.once(as_given), IntegerLocalSearch(kicks=KICKS, patience=longer))
        if structure.trees is None:
            with expendable("neighbourhoods"):
                moves += moves_of(context, Neighbourhood(patience=longer, relax=free > MANY_INTEGERS))
        return moves


def as_given(context: SolveContext) -> SolveContext:
    """The solve whose predictors are asked about moves of integers: `auto` keeps the one here in which trees
    were not yet written as rows (see `SolveContext.keep`)."""
    return context


def enumerated(context: SolveContext) -> SolveContext:
    """The solve over the problem with integer inputs enumerated, where that can be done."""
    given = Reformulated.start(context.problem, context.once(structure_of).tight_box, context.relaxed)
    with expendable(EnumeratedInputs.name):
        rewritten = reformulate(given, (EnumeratedInputs(),))
        if rewritten is given:
            return context
        context.monitor.say(f"   {rewritten.note}")
        inner = context_of(context, rewritten)
        if not context.once(scaled_problem).by_range:
            inner.keep(scaled_problem, ScaledProblem.of(inner, by_range=False))
        return inner
    return context
