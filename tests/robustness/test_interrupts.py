"""Ctrl-C and SIGTERM at any moment of a solve, from another process: an answer, soon, and nothing left."""

import io
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import dovetail as dt
from dovetail.methods import METHODS
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome
from dovetail.run.environment import Interrupts
from dovetail.testing.problems import offers_of
from tests.conftest import FULL, volume
from tests.processes import surviving
from tests.robustness.interrupted import Case, interrupted
from tests.small import knapsack
from tests.sweeping.builds import plant

ROOT = Path(__file__).parent.parent.parent


@volume("processes; other tests send their signals in this one, at moments of their choice")
@pytest.mark.parametrize("seed", range(200 if FULL else 1))
def test_any_moment_gives_an_answer(seed):
    case = Case.random(seed, list(METHODS))
    answer = interrupted(case)
    print(f"{case}: {answer.seconds:.2f} s, {answer.report.get('status')}")
    if answer.code == -signal.SIGTERM or answer.report.get("early") or answer.seconds < 0.0:
        return  # the signal came before the solve had begun, or after it had ended: no case
    assert answer.code == 0, answer.stderr
    ends = {"interrupt": ("feasible", "no_solution"), "proved": ("optimal",)}  # proved in that very moment
    assert answer.report["status"] in ends[answer.report["stop"]]
    assert answer.report["verified"] == (answer.report["status"] != "no_solution")
    assert answer.children == []


@volume("processes; the suite of methods interrupts SCIP as well")
@pytest.mark.parametrize("problem", ["large", "busy"])
def test_big_m_hears_while_it_writes_and_while_scip_searches(problem):
    answer = interrupted(Case("big-m", False, problem, signal.SIGINT, 3.0))
    print(f"{answer.seconds:.2f} s")
    assert answer.code == 0, answer.stderr
    assert answer.report.get("early") or answer.report["stop"] == "interrupt"


class Scripted:
    """A method that finds a point and then does what it is told."""

    name = "scripted"

    def __init__(self, *acts):
        self._acts = acts

    def solve(self, context):
        context.incumbent.offer(np.array([1.0, 0.0, 0.0, 1.0, -5.0]), "scripted")
        for act in self._acts:
            act(context)
        return MethodOutcome(context.budget.over or StopReason.ITERATIONS, 1)


def kill(number, *_):
    os.kill(os.getpid(), number)


INT, TERM = partial(kill, signal.SIGINT), partial(kill, signal.SIGTERM)


@pytest.fixture
def _surviving():
    with surviving():
        yield


@pytest.mark.usefixtures("_surviving")
@pytest.mark.parametrize("act", [INT, TERM])
def test_one_signal_returns_the_point(act):
    result = dt.solve(knapsack(), Scripted(act), log=False)
    assert result.stop_reason == "interrupt"
    assert result.objective == -4.0


def test_after_ctrl_c_the_next_solve_runs():
    assert dt.solve(knapsack(), Scripted(INT), log=False).stop_reason == "interrupt"
    assert dt.solve(knapsack(), Scripted(), log=False).stop_reason == "iterations"


@pytest.mark.usefixtures("_surviving")
@pytest.mark.parametrize("again", [dt.solve, dt.sweep, dt.solve_shards])
def test_after_sigterm_the_next_solve_ends_the_process(again, tmp_path):
    """Each with what it needs to begin; none of them begins."""
    dt.solve(knapsack(), Scripted(TERM), log=False)
    before = signal.getsignal(signal.SIGTERM)
    given = {
        dt.solve: lambda: dt.solve(knapsack(), Scripted(pytest.fail), log=False),
        dt.sweep: lambda: dt.sweep(plant, {"sense": ["min"]}, log=False),
        dt.solve_shards: lambda: dt.solve_shards(offers_of, range(2), out=tmp_path, log=False),
    }
    with pytest.raises(SystemExit) as left:
        given[again]()
    assert left.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.usefixtures("_surviving")
