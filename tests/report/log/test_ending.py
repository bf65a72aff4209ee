"""The last lines: status, who found and proved it, checks with marks, what to try next."""

from dataclasses import replace

import pytest

import dovetail as dt
from dovetail.core.check import Worst
from dovetail.report.log.heading import ending
from dovetail.report.log.table import cells
from dovetail.run.result import Status
from dovetail.run.work import Profile
from tests.report.log.test_layout import HOSTILE
from tests.small import knapsack


@pytest.fixture(scope="module")
def solved():
    return dt.solve(knapsack(), log=False)


def text_of(result, width=79):
    return "\n".join(ending(result, width))


def test_of_an_optimum(solved):
    text = text_of(solved)
    assert "status      optimal solution found (gap 0 %, tolerance 0.01 %)" in text
    assert "gap 0 %" in text and "found by" in text and "network evaluations" in text
    assert text.count("\u2713") == 4 and "\u2717" not in text
    assert "try next" not in text


def test_a_check_that_fails_has_another_mark(solved):
    missed = replace(solved, violation=replace(solved.violation, rows=Worst(0.5, "demand")))
    assert "\u2717 constraints (5.0e-01)" in text_of(missed)
    assert text_of(missed).count("\u2713") == 3


def test_a_bound_of_the_rows_alone_has_no_gap(solved):
    loose = replace(
        solved, status=Status.FEASIBLE, bound=2.0 * solved.objective, bound_source="host", message=""
    )
    text = text_of(loose)
    assert "(MIP only, predictors ignored)" in text and "gap" not in text
    assert "gap" in text_of(replace(loose, bound_source="exact"))


def test_without_networks_nothing_is_said_of_them():
    result = dt.solve(dt.Problem(dt.Mip(cost=[1.0], lower=0.5, integer=True)), log=False)
    text = text_of(result)
    assert "MIP only" not in text and "predict" not in text and text.count("\u2713") == 3


def test_hints_are_told(solved):
    text = text_of(replace(solved, hints=("time_limit=40: it came late", "bounds for x")))
    assert "try next    - time_limit=40: it came late\n            - bounds for x" in text


def test_without_a_point_the_whole_message_is_told(solved):
    none = replace(solved, status=Status.NO_SOLUTION, x=None, objective=None, message="no; and why; and more")
    text = text_of(none)
    assert "and why" in text and "and more" in text and "found by" not in text


@pytest.mark.parametrize("width", [20, 59, 79])
@pytest.mark.parametrize("name", HOSTILE)
def test_names_do_no_harm(solved, name, width):
    named = replace(
        solved, hints=(f"widen [b]{name}",), message=name, source=name, violation=replace(
            solved.violation, rounding=Worst(1.0, name)
        )
    )  # fmt: skip
    lines = list(ending(named, width))
    assert all(line.isprintable() and cells(line) <= width for line in lines)


def test_the_last_line_says_what_is_known(solved):
    assert text_of(solved).splitlines()[-1].startswith("status      optimal solution found (gap ")


def test_percentages_of_the_time_add_up(solved):
    profile = Profile(engine=1.0, network=1.0, subsolver=0.0, check=0.0, rest=1.0)
    text = text_of(replace(solved, profile=profile))
    assert "engine 34 %, network 33 %, other 33 %" in text and "subsolver" not in text
