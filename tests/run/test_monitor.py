"""The log says what happens where it happens, and nothing twice; a callback sees it all.

The ticker: calls while it runs, and none after it was stopped.

What a part brought, in words.
"""

import io
import math
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

import dovetail as dt
from dovetail.report.log.table import State
from dovetail.run.bound import Bound
from dovetail.run.budget import Budget, StopReason
from dovetail.run.monitor import (
    ALL_ROUNDS,
    FIRST_SILENCE,
    PACES,
    Monitor,
    SolvePart,
    Ticker,
    bound_gain,
    incumbent_gain,
)
from tests.conftest import FULL
from tests.contexts import context_of
from tests.small import bowl, knapsack


class Clock(Budget):
    """A budget whose time is set by hand."""

    now = 0.0

    @property
    def seconds(self):
        return self.now


class Incumbent:
    """What a monitor reads of one."""

    objective, proven_bound, rows_only = math.nan, None, False
    incumbents, bounds = (), ()


@pytest.fixture
def watched():
    """A monitor with a part at work, its clock, its incumbent and its log."""
    clock, log, incumbent = Clock(), io.StringIO(), Incumbent()
    monitor = Monitor(clock, log)
    monitor.follow(incumbent)
    with monitor.part("first descents", "why"):
        yield monitor, clock, incumbent, log


def rows_in(log):
    """The rows of the table."""
    return [line for line in log.getvalue().splitlines() if line[:7].strip().replace(".", "").isdigit()]


@pytest.fixture(scope="module")
def row():
    return dt.solve(bowl(), dt.DualDecomposition(iterations=1), log=False).trace[0]


def test_a_row_where_something_changed_and_nowhere_else(watched, row):
    monitor, clock, incumbent, log = watched
    plain = replace(row, residuals=())
    for _ in range(200):
        clock.now += 0.5
        monitor.iteration(plain, None)
    assert rows_in(log) == []
    incumbent.objective = 5.0
    for _ in range(100):
        monitor.iteration(plain, None)
    incumbent.proven_bound = 7.0
    clock.now += 2.0
    for _ in range(100):
        monitor.iteration(plain, None)
    first, second = rows_in(log)
    assert "5" in first.split() and "40.0" in second.split()
    assert len(monitor.trace) == 400


def test_what_was_known_before_a_part_is_told_above_it_and_at_its_own_time():
    """The page says when a point came and by what: the log must not give it to the part that came next."""
    clock, log, incumbent = Clock(), io.StringIO(), Incumbent()
    monitor = Monitor(clock, log)
    clock.now, incumbent.objective = 0.2, 5.4956
    monitor.follow(incumbent)
    clock.now = 2.7
    with monitor.part("template pricing", "why"):
        clock.now, incumbent.objective = 4.9, 37.4
        incumbent.on_change()
    first, second = rows_in(log)
    assert first.split()[:3] == ["0.2", "preparation", "5.4956"]
    assert second.split()[:4] == ["4.9", "template", "pricing", "37.4"]
    said = log.getvalue()
    assert said.index(first) < said.index("-- template pricing: why") < said.index(second)


def test_many_changes_in_a_moment_are_not_all_told(watched):
    monitor, clock, incumbent, log = watched
    for k in range(1000):
        clock.now = 0.001 * k
        incumbent.objective = -float(k)
        incumbent.on_change()
    told = len(rows_in(log))
    assert PACES[0][0] <= told <= PACES[0][0] + 1.0 / PACES[1][1]
    monitor.close()
    assert "-999" in rows_in(log)[-1].split()


def test_what_nobody_can_see_is_no_change(watched):
    monitor, clock, incumbent, log = watched
    for k in range(10):
        clock.now += 10.0
        incumbent.objective, incumbent.proven_bound = 1.0 - 1e-9 * k, 2.0 - 1e-9 * k
        incumbent.on_change()
    monitor.close()
    assert len(rows_in(log)) == 1


def test_a_bound_that_creeps_is_told_once_a_second(watched):
    _, clock, incumbent, log = watched
    incumbent.objective = 1.0
    for k in range(300):
        clock.now = 0.01 * k
        incumbent.proven_bound = 2.0 - 0.001 * k
        incumbent.on_change()
    assert 3 <= len(rows_in(log)) <= 5