def test_after_sigterm_a_solve_in_the_callback_ends_at_once_and_the_outer_one_returns():
    inner = []

    def nested(_):
        inner.append(dt.solve(knapsack(), Scripted(), log=False))

    result = dt.solve(knapsack(), Scripted(TERM, nested), log=False)
    assert inner[0].stop_reason == result.stop_reason == "interrupt"
    assert result.objective == -4.0


@pytest.mark.usefixtures("_surviving")
def test_a_handler_of_the_callers_own_means_that_nothing_is_remembered():
    with surviving():
        signal.signal(signal.SIGTERM, lambda *_: None)
        dt.solve(knapsack(), Scripted(TERM), log=False)
        assert dt.solve(knapsack(), Scripted(), log=False).stop_reason == "iterations"


LOOP = """
import sys, time
import numpy as np
import dovetail as dt
from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome
from tests.small import knapsack

class Waiting:
    name = "waiting"
    def solve(self, context):
        context.incumbent.offer(np.array([1.0, 0.0, 0.0, 1.0, -5.0]), "waiting")
        print("waits", flush=True)
        while {deaf} or not context.over:
            time.sleep(0.01)
        return MethodOutcome(context.over or StopReason.TIME, 1)

for k in range(6):
    result = dt.solve(knapsack(), Waiting(), time_limit=600.0, log=False)
    print(result.stop_reason.value, result.objective, flush=True)
"""


