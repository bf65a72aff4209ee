"""Moves that take turns: the loop, the stopping rule and the choice of the next move, for every search.

    repeat
        choose:  the move that has done least work for its credit
        turn:    it works for a slice of the time and offers what it finds
        credit:  full after a better point, half of what it was after none, never nothing

A slice is a part of the time that the solve has taken so far, so that slices grow with it and no long turn in
vain costs more than a part of the solve. With a number of rounds moves take turns one after the other, and
what is done does not depend on the clock.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from dovetail.run import work
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.progress import Progress
from dovetail.run.stopping import worthwhile

LEAST_CREDIT = 0.125
"""Of a move that has brought nothing for long: an eighth of the work of one that brings something."""
SLICE, LEAST_SLICE = 0.25, 0.2
"""Of the time since the solve began, and seconds: what a turn takes at most, once a point is known."""
LPS_OF_NODE, EVALUATIONS_OF_LP = 10.0, 1000.0
"""What counts as much as a linear program of a millisecond, whatever the clock says."""
LEAST_IDLE = 0.2
"""Seconds that a search may at least bring nothing before it leaves its time to others."""
NOTHING = "search: no gain for as long as it took to the last one"
"""What a search says when it leaves its time to others."""


@dataclass(frozen=True)
class Turn:
    """What a move has done."""

    merit: float
    """What it thinks its point is worth."""
    objective: float = math.nan
    """Of its point, in the user's sense, where it is feasible."""
    learnt: bool = False
    """Whether it found something, though nothing better: it does not count as idle."""


class Move(ABC):
    """One way to look for better points. It goes on where it was when it is asked again."""

    def __init__(self, patience: int) -> None:
        """`patience`: so many turns in a row may bring nothing."""
        self.patience = patience
        self.idle = 0
        """Turns in a row that brought nothing."""
        self.work = 0.0
        """That it has had so far, in linear programs."""
        self.credit = 1.0

    @abstractmethod
    def turn(self, context: SolveContext) -> Turn | None:
        """Work within the budget of the context; None where nothing is left to do for this incumbent."""

    def ready(self, context: SolveContext) -> bool:
        """Whether it has anything to begin with."""
        return True


class Options(Protocol):
    """What says which moves a search has: hashable, as frozen dataclasses are."""

    def moves(self, context: SolveContext) -> list[Move]:
        """Made for a whole solve."""


@dataclass(frozen=True)
class _Made:
    options: Options

    def __call__(self, context: SolveContext) -> list[Move]:
        return self.options.moves(context)


def moves_of(context: SolveContext, options: Options) -> list[Move]:
    """The moves of these options, the same for all phases of a solve."""
    return context.once(_Made(options))


class Idleness:
    """For how long searches have brought nothing: all turns of a solve together, until others gain."""

    def __init__(self) -> None:
        self._known, self._seconds = math.nan, 0.0

    def add(self, objective: float, seconds: float) -> None:
        """A turn has ended with this incumbent."""
        gained = worthwhile(self._known, objective)
        self._known = objective if gained else self._known
        self._seconds = 0.0 if gained else self._seconds + seconds

    def due(self, context: SolveContext) -> bool:
        """Whether a search should leave its time: in vain for as long as the solve took to its last gain.

        Without an incumbent there is nothing to leave the time to.
        """
        gains = [row.elapsed for row in context.monitor.trace if row.source]
        return not math.isnan(self._known) and self._seconds >= max(LEAST_IDLE, *gains[-1:], 0.0)


def idleness(context: SolveContext) -> Idleness:
    """That of all searches of a solve (see `SolveContext.once`)."""
    return Idleness()


def _work(context: SolveContext) -> float:
    """What the solve has done so far, in linear programs."""
    done = work.total()
    return done.lps + LPS_OF_NODE * done.nodes + context.monitor.evaluations / EVALUATIONS_OF_LP


def take_turns(
    context: SolveContext,
    moves: Sequence[Move],
    rounds: int | None = None,
    *,
    until_feasible: bool = False,
    renews: bool = False,
    yields: bool = False,
) -> MethodOutcome:
    """Until the solve is over, each move has had its `rounds`, or all have lost patience.

    `until_feasible`: go on beyond the rounds while no point is known. `renews`: a move that has found a
    better point has its rounds anew. `yields`: leave the time to others where the searches of the solve have
    brought nothing for long.
    """
    progress, idle = Progress(context), context.once(idleness)
    turns, playing = dict.fromkeys(moves, 0), list(moves)
    stopped = StopReason.STALLED
    for move in moves:
        move.idle = min(move.idle, move.patience - 1)  # it is asked once more at least
    while True:
        known = context.incumbent.x is not None
        if rounds is not None and (known or not until_feasible):
            resting = [move for move in playing if turns[move] >= rounds]
            stopped = StopReason.ITERATIONS if resting else stopped
            playing = [move for move in playing if turns[move] < rounds]
        able = [move for move in playing if move.ready(context)]
        if not able:
            return MethodOutcome(context.over or stopped, progress.done)
        move = min(able, key=lambda move: turns[move] if rounds is not None else move.work / move.credit)
        before, began, spent = context.incumbent.objective, perf_counter(), _work(context)
        sliced = known and len(moves) > 1 and (rounds is None or renews)
        limit = max(LEAST_SLICE, SLICE * context.monitor.elapsed) if sliced else math.inf
        turn = move.turn(context.turn(min(limit, context.budget.left)))
        seconds, objective = perf_counter() - began, context.incumbent.objective
        move.work, turns[move] = move.work + _work(context) - spent + 1.0, turns[move] + 1
        idle.add(objective, seconds)
        if worthwhile(before, objective):
            move.credit = 1.0
            turns[move] = 0 if renews else turns[move]
            for other in moves:
                other.idle = 0
        else:
            move.credit = max(LEAST_CREDIT, 0.5 * move.credit)
            move.idle += 0 if turn is not None and turn.learnt else 1
        if turn is not None:
            outcome = progress.record(turn.merit, turn.objective, learnt=turn.learnt)
            if outcome is not None:
                return outcome
        elif context.over:
            return MethodOutcome(context.over, progress.done)
        if turn is None or move.idle >= move.patience:
            playing.remove(move)
        if yields and idle.due(context):
            return MethodOutcome(StopReason.STALLED, progress.done, NOTHING, yielded=True)
