"""What a part brought, in words."""

import math
from dataclasses import replace

import pytest

from dovetail.report.log.table import State
from dovetail.run.budget import StopReason
from dovetail.run.monitor import SolvePart, gain

NOTHING = State(2.0, "", math.nan, None, rows_only=False, evaluations=0)
POINT = replace(NOTHING, incumbent=57.0)
ROWS = replace(POINT, bound=100.0, rows_only=True)
PROVED = replace(POINT, bound=75.0)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (NOTHING, NOTHING, ""),
        (NOTHING, POINT, "first point 57"),
        (POINT, replace(POINT, incumbent=61.0), "incumbent 57 to 61"),
        (POINT, POINT, ""),
        (POINT, ROWS, ""),
        (ROWS, PROVED, "bound 75"),
        (PROVED, replace(PROVED, bound=75.0 - 1e-9), "bound 75, better in digits that are not shown"),
        (PROVED, replace(PROVED, bound=70.0, incumbent=60.0), "incumbent 57 to 60, bound 75 to 70"),
    ],
)
def test_gains(before, after, words):
    assert gain(before, after) == words


def test_the_first_point_is_the_first():
    assert gain(NOTHING, POINT, 80.5) == "first point 80.5, then 57"
    assert gain(NOTHING, POINT, 57.0) == "first point 57"
    assert gain(POINT, replace(POINT, incumbent=61.0), 80.5) == "incumbent 57 to 61"


def turn(part, before, after, rounds):
    return part.add(before, after, rounds)


def test_a_part_that_brought_nothing_says_so():
    part = SolvePart("integer search")
    assert not turn(part, POINT, replace(POINT, elapsed=14.1), 36)
    assert part.summary(POINT) == "12.1 s integer search: 36 rounds, no gain"


def test_what_the_method_says_is_told_and_why_it_ended():
    part = SolvePart("input branching", note="input branching: 12 boxes, closed")
    turn(part, POINT, POINT, 1)
    part.stop_reason = StopReason.PROVED
    assert part.summary(POINT) == "0.0 s input branching: 1 round, no gain, proved; 12 boxes, closed"


@pytest.mark.parametrize(
    ("now", "words"), [(NOTHING, "no point yet"), (replace(NOTHING, bound=9.0), "bound 9, no point yet")]
)
def test_a_part_says_that_there_is_no_point_yet(now, words):
    part = SolvePart("descents")
    turn(part, NOTHING, now, 3)
    assert part.summary(now) == f"0.0 s descents: 3 rounds, {words}"


def test_turns_of_a_part_add_up_and_what_others_brought_is_not_its_own():
    part = SolvePart("descents")
    assert turn(part, POINT, replace(POINT, elapsed=3.0, incumbent=60.0), 2)
    others = replace(POINT, elapsed=5.0, incumbent=70.0)
    assert not turn(part, others, replace(others, elapsed=5.5), 1)
    assert part.summary(others) == "1.5 s descents: 3 rounds, incumbent 57 to 60"
