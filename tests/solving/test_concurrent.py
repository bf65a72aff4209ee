"""`n_jobs=`: the same problem elsewhere with other seeds; problems that cannot go there stay here.

Concurrent solves as whoever waits for them sees them: points, silence, and processes that are gone.
"""

import io
import math
import pickle
import time

import numpy as np
import pytest

import dovetail as dt
from dovetail.core.check import check
from dovetail.methods.auto import _Plan
from dovetail.mip import highs_threads
from dovetail.run.bound import NO_BOUND, Bound, Support
from dovetail.run.budget import StopReason
from dovetail.run.completion import Completion
from dovetail.run.context import MethodOutcome
from dovetail.run.failures import Failure, counted, mark
from dovetail.run.processes import WorkerLost
from dovetail.solving import concurrent
from dovetail.solving.concurrent import ConcurrentSolve, ConcurrentSolves
from dovetail.solving.job import solved_apart
from dovetail.testing.problems import busy
from dovetail_study.zoo import build
from tests.conftest import FULL
from tests.small import knapsack


def waited_for(solve, objective, seconds=300.0):
    """The answer, as soon as there is one."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        x, _ = solve.exchange(objective)
        if x is not None:
            return x
        time.sleep(0.02)
    raise AssertionError("no point")


def test_the_far_side_says_what_is_better_and_nothing_else():
    """Of a problem whose optimum is known by its proof here."""
    problem = knapsack()
    known = dt.solve(problem, log=False)
    assert known.status.value == "optimal"
    there = pickle.loads(pickle.dumps(problem))
    solve = ConcurrentSolve(solved_apart, there, None, dt.Auto(), 1, 2, time.time() + 300.0)
    x = waited_for(solve, math.nan)
    assert check(problem, x).within()
    sign = problem.mip.sign
    best = waited_for(solve, known.objective + sign * 1e-3)
    assert problem.mip.objective(best) == pytest.approx(known.objective)
    x, bound = solve.exchange(known.objective - sign * 1e-3)
    assert x is None and bound.value <= sign * known.objective + 1e-9
    until = time.monotonic() + 300.0
    while bound.support is not Support.PROOF or math.isinf(bound.value):  # until that solve has ended
        assert time.monotonic() < until, "no proof"
        time.sleep(0.02)
        _, bound = solve.exchange(math.nan)
    assert bound.value == pytest.approx(sign * known.objective, abs=1e-6)


def test_what_a_predictor_raises_there_is_told_when_somebody_asks():
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], upper=[3.0, 9.0]))
    problem.add_predictor(lambda X: (X - 1.0) ** 2, inputs=[0], outputs=[1])
    solve = ConcurrentSolve(
        solved_apart, problem, np.zeros(3), dt.Auto(), 1, 2, time.time() + 300.0
    )  # a start too long
    with pytest.raises(dt.DovetailError, match="start"):
        waited_for(solve, math.nan)


def test_a_function_of_the_script_stays_here_and_the_log_says_so(monkeypatch):
    monkeypatch.setattr(concurrent, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr("dovetail.solving.options.cores", lambda: 2)
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], upper=[3.0, 9.0], integer=[True, False]))
    problem.add_predictor(lambda X: (X - 1.0) ** 2, inputs=[0], outputs=[1])
    log = io.StringIO()
    result = dt.solve(problem, n_jobs=2, log=log)
    assert result.objective == 0.0
    assert "cannot be sent to other processes" in " ".join(log.getvalue().split())


@pytest.mark.skipif(not FULL, reason="seconds, for a process to start")
def test_points_of_other_processes_come_through_the_check(monkeypatch):
    """The solve here is kept from finding anything better than its start: what is better came from there."""
    monkeypatch.setattr("dovetail.solving.options.cores", lambda: 2)
    problem = busy(8)

    def idle(self):
        time.sleep(15.0)  # a process takes seconds to start
        return MethodOutcome(StopReason.TIME, 0)

    monkeypatch.setattr(_Plan, "run", idle)
    result = dt.solve(problem, n_jobs=2, log=False)
    assert result.source == "concurrent" and check(problem, result.x).within()


def test_beside_others_one_thread_is_enough_for_all(monkeypatch):
    """HiGHS would start its threads anew with every change of their number: milliseconds for each repair."""
    monkeypatch.setattr(concurrent, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr("dovetail.solving.options.cores", lambda: 2)
    monkeypatch.setattr(concurrent, "process_lines", lambda recipes: [])
    asked, use = [], highs_threads.use

    def watched(threads):
        asked.append(threads)
        use(threads)

    monkeypatch.setattr(highs_threads, "use", watched)
    repairs = Completion._resolve

    def repaired(self, *given):
        asked.append("repair")
        return repairs(self, *given)

    monkeypatch.setattr(Completion, "_resolve", repaired)
    mip = dt.Mip(
        cost=[0.0, 1.0, 1.0], A=[[1.0, 0.0, 1.0]], row_lower=2.0, row_upper=9.0, upper=[3.0, 9.0, 9.0]
    )
    problem = dt.Problem(mip)  # the last column is for repairs
    problem.add_predictor(lambda X: X**2, inputs=[0], outputs=[1])
    result = dt.solve(problem, n_jobs=2, target=1.7505, log=False)
    assert result.objective == pytest.approx(1.75, abs=1e-3)
    assert "repair" in asked
    assert 2 not in asked[asked.index("repair") :]


READY = pickle.dumps((True, (17, "0.1.0")))
POINT = np.array([1.0, 2.0])


class Told:
    """A line whose replies are known before; None is silence, and an exception a process that is gone."""

    def __init__(self, *replies):
        self.replies, self.letters, self.ended = list(replies), [], False

    def begin(self):
        pass

    def send(self, letter):
        self.letters.append(pickle.loads(letter))

    def receive(self, seconds):
        reply = self.replies.pop(0) if self.replies else None
        if isinstance(reply, Exception):
            raise reply
        return reply

    def end(self):
        self.ended = True


def answer(x, bound=NO_BOUND):
    return pickle.dumps((True, [(x, bound)]))


def test_points_come_once_the_process_is_ready_and_only_of_those_who_answer():
    quick, slow, said = (
        Told(READY, answer(POINT), answer(None)),
        Told(None, None, READY, None, answer(POINT)),
        [],
    )
    others = ConcurrentSolves([quick, slow], said.append)
    ((x, _),) = others.exchanged(5.0, None)
    assert x.tolist() == POINT.tolist() and quick.letters == [("exchange", [(5.0, None)])]
    assert others.exchanged(4.0, None) == []
    ((x, _),) = others.exchanged(3.0, None)
    assert [letter[1][0][0] for letter in slow.letters] == [4.0, 3.0]  # it took its time for the first
    assert said == []


def test_a_point_known_here_is_told_once_to_each():
    lines = [Told(READY, *3 * [answer(None)]), Told(*4 * [None], READY, answer(None), answer(None))]
    others = ConcurrentSolves(lines, lambda text: None)
    worse, better = np.array([1.0]), np.array([2.0])
    for x in (worse, worse, better, better):
        others.exchanged(math.nan, x)
    told = [[letter[1][0][1] for letter in line.letters] for line in lines]
    assert [x is not None for x in told[0]] == [True, False, True, False]
    assert told[0][0].tolist() == worse.tolist() and told[0][2].tolist() == better.tolist()
    assert told[1][0].tolist() == better.tolist() and all(x is None for x in told[1][1:])


def test_what_the_others_know_is_offered_there():
    """A problem whose searches take long has, there, the optimum that it is told."""
    problem = knapsack()
    known = dt.solve(problem, log=False)
    seen = []

    def solve(problem, method, *, others, **given):
        while not (news := others.exchanged(math.nan, None)):
            time.sleep(0.01)
        seen.extend(x for x, _ in news)
        assert others.exchanged(math.nan, None) == []
        return known

    there = ConcurrentSolve(solve, problem, None, dt.Auto(), 1, 2, time.time() + 300.0)
    assert there.exchange(math.nan, known.x)[0] is None or seen
    waited_for(there, math.nan)
    assert seen[0].tolist() == known.x.tolist()


def test_a_callback_sees_the_columns_of_the_model():
    """Also where methods work on a form of the problem with others: here outputs become limits on logits."""
    problem = build("recourse", 1, 0)
    seen = []

    def see(event):
        if event.x is not None:
            seen.append(event.x)
            event.stop()

    dt.solve(problem, time_limit=60.0, log=False, callback=see)
    assert seen and check(problem, seen[0]).within()


def test_bounds_come_too():
    bound = Bound(-3.0, "concurrent", support=Support.ENGINE)
    others = ConcurrentSolves([Told(READY, answer(None, bound))], lambda text: None)
    ((x, told),) = others.exchanged(math.nan, None)
    assert x is None and (told.value, told.support) == (-3.0, Support.ENGINE)


def failed(error, *, users):
    if users:
        mark(error)
    return pickle.dumps((False, error))


@pytest.mark.parametrize(
    "reply",
    [WorkerLost("signal 9"), failed(ValueError("a network's own"), users=True)],
    ids=["killed", "failed"],
)
def test_one_that_is_gone_is_one_less(reply):
    gone, there, said = Told(READY, reply), Told(READY, None, answer(POINT)), []
    others = ConcurrentSolves([gone, there], said.append)
    assert [len(others.exchanged(1.0, None)) for _ in range(4)] == [0, 1, 0, 0]
    assert gone.ended and not there.ended
    (text,) = said
    assert "concurrent solve 1 has ended" in text and ("signal 9" in text or "a network's own" in text)
    others.close()
    assert there.ended and others.exchanged(1.0, None) == []


def test_a_fault_of_our_own_there_is_a_failure_here(monkeypatch):
    def asked():
        others = ConcurrentSolves([Told(READY, failed(ValueError("ours"), users=False))], lambda text: None)
        others.exchanged(1.0, None)
        return others.exchanged(1.0, None)

    with pytest.raises(ValueError, match="ours"):
        asked()
    monkeypatch.delenv("DOVETAIL_STRICT")
    with counted(lambda text: None) as failures:
        assert asked() == []
    assert list(failures) == [Failure("concurrent solve 1", "ValueError", "ours")]
