"""The figure for notebooks and papers: steps, marks by part, residuals where there are any."""

import io
import sys

import pytest

import dovetail as dt
from dovetail.run.trace import Gain, Trace
from tests.report.results import nothing, result


def test_steps_marks_and_residuals():
    figure = result().plot(width=6.0)
    course, residuals = figure.axes
    bound, point, *marks = course.get_lines()
    assert list(point.get_ydata()) == [12.0, 15.0, 17.0, 17.0]
    assert list(bound.get_xdata()) == [0.4, 5.0, 10.0]
    assert len(marks) == 3
    assert [line.get_label() for line in residuals.get_lines()] == ["primal", "dual", "rho"]
    assert figure.get_size_inches()[0] == 6.0


def test_without_residuals_or_without_a_point():
    assert len(result(trace=Trace([], [Gain(1.0, 2.0, "x")], [])).plot().axes) == 1
    nothing().plot().savefig(io.BytesIO(), format="png")


def test_a_dollar_is_no_formula():
    made = result(trace=Trace([], [Gain(1.0, 2.0, r"$\frac{$ 5 $"), Gain(2.0, 3.0, "$")], []))
    figure = made.plot()
    names = figure.axes[0].get_legend().get_texts()
    assert {r"$\frac{$ 5 $", "$"} <= {name.get_text() for name in names}
    assert not any(name.get_parse_math() for name in names)
    figure.savefig(io.BytesIO(), format="png")


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(dt.MissingDependencyError, match="pip install matplotlib"):
        result().plot()
