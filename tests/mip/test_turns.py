"""Engines in turn: asked only while answers are wanted; those that fail are passed over."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.branching.confirmed import EngineSettings, confirmed
from dovetail.core.errors import EngineError
from dovetail.mip import turns
from dovetail.run.budget import Budget
from dovetail.run.engine import MipAnswer, MipStatus, Quadratic

MIP = dt.Mip(cost=[-1.0, -2.0], A=[[2.0, 2.0]], row_lower=-np.inf, row_upper=3.0, upper=9.0, integer=True)
"""Least at (0, 1): -2."""
LATE = MipAnswer(MipStatus.LIMIT, None, np.inf, -5.0)
POINT = MipAnswer(MipStatus.LIMIT, np.array([1.0, 0.0]), -1.0, -9.0)
BEST = MipAnswer(MipStatus.OPTIMAL, np.array([0.0, 1.0]), -2.0, -2.0)


@pytest.fixture
def saying(monkeypatch):
    """Engines that say what they are told; the names of those that were asked."""
    asked = []

    def told(*answers):
        left = list(answers)

        class Engine:
            def load(self, mip, columns, *, seed, threads):
                return self

            def solve(self, objective, *, budget, gap, **others):
                answer = left.pop(0)
                if answer is None:
                    raise EngineError("it failed")
                return answer

        def engine_for(name, mip, columns):
            asked.append(name)
            return Engine()

        monkeypatch.setattr(turns, "engine_for", engine_for)
        return asked

    return told


def answers(budget=None):
    goal = Quadratic.linear(MIP.cost)
    return turns.answers_in_turn(MIP, goal, budget or Budget(60.0), turns.FOR_POINTS, seed=0, threads=1)


def test_nobody_is_asked_after_the_answer_that_is_taken(saying):
    asked = saying(LATE, BEST)
    assert next(answer for answer in answers() if answer.exact) is BEST
    assert asked == ["highs", "scip"]


def test_one_that_fails_says_nothing(saying):
    asked = saying(None, None, POINT)
    assert list(answers()) == [POINT] and asked == ["highs", "scip", "highs"]


def test_without_time_or_the_library_nobody_is_asked(saying, monkeypatch):
    asked = saying(LATE, LATE, LATE)
    assert list(answers(Budget(0.0))) == [] and asked == []
    assert list(answers(Budget(0.9 * turns.LEAST))) == [LATE] and asked == ["highs"]
    asked.clear()
    monkeypatch.setattr(turns, "find_spec", lambda name: None)
    assert list(answers()) == [LATE, LATE] and asked == ["highs", "highs"]


def test_the_engines_agree():
    assert [(a.status, a.value) for a in answers()] == [(MipStatus.OPTIMAL, -2.0)] * 3


@pytest.mark.parametrize(
    "said", [(LATE, BEST), (LATE, POINT, LATE), (POINT, LATE, LATE), (None, None, None, LATE)]
)
def test_what_several_engines_left_open_our_own_tree_decides(saying, said):
    saying(*said)
    found = confirmed(MIP, EngineSettings(), Budget(60.0), in_turn=True)
    assert found.bound == pytest.approx(-2.0, abs=1e-6) and found.x.tolist() == [0.0, 1.0]
