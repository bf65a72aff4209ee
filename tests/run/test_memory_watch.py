"""The watch over memory: over the limit, or the machine empty; once over, it stays so."""

import math

import pytest

from dovetail.run import memory
from dovetail.run.memory import MemoryWatch


@pytest.fixture
def machine(monkeypatch):
    """What this process holds and may still take, as the test says; every look is made."""
    told = {"held": 1.0, "spare": 5.0}
    monkeypatch.setattr(memory, "resident", lambda: told["held"])
    monkeypatch.setattr(memory, "spare", lambda: told["spare"])
    monkeypatch.setattr(memory, "LOOK_SECONDS", 0.0)
    return told


def test_over_the_limit_and_over_for_good(machine):
    watch = MemoryWatch(2.0)
    assert not watch.over and watch.left == 1.0
    machine["held"] = 2.5
    assert watch.over and watch.left == 0.0 and not watch.bound_by_machine
    machine["held"] = 0.5
    watch.look()
    assert watch.over and watch.peak == 2.5
    assert str(watch) == "2.50 GB of 2.00 GB"


@pytest.mark.parametrize("limit", [None, 50.0])
def test_the_machine_has_the_last_word(machine, limit):
    watch = MemoryWatch(limit)
    assert not watch.over and watch.allowed == 6.0
    machine.update(held=1.5, spare=-0.25)  # somebody else has taken the rest
    assert watch.over and watch.bound_by_machine and watch.allowed == 1.25


def test_where_nobody_says_nothing_is_over(machine):
    machine.update(held=None, spare=None)
    watch = MemoryWatch(0.001)
    assert watch.held is None and watch.peak is None
    assert not watch.over


def test_a_machine_that_does_not_say_what_is_free_leaves_the_limit(machine):
    machine["spare"] = None
    assert MemoryWatch(2.0).left == 1.0
    assert MemoryWatch().left == math.inf


def test_between_two_looks_nothing_is_read(machine, monkeypatch):
    monkeypatch.setattr(memory, "LOOK_SECONDS", 1e9)
    watch = MemoryWatch(2.0)
    machine["held"] = 3.0
    assert not watch.over
    watch.look()
    assert watch.over