def loop(*, deaf):
    return subprocess.Popen(
        [sys.executable, "-c", LOOP.format(deaf=deaf)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )


def test_a_loop_of_solves_ends_with_143():
    with loop(deaf=False) as process:
        assert process.stdout.readline() == "waits\n"
        process.terminate()
        rest = process.stdout.read()
    assert rest == "interrupt -4.0\n"
    assert process.returncode == 143


@volume("a process and its imports; a loop of solves ends in another one")
def test_a_second_sigterm_ends_a_solve_that_does_not_hear_the_first():
    with loop(deaf=True) as process:
        assert process.stdout.readline() == "waits\n"
        while process.poll() is None:  # the second one counts when it is not the same request as the first
            process.terminate()
            time.sleep(0.05)
        assert process.stdout.read() == ""
    assert process.returncode == -signal.SIGTERM


def test_ctrl_c_after_stop_keeps_the_point_and_is_heard():
    stop = lambda context: context.budget.stop(StopReason.CALLBACK)  # noqa: E731
    result = dt.solve(knapsack(), Scripted(stop, INT), log=False)
    assert result.stop_reason == "interrupt"
    assert result.objective == -4.0


@pytest.mark.usefixtures("_surviving")
@pytest.mark.parametrize("acts", [(INT, INT), (TERM, INT)])
def test_the_second_one_leaves_at_once_with_the_point(acts):
    with pytest.raises(KeyboardInterrupt) as left:
        dt.solve(knapsack(), Scripted(*acts, lambda _: pytest.fail("went on")), log=False)
    assert left.value.result.objective == -4.0
    assert left.value.result.stop_reason == "interrupt"
    assert dt.check(knapsack(), left.value.result.x).within()


def test_the_second_one_before_any_point_has_no_result():
    class Nothing(Scripted):
        def solve(self, context):
            INT()
            INT()

    problem = dt.Problem(dt.Mip([0.0, 1.0], lower=[-1.0, 5.0], upper=[1.0, 9.0]))
    problem.add_predictor(lambda X: X[:, 0] ** 2, [0], [1])
    with pytest.raises(KeyboardInterrupt) as left:
        dt.solve(problem, Nothing(), log=False)
    assert not hasattr(left.value, "result")


def test_a_signal_in_the_last_lines_is_heard():
    class Late(io.StringIO):
        def write(self, text):
            if text.startswith("status"):
                INT()
            return super().write(text)

    result = dt.solve(knapsack(), Scripted(), log=Late())
    assert result.stop_reason == "interrupt"
    assert result.objective == -4.0


def test_who_ignores_signals_goes_on_ignoring_them():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        result = dt.solve(knapsack(), Scripted(INT, INT), log=False)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.stop_reason == "iterations"


def test_a_handler_of_sigterm_is_the_callers():
    seen = []
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
    try:
        result = dt.solve(knapsack(), Scripted(TERM), log=False)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [1]
    assert result.stop_reason == "iterations"


def test_handlers_are_put_back_whatever_happens():
    def broken(_):
        raise RuntimeError("a method that fails")

    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(RuntimeError, match="a method that fails"):
        dt.solve(knapsack(), Scripted(broken), log=False)
    with pytest.raises(dt.OptionError):
        dt.solve(knapsack(), "no such method", log=False)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_solve_inside_a_callback_hands_the_signal_on():
    inner = []

    def outer(context):
        inner.append(dt.solve(knapsack(), Scripted(INT), log=False))
        assert context.budget.over is StopReason.INTERRUPT

    result = dt.solve(knapsack(), Scripted(outer), log=False)
    assert inner[0].stop_reason == result.stop_reason == "interrupt"


def test_nothing_is_set_outside_the_main_thread():
    seen = []

    def inside():
        before = signal.getsignal(signal.SIGINT)
        with Interrupts():
            seen.append(signal.getsignal(signal.SIGINT) is before)

    worker = threading.Thread(target=inside)
    worker.start()
    worker.join()
    assert seen == [True]


# --- failures after a point is known ------------------------------------------------------------------


@pytest.mark.parametrize(
    "failure", [MemoryError("none left"), ZeroDivisionError("oops"), dt.PredictorError("odd"), SystemExit(3)]
)
def test_any_failure_carries_the_point(failure):
    def fail(_):
        raise failure

    with pytest.raises(type(failure)) as raised:
        dt.solve(knapsack(), Scripted(fail), log=False)
    assert raised.value.result.objective == -4.0


def test_a_failure_of_the_last_check_carries_the_point(monkeypatch):
    def fail(*_):
        raise MemoryError("none left")

    monkeypatch.setattr("dovetail.solving.job.check", fail)
    with pytest.raises(MemoryError) as raised:
        dt.solve(knapsack(), Scripted(), log=False)
    assert raised.value.result.objective == -4.0


def test_a_point_that_fails_the_last_check_is_carried_by_nobody(monkeypatch):
    far = dt.Violation(rows=type(dt.Violation().rows)(1.0, "row"))
    monkeypatch.setattr("dovetail.solving.job.check", lambda *_: far)
    with pytest.raises(dt.PredictorError, match="passed the check before") as raised:
        dt.solve(knapsack(), Scripted(), log=False)
    assert not hasattr(raised.value, "result")


class Broken(io.StringIO):
    """A log that can be written to only so often."""

    def __init__(self, lines, failure):
        super().__init__()
        self._left, self._failure = lines, failure

    def write(self, text):
        self._left -= 1
        if self._left < 0:
            raise self._failure
        return super().write(text)


@pytest.mark.parametrize(
    "failure", [BrokenPipeError(32, "Broken pipe"), OSError(28, "No space left"), ValueError]
)
@pytest.mark.parametrize("lines", [0, 8])
def test_a_log_that_breaks_loses_nothing(lines, failure, caplog):
    with caplog.at_level(logging.WARNING, "dovetail"):
        result = dt.solve(knapsack(), log=Broken(lines, failure))
    assert result.status == "optimal"
    assert "the log could not be written" in result.message
    assert len([record for record in caplog.records if "log" in record.message]) == 1


def test_a_closed_file_as_log():
    file = io.StringIO()
    file.close()
    assert dt.solve(knapsack(), log=file).status == "optimal"
