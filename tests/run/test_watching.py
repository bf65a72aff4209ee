"""`progress=`: called while the solve runs; the live chart; `log=` to a logger."""

import io
import logging
import sys
from types import ModuleType, SimpleNamespace

import pytest

import dovetail as dt
from dovetail.report.live_chart import LiveChart, live_chart
from dovetail.run import monitor
from tests.run.test_checkpoint import problem
from tests.small import bowl


def test_progress_is_told_in_time_and_at_the_end(monkeypatch):
    monkeypatch.setattr(monitor, "PROGRESS_TICKS", 1)
    seen = []
    result = dt.solve(problem(), time_limit=2.0, progress=seen.append, log=False)
    assert len(seen) >= 3
    times = [event.seconds for event in seen]
    assert times == sorted(times) and seen[0].time_limit == 2.0
    last = seen[-1]
    assert (last.objective, last.bound, last.gap) == (result.objective, result.bound, result.gap)
    assert last.trace.incumbents and last.row.iteration == result.iterations
    with pytest.raises(ValueError, match="read-only"):
        last.x[0] = 3.0


def test_progress_may_stop_the_solve(monkeypatch):
    monkeypatch.setattr(monitor, "PROGRESS_TICKS", 1)
    result = dt.solve(problem(), time_limit=60.0, progress=lambda event: event.stop(), log=False)
    assert result.seconds < 30.0 and result.stop_reason == "callback"


def test_a_display_that_fails_does_not_end_the_solve(monkeypatch, capsys):
    monkeypatch.setattr(monitor, "PROGRESS_TICKS", 1)
    calls = []

    def failing(event):
        calls.append(event)
        raise ValueError("no screen")

    result = dt.solve(problem(), time_limit=1.0, progress=failing)
    assert result.x is not None and len(calls) == 1 and not result.failures
    assert "progress: ValueError: no screen; it is not called again" in capsys.readouterr().out


def test_what_is_no_function_is_refused():
    with pytest.raises(dt.OptionError, match="progress is 3"):
        dt.solve(bowl(), progress=3, log=False)


def test_outside_of_a_notebook_there_is_no_chart():
    assert live_chart() is None
    assert dt.solve(bowl(), progress=True, log=False).x is not None


def test_the_chart_of_a_notebook_is_drawn_in_one_place(monkeypatch):
    drawn = []

    def display(shown, display_id):
        assert display_id is True
        drawn.append(shown)
        return SimpleNamespace(update=drawn.append)

    from matplotlib.figure import Figure

    Figure().savefig(io.StringIO(), format="svg")  # matplotlib asks IPython when it is first used
    fake, shown = ModuleType("IPython"), ModuleType("IPython.display")
    fake.get_ipython = lambda: SimpleNamespace(kernel=object())
    shown.HTML, shown.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    monkeypatch.setattr(monitor, "PROGRESS_TICKS", 1)
    assert isinstance(live_chart(), LiveChart)
    result = dt.solve(problem(), time_limit=2.0, progress=True, log=False)
    assert drawn and all("<svg" in each for each in drawn)
    assert f"objective {result.objective:.6g}"[:10] in drawn[-1]


def test_a_logger_receives_the_log_once(caplog):
    name = logging.getLogger("plant.optimiser")
    with caplog.at_level(logging.INFO):
        dt.solve(bowl(), log=name)
    assert {record.name for record in caplog.records} == {"plant.optimiser"}
    said = [record.getMessage() for record in caplog.records]
    assert said[0].startswith("dovetail ") and any(line.startswith("status") for line in said)
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="dovetail"):
        dt.solve(bowl(), log=logging.getLogger("dovetail"))
    heads = [record for record in caplog.records if record.getMessage().startswith("dovetail ")]
    assert len(heads) == 1
