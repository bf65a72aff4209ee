"""The trace: one row per iteration, residuals by their worst, flat where a table needs it.

Frames are made by pandas; who has none is told by whom it is needed.
"""

import sys
from dataclasses import replace

import pytest

import dovetail as dt
from dovetail.run.record import read, sayable
from dovetail.run.trace import Gain, Residual, Row, add_gain, frame

ROW = Row(
    iteration=1, objective=2.0, incumbent=1.0, source="mip", rho=10.0, lagrangian=0.5, merit=0.25,
    mip_seconds=0.1, nn_seconds=0.2, check_seconds=0.3, elapsed=0.7, exact=True,
    residuals=(Residual("net", "inputs", 0.5, 0.1), Residual("net", "outputs", 0.25, 0.4)),
)  # fmt: skip


def test_the_worst_residual_counts():
    assert (ROW.primal, ROW.dual) == (0.5, 0.4)


def test_a_flat_row_names_each_coupling():
    flat = ROW.flat()
    assert flat["primal"] == 0.5
    assert flat["dual[net.outputs]"] == 0.4
    assert "residuals" not in flat


def test_a_trace_is_read_like_a_list():
    trace = dt.Trace([ROW, ROW])
    assert len(trace) == 2
    assert trace[1] is ROW
    assert list(trace) == [ROW, ROW]
    assert trace.column("merit") == [0.25, 0.25]
    assert trace.to_frame()["check_seconds"].tolist() == [0.3, 0.3]


def test_a_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(dt.MissingDependencyError, match="pip install pandas"):
        dt.Trace().to_frame()


def test_a_trace_shows_how_it_ended():
    last = replace(ROW, iteration=2, source="", bound=0.5, incumbent=0.75, elapsed=1.4)
    trace = dt.Trace([ROW, last])
    assert repr(trace) == "<Trace: 2 iterations, 1.40 s, incumbent 0.75, bound 0.5>"
    assert repr(dt.Trace()) == "<Trace: no iterations>" and "<table>" in dt.Trace()._repr_html_()
    assert "<td>mip</td>" in trace._repr_html_() and trace._repr_html_().count("<tr>") == 2


def test_gains_that_nobody_can_tell_apart_are_one():
    gains = []
    for k in range(10_000):
        add_gain(gains, Gain(1.0 + 1e-4 * k, float(k), "prices"))
    assert gains[0].value == 0.0 and gains[-1].value == 9999.0
    assert 200 < len(gains) < 600  # about ln 2 over the share of a step
    values = [gain.value for gain in gains]
    assert values == sorted(values)
    add_gain(gains, Gain(2.0, 1e5, "signs"))
    add_gain(gains, Gain(2.0, 1e6, "prices"))
    assert [gain.source for gain in gains[-3:]] == ["prices", "signs", "prices"]


def test_gains_from_a_file():
    gains = [Gain(0.1, 2.0, "host"), Gain(0.2, float("inf"), "prices")]
    assert read("gains", sayable(gains), list[Gain]) == gains
    with pytest.raises(ValueError, match="source"):
        read("gain", {"seconds": 1, "value": 1, "source": 1}, Gain)
    with pytest.raises(ValueError, match="value"):
        read("gain", {"seconds": 1, "value": "many", "source": "host"}, Gain)


def test_one_row_per_record():
    assert frame("the test", [{"a": 1}, {"a": 2, "b": 3.0}])["a"].tolist() == [1, 2]


def test_pandas_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(dt.MissingDependencyError, match="the test needs pandas: pip install pandas"):
        frame("the test", [])
