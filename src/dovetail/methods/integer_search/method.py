"""Local search over the integers, judged by the networks themselves, from many starts.

    repeat from a start, or from the best point so far
        descend: all neighbours (a binary turned, two of one choice exchanged, an integer moved by one) are
                 completed by the equality rows and evaluated in one batch; the best one is taken
        kick:    a few random moves away from the local optimum, and descend again
        polish:  beside the integers found, inputs that no integer decides descend by slopes

Idea: across whole steps slopes mislead, but a thousand network evaluations cost a millisecond. Advice: for
problems in which integers choose what the networks see (configurations, selections, chained predictors).
Weakness: integers and continuous columns move in turn, never together (without integers it only looks at the
starts); nothing is proved.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.core.options import require_count, require_flags
from dovetail.linearised.descent import Descent, DescentOptions
from dovetail.linearised.mixed_integer_descent import INNER_RADIUS
from dovetail.linearised.scaled_problem import scaled_problem
from dovetail.linearised.starts import start_stream
from dovetail.methods.integer_search.local_search import LocalSearch
from dovetail.methods.portfolio import Move, Turn, moves_of, take_turns
from dovetail.run.context import MethodOutcome, SolveContext


@dataclass(frozen=True)
class IntegerLocalSearch:
    """Options of the method.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[1.0, -1.0], upper=[3.0, 9.0], integer=[True, False]))
    >>> block = problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    >>> dt.solve(problem, dt.IntegerLocalSearch(rounds=1), log=False).objective
    -6.0
    """

    rounds: int | None = None
    """Starts; None: until the time is over or `patience` of them brought nothing."""
    patience: int = 100
    """Starts in a row that brought nothing."""
    kicks: int = 50
    """Of the best local optimum so far, from one start."""
    until_feasible: bool = False
    """Whether to go on beyond `rounds` while no point is known, for as long as there is time and patience."""

    name = "integer-search"

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_count("IntegerLocalSearch: rounds", self.rounds, at_least=1)
        require_count("IntegerLocalSearch: patience", self.patience, at_least=1)
        require_count("IntegerLocalSearch: kicks", self.kicks, at_least=0)
        require_flags("IntegerLocalSearch", self, "until_feasible")

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Search from one start after the other, and from the best point in between."""
        return take_turns(context, moves_of(context, self), self.rounds, until_feasible=self.until_feasible)

    def moves(self, context: SolveContext) -> list[Move]:
        """One: the next start and its kicks."""
        return [IntegerMoves(context, self)]


class IntegerMoves(Move):
    """Local searches from the starts of a solve, and from the best point in between."""

    def __init__(self, context: SolveContext, options: IntegerLocalSearch) -> None:
        super().__init__(options.patience)
        self._context, self._kicks, self._done = context, options.kicks, 0
        scaled = context.once(scaled_problem)
        self._local = LocalSearch(context, scaled)
        self._starts = context.once(start_stream)
        self._descent = Descent(context, scaled, DescentOptions()) if self._local.holds_inputs else None

    def turn(self, context: SolveContext) -> Turn | None:
        """From the next start, or from the best point."""
        z, _ = next(self._starts, (None, ""))
        if z is None:
            return None
        best = self._context.incumbent.x
        begin = z if best is None or self._done % 2 else best
        self._done += 1
        found, merit = self._local.run(begin, self._kicks, context.budget, "switch")
        if self._descent is not None:
            merit = min(merit, self._descent.run(found, INNER_RADIUS, context.budget, "beside").merit)
        return Turn(merit)
