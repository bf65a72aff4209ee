"""Moves in turns: who is next, when each ends, and when a search leaves its time to others."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import dovetail as dt
from dovetail.methods.portfolio import LEAST_IDLE, Idleness, Move, Turn, idleness, take_turns
from dovetail.run.budget import StopReason
from tests.contexts import context_of


class Scripted(Move):
    """Offers one point after the other, and nothing more."""

    def __init__(self, points=(), patience=3):
        super().__init__(patience)
        self.points, self.turns = list(points), 0

    def turn(self, context):
        self.turns += 1
        if self.points:
            context.incumbent.offer(np.array(self.points.pop(0)), "test")
        return Turn(0.0)


@pytest.fixture
def context():
    problem = dt.Problem(dt.Mip(cost=[1.0, 1.0], upper=[9.0, 99.0], lower=[0.0, 0.0]))
    problem.add_predictor(lambda X: X, inputs=[0], outputs=[1])
    return context_of(problem)


def test_with_rounds_each_has_as_many_turns(context):
    moves = [Scripted([[3.0, 3.0]]), Scripted()]
    outcome = take_turns(context, moves, 2)
    assert [move.turns for move in moves] == [2, 2]
    assert outcome.stop_reason is StopReason.ITERATIONS and outcome.iterations == 4


def test_a_better_point_gives_rounds_anew(context):
    moves = [Scripted([[5.0, 5.0], [4.0, 4.0], [3.0, 3.0]], patience=9), Scripted(patience=9)]
    take_turns(context, moves, 2, renews=True)
    assert [move.turns for move in moves] == [5, 2]


def test_without_rounds_they_end_when_patience_does(context):
    moves = [Scripted(patience=2), Scripted(patience=5)]
    outcome = take_turns(context, moves)
    assert [move.turns for move in moves] == [2, 5]
    assert outcome.stop_reason is StopReason.STALLED


def test_a_gain_of_one_gives_patience_to_all(context):
    moves = [Scripted([[5.0, 5.0], [4.0, 4.0]], patience=2), Scripted(patience=2)]
    take_turns(context, moves)
    assert moves[0].turns >= 4 and moves[1].turns >= 2
    assert context.incumbent.objective == pytest.approx(8.0)


def test_what_it_brought_decides_about_time():
    """Credit falls with each turn in vain, and never to nothing."""
    move = Scripted(patience=100)
    problem = dt.Problem(dt.Mip(cost=[1.0], lower=[0.0], upper=[1.0]))
    take_turns(context_of(problem), [move], 10)
    assert 0.0 < move.credit < 1.0


def test_one_without_a_point_to_begin_from_waits(context):
    class Waiting(Scripted):
        def ready(self, context):
            return context.incumbent.x is not None

    moves = [Waiting(), Scripted([[2.0, 2.0]])]
    take_turns(context, moves, 1)
    assert [move.turns for move in moves] == [1, 1]


def at(seconds, gains):
    monitor = SimpleNamespace(
        elapsed=seconds, trace=[SimpleNamespace(elapsed=gain, source="x") for gain in gains]
    )
    return SimpleNamespace(monitor=monitor)


def test_it_leaves_its_time_after_as_long_as_the_last_gain_took():
    idle = Idleness()
    idle.add(3.0, 4.0)
    assert not idle.due(at(4.0, [4.0]))
    idle.add(3.0, 3.9)
    assert not idle.due(at(7.9, [4.0]))
    idle.add(3.0, 0.2)
    assert idle.due(at(8.1, [4.0]))
    idle.add(2.0, 1.0)
    assert not idle.due(at(9.1, [9.0]))


def test_it_does_not_leave_without_a_point_nor_at_once():
    idle = Idleness()
    idle.add(math.nan, 50.0)
    assert not idle.due(at(50.0, []))
    idle = Idleness()
    idle.add(3.0, 0.0)
    idle.add(3.0, 0.9 * LEAST_IDLE)
    assert not idle.due(at(0.0, []))
    idle.add(3.0, 0.2 * LEAST_IDLE)
    assert idle.due(at(0.0, []))


def test_what_leaves_says_so_and_may_go_on(context):
    context.keep(idleness, SimpleNamespace(add=lambda *_: None, due=lambda _: True))
    outcome = take_turns(context, [Scripted([[1.0, 1.0]])], yields=True)
    assert outcome.yielded and "no gain" in outcome.message
