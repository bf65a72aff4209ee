"""The course: who found what and when; charts that hide nothing without saying so."""

import pytest

from dovetail.report.gains import found_by
from dovetail.report.page.course import Course, by_part, course_figure, listed_points, residual_figures
from dovetail.run.trace import Gain, Trace
from tests.report.results import nothing, result, row


def with_gains(points, bounds=(), **changes):
    gains = [[Gain(t, v, source) for t, v, source in each] for each in (points, bounds)]
    return result(trace=Trace([], *gains), **changes)


def test_values_at_a_moment():
    course = Course.of(result())
    point, bound = course.at(4.5)
    assert (point.value, bound.value) == (17.0, 40.0)
    assert "gap" not in course.text_at(4.5)  # that bound has not seen the networks
    assert course.text_at(9.0).endswith("gap 17.6 %")
    assert course.at(0.1) == (None, None)


def test_parts():
    course = Course.of(result())
    rows = by_part(course.points, course, found_by)
    assert [(row.words, row.amount, row.best) for row in rows][1:] == [
        ("a descent from a random start", 1, "15"),
        ("a MIP over the columns", 1, "17"),
    ]
    assert rows[0].colour == 8  # a bound without predictors is grey
    assert len({row.colour for row in rows}) == 3


def test_long_lists_keep_their_ends():
    made = with_gains([(0.1 * k, float(k), "random") for k in range(1, 101)])
    rows, left_out = listed_points(Course.of(made))
    assert len(rows) == 24 and left_out == 76
    assert rows[0].value == "1" and rows[-1].value == "100"
    assert rows[0].change is None and rows[-1].change == 1.0


def everything_is_inside(chart):
    for line in chart.lines:
        for place in line.d[1:].split("L"):
            x, y = map(float, place.split())
            assert 0 <= x <= chart.width and 0 <= y <= chart.height
    for mark in chart.marks:
        assert 0 <= mark.x <= chart.width and 0 <= mark.y <= chart.height
    assert [stop.x for stop in chart.stops] == sorted(stop.x for stop in chart.stops)


CASES = {
    "plain": (
        [(1.0, 5.0, "x"), (2.0, 4.0, "u"), (3.0, 3.5, "x")],
        [(1.5, 1.0, "prices"), (2.5, 3.0, "prices")],
    ),
    "one point": ([(1.0, 5.0, "x")], []),
    "far bound": ([(1.0, 5.0, "x"), (2.0, 4.0, "x")], [(0.5, -1e9, "host")]),
    "bad first point": ([(0.5, 1e9, "x"), *((1.0 + k, 9.0 - k, "u") for k in range(6))], []),
    "early": ([(0.001 * k, 9.0 - k, "x") for k in range(1, 6)], []),
    "at once": ([(0.0, 5.0, "start"), (0.0, 4.0, "x"), (0.0, 3.0, "u")], [(0.0, 1.0, "host")]),
    "only bounds": ([], [(1.0, 1.0, "host"), (2.0, 2.0, "prices")]),
    "many": ([(0.01 * k, 1000.0 - k, f"part {k % 20}") for k in range(900)], []),
}


@pytest.mark.parametrize("case", CASES)
def test_charts(case):
    points, bounds = CASES[case]
    made = with_gains(
        points, bounds, objective=points[-1][1] if points else None, bound=bounds[-1][1] if bounds else None
    )
    figure = course_figure(Course.of(made))
    for chart in (figure.wide, figure.narrow):
        everything_is_inside(chart)
        assert chart.lines and chart.x_ticks and chart.y_ticks
    assert len(figure.wide.marks) <= 120
    off = {"far bound": "The bound, −1e+09, is beyond the scale", "bad first point": "from 1e+09 on"}
    assert not figure.notes if case not in off else off[case] in figure.notes[0]
    assert figure.wide.x.log == (case == "early")
    edge = figure.wide.edge
    assert (edge is None) == (case != "far bound")
    assert edge is None or edge[2] == "\u2193 bound −1e+09"


def test_the_last_bound_is_shown_where_it_says_something():
    """Points that jump from 379 to 556 of at most 574: neither the first one nor 2,000 is worth a chart."""
    points = [
        (0.9, 379.0, "host"),
        (5.2, 538.0, "x"),
        (8.7, 553.0, "x"),
        (20.8, 555.0, "u"),
        (20.9, 556.0, "u"),
    ]
    bounds = [(0.5, 2000.0, "host"), (25.0, 580.0, "prices"), (29.0, 574.0, "prices")]
    chart = course_figure(Course.of(with_gains(points, bounds, objective=556.0, bound=574.0))).wide
    assert chart.y.low < 538.0 and 580.0 < chart.y.high < 600.0
    assert chart.y.low > 379.0


def test_nothing_to_draw():
    assert course_figure(Course.of(nothing())) is None
    assert course_figure(Course.of(with_gains([], [(1.0, 1.0, "host")], objective=None))) is None


def test_residuals():
    figures = dict(residual_figures(result().trace))
    assert set(figures) == {"residual", "rho"}
    for figure in figures.values():
        everything_is_inside(figure.wide)
        everything_is_inside(figure.narrow)
    assert residual_figures([row(k, residual=0.0) for k in range(5)]) == []
    constant = [row(k, residual=0.0 if k == 3 else float("nan") if k == 4 else 1.0) for k in range(1, 5)]
    assert [kind for kind, _ in residual_figures(constant)] == ["residual"]
    cut = residual_figures([row(k, exact=k > 0) for k in range(5)])[0][1]
    assert cut.notes == ["1 MIP step ended at a limit; the points found were used."]
    assert len(residual_figures([row(k) for k in range(5000)])[0][1].wide.stops) <= 120
