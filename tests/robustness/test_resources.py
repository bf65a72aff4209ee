"""Time, memory, threads and files: a limit is kept, nothing grows, and no size ends the process."""

import gc
import json
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import dovetail as dt
from dovetail.methods import METHODS
from dovetail.mip.loaded_highs import LoadedHighs
from dovetail.mip.own_thread import GRACE_SECONDS, OwnThread
from dovetail.mip.scip import watched_model
from dovetail.run.budget import Budget, OutOfTime
from dovetail.run.context import SolveContext
from dovetail.run.guard import BEGIN, Guard
from dovetail.run.incumbent import Incumbent
from dovetail.run.memory import MemoryWatch
from dovetail.run.monitor import Monitor
from dovetail.testing.problems import busy
from tests.conftest import FULL, volume
from tests.small import random_mlp

# --- the clock ---------------------------------------------------------------------------------------


def one_block(predictor):
    mip = dt.Mip(
        [0.0, 0.0, 1.0], [[1.0, 1.0, 0.0]], [-np.inf], [0.3], [-1.0, -1.0, -np.inf], [1.0, 1.0, np.inf]
    )
    problem = dt.Problem(mip)
    problem.add_predictor(predictor, [0, 1], [2])
    return problem


@pytest.mark.parametrize("name", METHODS if FULL else ["auto"])
def test_a_slow_predictor_is_not_asked_long_after_the_end(name, clock):
    """Nothing takes time but the predictor."""
    limit, began = 1.0, []

    def slow(X):
        began.append(clock.now)
        clock.now += 0.4
        return np.sum(np.abs(X - 0.3), axis=1)

    problem = one_block(slow)
    began.clear()
    clock.now = 0.0
    result = dt.solve(problem, name, time_limit=limit, log=False)
    assert len([at for at in began if at > limit]) <= 3
    assert result.stop_reason in ("time", "proved")
    assert result.x is None or dt.check(problem, result.x).within()


class Late:
    """A budget whose lateness is set by hand."""

    late = -10.0
    over = None


def test_the_guard_refuses_what_cannot_end_in_time(clock):
    seconds = 0.0

    def predict(X):
        clock.now += seconds
        return X[:, :1]

    budget = Late()
    guard = Guard(budget)
    predictor = guard.guarded(one_block(predict)).blocks[0].predictor
    X = np.zeros((1, 2))
    predictor.predict(X)
    budget.late = BEGIN - 0.01
    predictor.predict(X)
    budget.late = BEGIN + 0.01
    with pytest.raises(OutOfTime):
        predictor.predict(X)
    with pytest.raises(OutOfTime):
        predictor.snapshot("cpu")
    guard.armed = False
    seconds = 0.6
    predictor.predict(X)
    guard.armed, budget.late = True, BEGIN - 0.05
    with pytest.raises(OutOfTime):  # it would begin in time and end too late
        predictor.predict(X)


def test_a_guarded_predictor_is_what_it_was():
    problem = one_block(random_mlp(2, seed=3))
    block = Guard(Budget()).guarded(problem).blocks[0]
    guarded, plain = block.predictor, problem.blocks[0].predictor
    X = np.random.default_rng(0).uniform(-1, 1, (5, 2))
    assert type(guarded) is type(plain)
    assert np.array_equal(guarded.predict(X), plain.predict(X))
    assert block.description == problem.blocks[0].description
    assert len(block.description.layers()) == len(plain.layers())
    assert "predict" not in vars(plain)
    assert guarded.snapshot("cpu") is guarded.snapshot("cpu")


def test_an_end_while_predictors_are_copied_is_no_point_and_no_error(monkeypatch):
    def never(*_, **__):
        raise OutOfTime

    problem = busy(6)
    with monkeypatch.context() as patch:
        patch.setattr("dovetail.solving.job.Incumbent", fails_once(never))
        result = dt.solve(problem, "auto", time_limit=5.0, log=False)
    assert result.status == "no_solution"
    assert result.x is None


def fails_once(failing):
    from dovetail.run.incumbent import Incumbent

    calls = []

    def make(*args, **kwargs):
        calls.append(1)
        return failing() if len(calls) == 1 else Incumbent(*args, **kwargs)

    return make


# --- work aside --------------------------------------------------------------------------------------