def test_the_first_bound_that_has_seen_the_networks_is_told_at_once(watched):
    _, _, incumbent, log = watched
    incumbent.objective, incumbent.proven_bound, incumbent.rows_only = 1.0, 40.0, True
    incumbent.on_change()
    incumbent.proven_bound, incumbent.rows_only = 2.0, False
    incumbent.on_change()
    first, second = rows_in(log)
    assert "MIP only: 40" in first and "%" not in first
    assert "100 %" in second


def test_signs_of_life_come_at_growing_distance(watched):
    monitor, clock, incumbent, log = watched
    incumbent.objective = 1.0
    incumbent.on_change()
    times = []
    for k in range(1, 4000):
        clock.now = 0.1 * k
        before = len(rows_in(log))
        monitor._tick()
        times += [clock.now] * (len(rows_in(log)) - before)
    assert times[:5] == pytest.approx([5.0, 15.0, 35.0, 75.0, 155.0], abs=0.2)
    incumbent.objective = 2.0
    incumbent.on_change()
    at = clock.now
    while len(times) < 7:
        clock.now += 0.1
        before = len(rows_in(log))
        monitor._tick()
        times += [clock.now] * (len(rows_in(log)) - before)
    assert times[-1] - at <= 3.0 * FIRST_SILENCE + 1.0


def test_rounds_that_close_a_residual_are_told_first_all_then_seldom(row):
    log = io.StringIO()
    monitor = Monitor(Budget(), log)
    rounds = [replace(row, iteration=k, elapsed=0.001 * k, source="") for k in range(1, 201)]
    for each in rounds[:150]:
        monitor.iteration(each, None)
    monitor.iteration(replace(rounds[150], source="x"), None)
    for each in rounds[151:]:
        monitor.iteration(replace(each, exact=each.iteration != 180), None)
    assert len(rows_in(log)) == ALL_ROUNDS + 1
    monitor.close()
    assert [line.split()[1] for line in rows_in(log)] == [*map(str, range(1, ALL_ROUNDS + 1)), "151", "200"]
    assert "residual" in log.getvalue() and "rho" in log.getvalue()
    assert log.getvalue().splitlines()[-1].startswith("* 1 MIP step ended at a limit")


def test_parts_say_what_they_brought():
    clock, log, incumbent = Clock(), io.StringIO(), Incumbent()
    monitor = Monitor(clock, log)
    monitor.follow(incumbent)
    with monitor.part("integer search", "many integers") as part:
        clock.now, part.stop_reason = 12.1, StopReason.TIME
    lines = log.getvalue().splitlines()
    assert "-- integer search: many integers" in lines
    assert "-- 12.1 s integer search: 0 rounds, no solution yet, at the time limit" in lines
    assert monitor.part_name == ""


def test_an_interrupt_is_told_once():
    budget, log = Budget(), io.StringIO()
    monitor = Monitor(budget, log)
    budget.stop(StopReason.INTERRUPT)
    monitor._tick()
    monitor._tick()
    assert log.getvalue().count("interrupted") == 1


def test_control_characters_do_not_reach_the_terminal():
    log = io.StringIO()
    Monitor(Budget(), log).say("name \x1b[31mred\x07\nstatus optimal")
    assert log.getvalue() == "name ?[31mred??status optimal\n"


