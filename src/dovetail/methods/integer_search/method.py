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

import math
from collections.abc import Callable
from dataclasses import dataclass

from dovetail.core.options import require_count, require_flags
from dovetail.linearised.descent import Descent, DescentOptions
from dovetail.linearised.mixed_integer_descent import INNER_RADIUS
from dovetail.linearised.scaled_problem import scaled_problem
from dovetail.linearised.starts import start_stream
from dovetail.linearised.trust_region import TrustRegionSubproblem
from dovetail.methods.integer_search.local_search import LocalSearch
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.progress import Progress
from dovetail.run.stopping import worthwhile

NOTHING = "integer search: no gain for as long as it took to the last one"
"""What it says when it leaves its time to others."""


LEAST = 0.2
"""Seconds, at least: a few hundred batches of a small problem."""


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
    """Starts in a row that brought nothing, in all phases of a solve that search like this."""
    kicks: int = 50
    """Of the best local optimum so far, from one start."""
    until_feasible: bool = False
    """Whether to go on beyond `rounds` while no point is known, for as long as there is time and patience."""
    yields: bool = False
    """Whether it leaves its time to others where it has brought nothing for long (`Yielding`)."""

    name = "integer-search"

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_count("IntegerLocalSearch: rounds", self.rounds, at_least=1)
        require_count("IntegerLocalSearch: patience", self.patience, at_least=1)
        require_count("IntegerLocalSearch: kicks", self.kicks, at_least=0)
        require_flags("IntegerLocalSearch", self, "until_feasible", "yields")

    def solve(self, context: SolveContext) -> MethodOutcome:
        """Search from one start after the other, and from the best point in between."""
        local, idle = LocalSearch(context, context.once(scaled_problem)), context.once(yielding)
        idle.begin()
        try:
            return self._search(context, local, idle, idle.due if self.yields else _never)
        finally:
            idle.end()

    def _search(
        self, context: SolveContext, local: LocalSearch, idle: Yielding, enough: Callable[[], bool]
    ) -> MethodOutcome:
        progress = Progress(context, None if self.until_feasible else self.rounds)
        descent = _descent(context) if local.holds_inputs else None
        for z, _ in context.once(start_stream):
            best = context.incumbent.x
            begin = z if best is None or progress.done % 2 else best
            found, merit = local.run(begin, self.kicks, context.budget, "switch", enough)
            if descent is not None:
                merit = min(merit, descent.run(found, INNER_RADIUS, context.budget, "beside").merit)
            outcome = progress.record(merit)
            idle.end_round()
            if outcome is not None:
                return outcome
            if self.rounds is not None and progress.done >= self.rounds and context.incumbent.x is not None:
                return MethodOutcome(StopReason.ITERATIONS, progress.done)
            if idle.rounds >= self.patience:
                return MethodOutcome(StopReason.STALLED, progress.done)
            if enough():
                return MethodOutcome(StopReason.STALLED, progress.done, NOTHING, yielded=True)
        return progress.exhausted()


def _descent(context: SolveContext) -> Descent:
    """With integers held; what is better is offered on the way."""
    scaled, options = context.once(scaled_problem), DescentOptions()
    lp = TrustRegionSubproblem(
        scaled, context.stopwatch, integer=False, bundle_size=options.bundle_size,
        seed=context.seed, threads=context.threads,
    )  # fmt: skip
    return Descent(context, scaled, lp, options)


def _never() -> bool:
    return False


class Yielding:
    """When a search has brought nothing for so long that its time is worth more elsewhere.

    As in `Stalling` of column generation: as long without a gain as the solve took to the last one. Here all
    phases of the search count together, and it may go on when others have found something. Without an
    incumbent there is nothing to leave the time to.
    """

    def __init__(self, context: SolveContext) -> None:
        self._context = context
        self._known, self._idle, self._since = context.incumbent.objective, 0.0, context.monitor.elapsed
        gains = [row.elapsed for row in context.monitor.trace if row.source]
        self._gain = gains[-1] if gains else context.monitor.elapsed
        self.rounds = 0
        """That ended in a row without a gain."""

    def begin(self) -> None:
        """The search is at work from here; what others gained since it was counts as well."""
        self._since = self._context.monitor.elapsed
        self._look()

    def end(self) -> None:
        """Others are at work from here."""
        self._idle += self._context.monitor.elapsed - self._since

    def end_round(self) -> None:
        """One has ended."""
        self.rounds += 1
        self._look()

    def due(self) -> bool:
        """Whether it has searched in vain for as long as the solve had taken to the last gain."""
        self._look()
        idle = self._idle + self._context.monitor.elapsed - self._since
        return not math.isnan(self._known) and idle >= max(LEAST, self._gain)

    def _look(self) -> None:
        best = self._context.incumbent.objective
        if worthwhile(self._known, best):
            self._known, self._idle, self.rounds = best, 0.0, 0
            self._gain = self._since = self._context.monitor.elapsed


def yielding(context: SolveContext) -> Yielding:
    """That of all phases of a solve (see `SolveContext.once`)."""
    return Yielding(context)
