"""Engines in turns: asked only while answers are wanted; those that fail are passed over."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.branching.confirmed import EngineSettings, confirmed
from dovetail.core.errors import EngineError
from dovetail.mip import answers
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

    def told(*these):
        left = list(these)

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

        monkeypatch.setattr(answers, "engine_for", engine_for)
        return asked

    return told


def said_of(decides, budget=None):
    goal = Quadratic.linear(MIP.cost)
    return answers.answers_in_turns(MIP, goal, budget or Budget(60.0), decides, seed=0, threads=1)


def test_nobody_is_asked_after_the_answer_that_is_taken(saying):
    asked = saying(BEST, LATE)
    assert said_of(lambda answer: answer.exact) == [BEST] and asked == ["highs"]
    asked.clear()
    saying(LATE, BEST)
    assert said_of(lambda answer: answer.exact) == [LATE, BEST] and asked == ["highs", "scip"]


def test_one_that_fails_says_nothing(saying):
    asked = saying(None, POINT)
    assert said_of(lambda answer: False) == [POINT] and asked == ["highs", "scip"]


def test_without_time_or_the_library_nobody_is_asked(saying, monkeypatch):
    asked = saying(LATE, LATE)
    assert said_of(lambda answer: False, Budget(0.0)) == [] and asked == []
    monkeypatch.setattr(answers, "find_spec", lambda name: None)
    assert said_of(lambda answer: False) == [LATE] and asked == ["highs"]


def test_the_engines_agree():
    assert [(a.status, a.value) for a in said_of(lambda answer: False)] == [(MipStatus.OPTIMAL, -2.0)] * 2


@pytest.mark.parametrize("said", [(LATE, BEST), (LATE, POINT), (POINT, LATE), (None, None, LATE)])
def test_what_several_engines_left_open_our_own_tree_decides(saying, said):
    saying(*said)
    found = confirmed(MIP, EngineSettings(), Budget(60.0), in_turn=True)
    assert found.bound == pytest.approx(-2.0, abs=1e-6) and found.x.tolist() == [0.0, 1.0]