def test_work_aside_tells_on_the_waiting_thread_and_raises_there():
    told = []

    def work(mailbox):
        mailbox.ask(lambda: told.append(threading.current_thread()))
        return 7

    assert OwnThread(work).wait(Budget(), lambda: None) == 7
    assert told == [threading.current_thread()]

    def broken(mailbox):
        raise ZeroDivisionError("inside")

    with pytest.raises(ZeroDivisionError, match="inside"):
        OwnThread(broken).wait(Budget(), lambda: None)

    def tells_broken(mailbox):
        mailbox.ask(lambda: 1 / 0)
        return 7

    asked = threading.Event()

    def hears_late(mailbox):
        mailbox.ask(lambda: 1 / 0)
        asked.wait(60.0)
        ended.append(7)

    ended = []
    with pytest.raises(ZeroDivisionError):
        OwnThread(tells_broken).wait(Budget(), lambda: None)
    with pytest.raises(ZeroDivisionError):
        OwnThread(hears_late).wait(Budget(), asked.set, grace=60.0)
    assert ended  # whoever raised there has waited for the end


def test_work_that_does_not_end_is_left_behind(clock):
    over, released = Budget(0.0), threading.Event()

    def end():
        clock.now += 0.4 * GRACE_SECONDS

    assert OwnThread(lambda mailbox: released.wait(60.0)).wait(over, end) is None
    assert clock.now >= GRACE_SECONDS
    released.set()


# --- SCIP --------------------------------------------------------------------------------------------


def in_a_process(program):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.skipif(not FULL, reason="volume: ten seconds of SCIP, and more")
@pytest.mark.parametrize("n", [300, 400, 1000])
def test_thousands_of_squares_do_not_end_the_process(n):
    """SCIP's NLP heuristics aborted ("free(): invalid size") where one of its runs lasted some seconds."""
    found = in_a_process(
        f"""
        import json
        import dovetail as dt
        from benchmarks.made_up import made_up
        method = dt.DualDecomposition(engine="scip", iterations={3 if FULL else 1})
        result = dt.solve(made_up({n}, "2x16").problem, method, time_limit=60, log=False)
        print(json.dumps(result.status))
        """
    )
    assert found in ("feasible", "no_solution")


def test_big_m_frees_its_model_at_once(monkeypatch):
    """Not when the collector comes to it: fifty models kept two hundred megabytes until then."""
    freed = []

    def remembered(*args):
        model = watched_model(*args)
        free = model.free
        model.free = lambda: (freed.append(1), free())
        return model

    monkeypatch.setattr("dovetail_study.big_m.scip_formulation.watched_model", remembered)
    dt.solve(busy(6), "big-m", time_limit=3.0, log=False)
    assert freed == [1]


def test_work_that_has_taken_all_memory_is_waited_for(clock):
    """Only when it has ended is its memory given back; there is time left to wait."""
    heard = threading.Event()

    def end():
        clock.now += 0.4 * GRACE_SECONDS
        if clock.now > 2.0 * GRACE_SECONDS:
            heard.set()

    budget = Budget(600.0, memory=MemoryWatch(1e-6))
    assert OwnThread(lambda mailbox: heard.wait(60.0)).wait(budget, end) is True


# --- memory, threads, files --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["auto", "dual-decomposition"])
def test_a_solve_s_problem_is_free_when_its_result_is(name):
    """Without the collector of cycles, which may come only after hundreds of solves."""

    def living():
        kinds = (Guard, Incumbent, LoadedHighs, Monitor, SolveContext)
        return {id(thing): thing for thing in gc.get_objects() if isinstance(thing, kinds)}

    problem = busy(4)
    gc.collect()
    before = living()
    gc.disable()
    try:
        dt.solve(problem, name, time_limit=0.3, log=False)
        left = [thing for key, thing in living().items() if key not in before]
    finally:
        gc.enable()
    assert not left


@volume("a process and many solves; what one solve leaves is counted above")
@pytest.mark.parametrize("name", METHODS)
def test_nothing_grows_from_solve_to_solve(name):
    """Each solve does the same work, so that the last ones take nothing up that the first ones did not."""
    first, last = 5, 40
    before, after = in_a_process(
        f"""
        import json, os
        import dovetail as dt
        from dovetail.testing.problems import busy
        from tests.conformance.test_methods import brief
        def used():
            pages = int(open("/proc/self/statm").read().split()[1])
            return pages, len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
        problem, method, marks = busy(4), brief({name!r}), []
        for k in range(1, {last} + 1):
            dt.solve(problem, method, log=False)
            if k in ({first}, {last}):
                marks.append(used())
        print(json.dumps(marks))
        """
    )
    assert after[0] < 1.05 * before[0]
    assert after[1] <= before[1] and after[2] <= before[2]  # a thread of the last solve may still be ending
