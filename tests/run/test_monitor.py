"""The log says what happens where it happens, and nothing twice; a callback sees it all."""

import io
import math
import subprocess
import sys
from dataclasses import replace

import pytest

import dovetail as dt
from dovetail.run.bound import Bound
from dovetail.run.budget import Budget, StopReason
from dovetail.run.monitor import ALL_ROUNDS, FIRST_SILENCE, PACES, Monitor
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
    assert "rows only: 40" in first and "%" not in first
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
    assert "-- 12.1 s integer search: 0 rounds, no point yet, its time was over" in lines
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
