"""Proofs in turn: each goes on where it was, the first that closes ends all, one that fails is left out."""

from __future__ import annotations

import numpy as np
import pytest

import dovetail as dt
from dovetail.methods import in_turn as in_turn_file
from dovetail.methods.in_turn import BEHIND, LEAST, InTurn
from dovetail.run import budget as budget_file
from dovetail.run.bound import Bound
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome
from tests.contexts import context_of


class Clock:
    """In the place of `time`: it is as late as the parts say."""

    now = 0.0

    def perf_counter(self):
        return self.now


class Part:
    """A proof that needs so many turns, and proves nothing where it has 0 from the beginning."""

    def __init__(self, name, turns, *, fails=False):
        self.name, self.left, self.fails, self.turns, self.proves = name, turns, fails, [], turns > 0

    def solve(self, context):
        if self.fails:
            raise ValueError("as asked for")
        began = self.clock.now
        while not context.over:
            self.clock.now += LEAST / 64
        self.turns.append((self.clock.now - began) / LEAST)
        self.left -= 1
        if self.left == 0 and self.proves:
            context.incumbent.offer(np.zeros(1), "given")
            context.incumbent.raise_bound(Bound(0.0, "nodes"))
        reason = StopReason.STALLED if self.left <= 0 else StopReason.TIME
        return MethodOutcome(reason, 1, f"{self.name}: {self.left} left", closed=self.left == 0)


@pytest.fixture
def in_turn(monkeypatch):
    """Parts in turn, by a clock of their own; how it ended."""
    clock = Clock()
    for module in (in_turn_file, budget_file):
        monkeypatch.setattr(module, "time", clock)
    mip = dt.Mip(
        cost=[1.0], A=None, row_lower=[], row_upper=[], lower=0.0, upper=1.0, integer=np.array([True])
    )

    def solved(*parts):
        for part in parts:
            part.clock = clock
        return InTurn(parts).solve(context_of(dt.Problem(mip), 1e6))

    return solved


def test_the_first_that_closes_ends_all(in_turn):
    slow, quick = Part("slow", 9), Part("quick", 3)
    outcome = in_turn(slow, quick)
    assert outcome.stop_reason is StopReason.PROVED
    assert "quick: 0 left" in outcome.message
    assert 0 < len(slow.turns) < 9


def test_turns_double_and_the_one_behind_has_a_part(in_turn):
    first, second = Part("first", 6), Part("second", 9)
    in_turn(first, second)
    assert first.turns == [1.0, 1.0, 2.0, 4.0, 8.0, 16.0]
    assert second.turns == [1.0, 1.0, 2.0]
    assert sum(second.turns) <= BEHIND * sum(first.turns)


def test_one_that_ends_by_itself_leaves_its_time_to_the_other(in_turn):
    nothing, other = Part("nothing", 0), Part("other", 2)
    assert in_turn(nothing, other).stop_reason is StopReason.PROVED
    assert len(nothing.turns) == 1


def test_one_that_fails_costs_its_own_result(in_turn, monkeypatch):
    monkeypatch.delenv("DOVETAIL_STRICT", raising=False)
    assert in_turn(Part("broken", 1, fails=True), Part("other", 2)).stop_reason is StopReason.PROVED


def test_one_that_halves_the_gap_in_a_turn_has_the_next_as_well(in_turn):
    class Halving(Part):
        """Half of the gap is left after every turn."""

        def solve(self, context):
            context.incumbent.offer(np.zeros(1), "given")
            context.incumbent.raise_bound(Bound(-(0.4 ** len(self.turns)), "nodes"))
            return super().solve(context)

    quick, other = Halving("quick", 6), Part("other", 9)
    assert in_turn(quick, other).stop_reason is StopReason.PROVED
    assert not other.turns
