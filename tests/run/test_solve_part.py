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


def test_a_part_that_brought_nothing_says_so():
    part = SolvePart("integer search", POINT, rounds=4)
    assert (
        part.summary(replace(POINT, elapsed=14.1), rounds=40) == "12.1 s integer search: 36 rounds, no gain"
    )


def test_what_the_method_says_is_told_and_why_it_ended():
    part = SolvePart("input branching", POINT, rounds=0, note="input branching: 12 boxes, closed")
    part.stop_reason = StopReason.PROVED
    assert part.summary(POINT, 1) == "0.0 s input branching: 1 round, no gain, proved; 12 boxes, closed"


@pytest.mark.parametrize(
    ("now", "words"), [(NOTHING, "no point yet"), (replace(NOTHING, bound=9.0), "bound 9, no point yet")]
)
def test_a_part_says_that_there_is_no_point_yet(now, words):
    assert (
        SolvePart("first descents", NOTHING, 0).summary(now, 3) == f"0.0 s first descents: 3 rounds, {words}"
    )
