"""Moves in turns: who is next, and when each ends."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.methods.portfolio import Move, Turn, take_turns
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
