"""Budget: deadlines nest, and a request to stop reaches everybody."""

import math
import pickle

from dovetail.run.budget import Budget, StopReason
from dovetail.run.memory import MemoryWatch
from dovetail.run.turns import Clock


def test_a_part_ends_no_later_than_the_whole():
    whole = Budget(5.0)
    assert whole.part(100.0).left <= 5.0
    assert whole.part(1.0).left <= 1.0


def test_no_time_is_over_at_once():
    assert Budget(0.0).over is StopReason.TIME
    assert Budget().over is None


def test_stop_reaches_parents_and_siblings_and_the_first_reason_stays():
    whole = Budget()
    one, other = whole.part(10.0), whole.part(10.0).part(5.0)
    one.stop(StopReason.INTERRUPT)
    other.stop(StopReason.CALLBACK)
    assert whole.over is one.over is other.over is StopReason.INTERRUPT
    assert whole.stopped is StopReason.INTERRUPT


def test_memory_ends_the_part_that_watches_it_and_its_parts_but_not_the_whole():
    whole, watch = Budget(), MemoryWatch(1e-6)
    part = whole.part(10.0, memory=watch)
    assert part.over is part.part(5.0).over is StopReason.MEMORY
    assert whole.over is None and whole.part(10.0).over is None
    whole.stop(StopReason.INTERRUPT)
    assert part.over is StopReason.INTERRUPT  # what a person asks for comes first


def test_what_travels_is_the_time_left():
    whole = Budget(50.0)
    there = pickle.loads(pickle.dumps(whole.part(20.0)))
    assert 0.0 < there.left <= 20.0
    whole.stop(StopReason.INTERRUPT)
    assert there.over is None  # nobody can stop it there
    assert pickle.loads(pickle.dumps(whole)).over is StopReason.TIME
    assert pickle.loads(pickle.dumps(Budget())).over is None


def test_what_is_reserved_comes_after_the_work():
    budget = Budget(100.0)
    budget.reserve(10.0)
    assert 80.0 < budget.left <= 90.0
    assert -90.0 <= budget.late < -80.0
    budget.reserve(1000.0)  # a search has half of the time in any case
    assert 40.0 < budget.left <= 50.0
    budget.reserve(0.5)  # it was measured again
    assert 90.0 < budget.left <= 99.5


def test_what_was_spent_before_is_counted_but_leaves_half_of_the_time():
    assert 90.0 < Budget(100.0).left <= 100.0
    assert 60.0 < Budget(100.0, spent=30.0).left <= 70.0
    late = Budget(100.0, spent=1e6)
    assert 40.0 < late.left <= 50.0
    late.reserve(1e6)
    assert 20.0 < late.left <= 25.0
    assert Budget(spent=5.0).left == math.inf


def test_an_engines_deadline_includes_the_turns_of_others():
    """An engine's clock goes on while others work, as that of the whole solve does."""
    whole = Budget(1e6)
    mine = whole.in_turns(Clock()).part(10.0)
    assert mine.left <= 10.0
    assert mine.deadline > 1e5
    assert whole.part(20.0).deadline <= 20.0