@pytest.mark.skipif(not FULL, reason="volume: a process and its imports")
def test_silence_is_silence():
    program = """
import dovetail as dt, numpy as np, torch
torch.manual_seed(0)
mip = dt.Mip([0, 0, 1], [[1, 1, 0]], -np.inf, np.inf, lower=[0, 0, -np.inf], upper=[1, 1, np.inf])
p = dt.Problem(mip)
p.add_predictor(torch.nn.Linear(2, 1), [0, 1], [2])
dt.solve(p, log=False)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr == ""


def test_silence(capsys):
    dt.solve(knapsack(), log=False)
    assert capsys.readouterr().out == ""


def test_the_bound_is_the_incumbents_whoever_raised_it(row):
    seen, context = [], context_of(knapsack())
    watch = Monitor(Budget(), callback=lambda event: seen.append(event.bound))
    watch.iteration(row, None)
    watch.follow(context.incumbent)
    watch.iteration(row, None)
    context.incumbent.raise_bound(Bound(-7.0))
    context.incumbent.raise_bound(Bound(-9.0))  # is known already
    watch.iteration(row, None)
    assert seen == [None, None, -7.0 * context.problem.mip.sign]


def test_it_ticks_until_it_is_stopped():
    ticks, third = [], threading.Event()

    def tick():
        ticks.append(threading.current_thread())
        if len(ticks) == 3:
            third.set()

    ticker = Ticker(tick, seconds=0.001)
    ticker.start()
    assert third.wait(10.0)
    ticker.stop()
    count = len(ticks)
    ticker.stop()
    assert ticks[0] is not threading.current_thread() and not ticks[0].is_alive()
    assert len(ticks) == count


def test_one_that_never_began_can_be_stopped():
    ticks, before = [], threading.enumerate()
    ticker = Ticker(lambda: ticks.append(None), seconds=0.001)
    ticker.stop()
    assert ticks == [] and threading.enumerate() == before


NOTHING = State(2.0, "", math.nan, None, rows_only=False, evaluations=0)
POINT = replace(NOTHING, incumbent=57.0)
ROWS = replace(POINT, bound=100.0, rows_only=True)
PROVED = replace(POINT, bound=75.0)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (NOTHING, NOTHING, ""),
        (NOTHING, POINT, "first solution 57"),
        (POINT, replace(POINT, incumbent=61.0), "incumbent 57 to 61"),
        (POINT, POINT, ""),
        (POINT, ROWS, ""),
        (ROWS, PROVED, "bound 75"),
        (PROVED, replace(PROVED, bound=75.0 - 1e-9), "bound 75, better in digits not shown"),
        (PROVED, replace(PROVED, bound=70.0, incumbent=60.0), "incumbent 57 to 60, bound 75 to 70"),
    ],
)
def test_gains(before, after, words):
    said = [incumbent_gain(before, after), bound_gain(before, after)]
    assert ", ".join(filter(None, said)) == words


def test_the_first_point_is_the_first():
    assert incumbent_gain(NOTHING, POINT, 80.5) == "first solution 80.5, then 57"
    assert incumbent_gain(NOTHING, POINT, 57.0) == "first solution 57"
    assert incumbent_gain(POINT, replace(POINT, incumbent=61.0), 80.5) == "incumbent 57 to 61"


def turn(part, before, after, rounds):
    return part.add(before, after, rounds)


def test_a_part_that_brought_nothing_says_so():
    part = SolvePart("integer search")
    assert not turn(part, POINT, replace(POINT, elapsed=14.1), 36)
    assert part.summary(POINT) == "12.1 s integer search: 36 rounds, no gain"


def test_a_part_is_not_credited_with_what_others_found_between_its_turns():
    part = SolvePart("branching")
    turn(part, NOTHING, replace(NOTHING, bound=100.0), 1)
    turn(part, replace(POINT, bound=100.0), PROVED, 1)
    assert part.summary(PROVED) == "0.0 s branching: 2 rounds, bound 75"


def test_what_the_method_says_is_told_and_why_it_ended():
    part = SolvePart("branching", note="branching: 12 boxes, closed")
    turn(part, POINT, POINT, 1)
    part.stop_reason = StopReason.PROVED
    assert part.summary(POINT) == "0.0 s branching: 1 round, no gain, gap closed; 12 boxes, closed"


@pytest.mark.parametrize(
    ("now", "words"),
    [(NOTHING, "no solution yet"), (replace(NOTHING, bound=9.0), "bound 9, no solution yet")],
)
def test_a_part_says_that_there_is_no_point_yet(now, words):
    part = SolvePart("descents")
    turn(part, NOTHING, now, 3)
    assert part.summary(now) == f"0.0 s descents: 3 rounds, {words}"


def test_turns_of_a_part_add_up_and_what_others_brought_is_not_its_own():
    part = SolvePart("descents")
    assert turn(part, POINT, replace(POINT, elapsed=3.0, incumbent=60.0), 2)
    others = replace(POINT, elapsed=5.0, incumbent=70.0)
    assert not turn(part, others, replace(others, elapsed=5.5), 1)
    assert part.summary(others) == "1.5 s descents: 3 rounds, incumbent 57 to 60"
