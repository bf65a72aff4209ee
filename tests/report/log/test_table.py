"""Rows fit their width, and a bound that has not seen the networks has no gap."""

import math
from dataclasses import replace

import pytest

from dovetail.report.log.table import PARTS, RESIDUALS, State, cells, gap, head, line

STATE = State(12.34, "column generation", 57.0, 75.0, rows_only=False, evaluations=1204)
EXTREME = State(
    98765.4,
    "a part with 濃度 in its name, and a long one",
    -1.2345678e-123,
    -9.87654321e210,
    rows_only=True,
    evaluations=10**13,
    iteration=12345,
    residual=1.234e-105,
    rho=1e200,
    exact=False,
)


@pytest.mark.parametrize("columns", [PARTS, RESIDUALS])
@pytest.mark.parametrize("width", [20, 40, 59, 60, 76, 77, 79])
@pytest.mark.parametrize("state", [STATE, EXTREME, replace(EXTREME, rows_only=False)])
def test_rows_and_titles_fit(columns, width, state):
    assert cells(head(columns, width)) <= width
    assert cells(line(columns, state, width)) <= width


@pytest.mark.parametrize("width", [59, 79])
def test_the_columns_are_those_that_are_promised(width):
    titles = head(PARTS, width).split()
    assert titles == [
        "time",
        "part",
        "incumbent",
        "bound",
        "gap",
        "evaluations" if width == 79 else "evaluated",
    ]
    assert {"residual", "rho"} <= set(head(RESIDUALS, width).split())


@pytest.mark.parametrize("width", [59, 79])
def test_a_bound_of_the_rows_alone_has_no_gap(width):
    told = line(PARTS, replace(STATE, bound=40.0, rows_only=True), width)
    assert "MIP only: 40" in told and "%" not in told
    assert told.rstrip().endswith("1,204")
    assert line(PARTS, STATE, width).split()[-4:] == ["75", "31.6", "%", "1,204"]


def test_numbers_stand_under_their_titles():
    for columns in (PARTS, RESIDUALS):
        for width in (59, 79):
            titles = head(columns, width)
            for state in (STATE, replace(STATE, rows_only=True)):
                told = line(columns, replace(state, residual=0.1, rho=1.0), width)
                end = titles.index("incumbent") + len("incumbent")
                assert told[:end].endswith("57") and told[end] == " "


@pytest.mark.parametrize(
    ("incumbent", "bound", "text"),
    [
        (100.0, 100.0, "0 %"),
        (100.0, 100.00000001, "0 %"),
        (100.0, 100.001, "<0.01 %"),
        (100.0, 100.00003, "<0.01 %"),
        (100.0, 99.0, "1.00 %"),
        (100.0, 50.0, "50.0 %"),
        (100.0, -50.0, "150 %"),
        (1e-9, 1.0, "large"),
        (0.0, 0.0, "0 %"),
        (math.nan, 1.0, "-"),
        (1.0, None, "-"),
    ],
)
def test_gaps(incumbent, bound, text):
    assert gap(replace(STATE, incumbent=incumbent, bound=bound)) == text


def test_an_inexact_step_has_a_star():
    assert "7*" in line(RESIDUALS, replace(STATE, iteration=7, exact=False), 79).split()


def test_a_residual_of_nothing_is_a_number_and_no_penalty_is_none():
    told = line(RESIDUALS, replace(STATE, residual=0.0, rho=0.0), 79).split()
    assert told[-3:] == ["0.0e+00", "-", "1,204"]
