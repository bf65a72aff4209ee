"""The loop of every search: moves in turns, each of which goes on where it was.

    repeat
        choose:  the move that has had fewest turns for its credit
        turn:    it offers what it finds
        credit:  full after a better point, half of what it was after none, never nothing

With a number of rounds nothing depends on the clock.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.progress import Progress, worthwhile

LEAST_CREDIT = 0.125
"""Of a move that has brought nothing for long: an eighth of the turns of one that brings something."""
SLICE, LEAST_SLICE = 0.25, 0.2
"""Of the time since the solve began, and seconds: what one of several moves takes at most in a turn, once a
point is known."""


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
    """The moves of these options, the same whenever a solve asks for them."""
    return context.once(_Made(options))


def take_turns(
    context: SolveContext, moves: Sequence[Move], rounds: int | None = None, *, until_feasible: bool = False
) -> MethodOutcome:
    """Until the solve is over, each move has had its `rounds`, or all have lost patience.

    `until_feasible`: go on beyond the rounds while no point is known.
    """
    progress, turns, playing = Progress(context), dict.fromkeys(moves, 0), list(moves)
    stopped = StopReason.STALLED
    while True:
        known = context.incumbent.x is not None
        if rounds is not None and (known or not until_feasible):
            resting = [move for move in playing if turns[move] >= rounds]
            stopped = StopReason.ITERATIONS if resting else stopped
            playing = [move for move in playing if turns[move] < rounds]
        able = [move for move in playing if move.ready(context)]
        if not able:
            return MethodOutcome(context.over or stopped, progress.done)
        move = min(able, key=lambda move: turns[move] / (move.credit if rounds is None else 1.0))
        before = context.incumbent.objective
        sliced = known and rounds is None and len(moves) > 1
        limit = max(LEAST_SLICE, SLICE * context.monitor.elapsed) if sliced else math.inf
        turn = move.turn(context.turn(min(limit, context.budget.left)))
        turns[move] += 1
        if worthwhile(before, context.incumbent.objective):
            move.credit = 1.0
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
