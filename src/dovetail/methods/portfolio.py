"""The loop of every search: moves in turns, each of which continues where it was.

The move with the fewest turns for its credit is next. A move has full credit after an improvement, half of
its last credit after a failure, and never less than `LEAST_CREDIT`. With a number of rounds the order does
not depend on the clock.
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
"""Least credit of a move: an eighth of the turns of a successful one."""
SLICE, LEAST_SLICE = 0.25, 0.2
"""Fraction of the time since the solve began, and seconds: the longest turn of one of several moves once a
solution is known."""


@dataclass(frozen=True)
class Turn:
    """The result of a move's turn."""

    merit: float
    """The move's own merit of its point."""
    objective: float = math.nan
    """The objective of its point, in the user's sense, if it is feasible."""
    learnt: bool = False
    """Whether the move found something useful without an improvement, so that it does not count as idle."""


class Move(ABC):
    """One kind of search for better points; each call continues the previous one."""

    def __init__(self, patience: int) -> None:
        """`patience`: number of turns in a row without success."""
        self.patience = patience
        self.idle = 0
        """Number of turns in a row without success."""
        self.credit = 1.0

    @abstractmethod
    def turn(self, context: SolveContext) -> Turn | None:
        """Work within the budget of the context; None if nothing is left to do for this incumbent."""

    def ready(self, context: SolveContext) -> bool:
        """Whether the move has a point to begin with."""
        return True


class Options(Protocol):
    """Options that determine the moves of a search; hashable, as frozen dataclasses are."""

    def moves(self, context: SolveContext) -> list[Move]:
        """The moves for a whole solve."""


@dataclass(frozen=True)
class _MoveRecord:
    options: Options

    def __call__(self, context: SolveContext) -> list[Move]:
        return self.options.moves(context)


def moves_of(context: SolveContext, options: Options) -> list[Move]:
    """The moves with these options, the same in all calls of a solve."""
    return context.once(_MoveRecord(options))


def take_turns(
    context: SolveContext, moves: Sequence[Move], rounds: int | None = None, *, until_feasible: bool = False
) -> MethodOutcome:
    """Turns until the solve is over, each move has had its `rounds`, or all have lost patience.
    `until_feasible`: continue beyond the rounds while no solution is known."""
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
