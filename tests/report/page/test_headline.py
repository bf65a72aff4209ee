"""The headline says no more than is known: proved, bounded, or only found; and the checks are all there."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dovetail.core.check import Violation, Worst
from dovetail.core.extrapolation import Extrapolation
from dovetail.report.gains import ENDED
from dovetail.report.page.course import Course
from dovetail.report.page.result_page import (
    STATUS,
    checks,
    extrapolations,
    headline,
    hints,
    part_bands,
    time_shares,
    warnings,
)
from dovetail.run.budget import StopReason
from dovetail.run.result import Result, Status
from dovetail.run.trace import Gain, Trace
from dovetail.run.work import Profile
from tests.report.results import nothing, result, row


def head(made):
    return headline(made, Course.of(made))


def test_every_status_and_every_reason_has_words():
    assert {status.value for status in Status} == STATUS.keys()
    assert {reason.value for reason in StopReason} == ENDED.keys()


def test_a_gap_only_where_the_networks_were_seen():
    assert head(result()).tiles[2].figure == "17.6 % gap"
    rows_only = result(
        trace=Trace([], [Gain(1.0, 17.0, "x")], [Gain(0.1, 20.0, "host")]), bound_source="host"
    )
    assert head(rows_only).tiles[2].figure == "not proved"
    assert "the only bound ignores the predictors: 20" in head(rows_only).tiles[2].words
    assert head(result(bound=None)).tiles[2].figure == "no bound"
    optimal = head(result(status=Status.OPTIMAL, bound=17.0))
    assert (optimal.tiles[2].figure, optimal.tone) == ("proved", "good")


def test_no_point():
    told = head(nothing())
    assert told.title == "No solution found" and told.tone == "bad"
    assert told.tiles[0].figure == "no solution"
    assert warnings(nothing()) == ["No candidate passed the check."]
    assert checks(nothing()) == []


@pytest.mark.parametrize(("amount", "passed"), [(0.0, True), (1e-7, True), (1e-3, False)])
def test_checks(amount, passed):
    told = checks(result(violation=Violation(rows=Worst(amount, "demand"))))
    assert told[0].passed is passed
    assert told[0].words == "3 constraints"
    assert [check.passed for check in told[4:]] == [None, None]
    assert checks(result(facts=None))[0].words == "constraints"
    unmeasured = checks(result(violation=Violation(precision=Worst(float("nan"), "net"))))
    assert unmeasured[4].amount == "not measured (net)"


def test_what_may_need_a_second_look():
    assert warnings(result()) == []
    far = tuple(Extrapolation("net", i, "age", 9.0, 0.0, 1.0) for i in range(30))
    made = result(
        violation=Violation(rounding=Worst(1e-5, "demand")),
        trace=Trace([row(1, exact=False)]),
        extrapolations=far,
    )
    told = warnings(made)
    assert [part in line for part, line in zip(("demand", "30 inputs"), told, strict=True)] == [True, True]
    assert extrapolations(made)[1] == 10


def test_what_to_try_next():
    assert hints(SimpleNamespace(hints=("time_limit=20",))) == ["time_limit=20"]
    assert hints(result()) == []


def test_where_the_time_went():
    shares = time_shares(result())
    assert sum(share.length for share in shares) == pytest.approx(100.0)
    assert [share.begin for share in shares] == [0.0, 40.0, 70.0, 80.0, 90.0]
    assert time_shares(replace(result(), profile=Profile())) == []


def test_a_band_for_each_part_shows_when_it_worked():
    trace = Trace()
    for part, begin, end in (("descents", 1.0, 2.0), ("descents", 2.0, 3.0)):
        trace.add_turn(part, begin, end)
    assert part_bands(result(trace=trace)) == []
    for part, begin, end in (("branching", 3.0, 7.0), ("descents", 7.0, 9.5)):
        trace.add_turn(part, begin, end)
    solved = result(trace=trace, seconds=10.0)
    descents, branching = part_bands(solved)
    assert descents == ("descents", [(10.0, 20.0), (70.0, 25.0)], "4.5 s", "45 %")
    assert branching == ("branching", [(30.0, 40.0)], "4.0 s", "40 %")
    assert part_bands(Result.from_json(solved.to_json())) == [descents, branching]
