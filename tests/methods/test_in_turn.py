"""Proofs in turn: each goes on where it was, the first that closes ends all, one that fails is left out."""

from __future__ import annotations

import numpy as np
import pytest

import dovetail as dt
from dovetail.methods.in_turn import InTurn
from dovetail.run import work
from dovetail.run.bound import Bound
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome
from tests.contexts import context_of


class Part:
    """A proof that needs so many turns, and proves nothing where it has 0 from the beginning."""

    def __init__(self, name, turns, *, fails=False):
        self.name, self.left, self.fails, self.turns, self.proves = name, turns, fails, [], turns > 0

    def solve(self, context):
        if self.fails:
            raise ValueError("as asked for")
        before = work.total().nodes
        while not context.over:
            work.count(nodes=1)
        self.turns.append(work.total().nodes - before)
        self.left -= 1
        if self.left == 0 and self.proves:
            context.incumbent.offer(np.zeros(1), "given")
            context.incumbent.raise_bound(Bound(0.0, "nodes"))
        reason = StopReason.STALLED if self.left <= 0 else StopReason.TIME
        return MethodOutcome(reason, 1, f"{self.name}: {self.left} left", closed=self.left == 0)


@pytest.fixture
def context():
    mip = dt.Mip(
        cost=[1.0], A=None, row_lower=[], row_upper=[], lower=0.0, upper=1.0, integer=np.array([True])
    )
    return context_of(dt.Problem(mip), 1e6)


def test_the_first_that_closes_ends_all(context):
    slow, quick = Part("slow", 9), Part("quick", 3)
    outcome = InTurn(((slow, 4), (quick, 4))).solve(context)
    assert outcome.stop_reason is StopReason.PROVED
    assert "quick: 0 left" in outcome.message
    assert len(slow.turns) == 3


def test_turns_double_and_the_one_behind_has_less(context):
    first, second = Part("first", 4), Part("second", 9)
    InTurn(((first, 8), (second, 4))).solve(context)
    assert first.turns == [8, 16, 32, 64]
    assert second.turns == [4, 2, 4]


def test_one_that_ends_by_itself_leaves_its_time_to_the_other(context):
    nothing, other = Part("nothing", 0), Part("other", 2)
    assert InTurn(((nothing, 1), (other, 1))).solve(context).stop_reason is StopReason.PROVED
    assert len(nothing.turns) == 1


def test_one_that_fails_costs_its_own_result(context, monkeypatch):
    monkeypatch.delenv("DOVETAIL_STRICT", raising=False)
    assert InTurn(((Part("broken", 1, fails=True), 1), (Part("other", 2), 1))).solve(context).stop_reason


def test_while_one_halves_the_gap_in_each_turn_the_others_wait(context):
    class Halving(Part):
        """Less than half of the gap is left after every turn."""

        def solve(self, context):
            context.incumbent.offer(np.zeros(1), "given")
            context.incumbent.raise_bound(Bound(-(0.4 ** len(self.turns)), "nodes"))
            return super().solve(context)

    quick, other = Halving("quick", 6), Part("other", 9)
    assert InTurn(((quick, 4), (other, 4))).solve(context).stop_reason is StopReason.PROVED
    assert not other.turns
