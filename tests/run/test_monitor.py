"""The log says what happens, line by line, and nothing a name contains reaches the terminal raw."""

import io
import subprocess
import sys
from dataclasses import replace

import dovetail as dt
from dovetail.run.budget import Budget
from dovetail.run.monitor import FULL_LINES, Monitor
from tests.contexts import context_of
from tests.small import bowl, knapsack


def rows(count):
    row = dt.solve(bowl(), dt.DualDecomposition(iterations=1), log=False).trace[0]
    return [replace(row, iteration=k, elapsed=0.001 * k, source="") for k in range(1, count + 1)]


def test_prints_the_first_iterations_and_then_seldom():
    log = io.StringIO()
    watch = Monitor(Budget(), log)
    for row in rows(200):
        watch.iteration(row, None)
    assert len(log.getvalue().splitlines()) == 1 + FULL_LINES
    assert len(watch.trace) == 200


def test_the_last_iteration_and_the_star_are_explained_at_the_end():
    log = io.StringIO()
    watch = Monitor(Budget(), log)
    for row in rows(200):
        watch.iteration(replace(row, exact=row.iteration != 150), None)
    watch.close()
    last, star = log.getvalue().splitlines()[-2:]
    assert last.split()[0] == "200"
    assert star.startswith("  * 1 MIP steps ended at a limit")


def test_prints_every_new_incumbent():
    log = io.StringIO()
    watch = Monitor(Budget(), log)
    for row in rows(100):
        watch.iteration(replace(row, source="x" if row.iteration == 90 else ""), None)
    assert any(line.split()[0] == "90" for line in log.getvalue().splitlines()[1:])


def test_control_characters_do_not_reach_the_terminal():
    log = io.StringIO()
    Monitor(Budget(), log).say("name \x1b[31mred\x07")
    assert log.getvalue() == "name ?[31mred?\n"


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


def test_the_log_of_a_solve():
    log = io.StringIO()
    dt.solve(knapsack(), log=log)
    text = log.getvalue()
    for part in (
        "dovetail",
        "1 rows, 5 columns (4 integer)",
        "price: Linear",
        "incumbent",
        "status",
        "checked",
        "time",
    ):
        assert part in text, part


def test_silence(capsys):
    dt.solve(knapsack(), log=False)
    assert capsys.readouterr().out == ""


def test_the_bound_is_the_incumbents_whoever_raised_it():
    seen, context = [], context_of(knapsack())
    watch = Monitor(Budget(), callback=lambda event: seen.append(event.bound))
    first, second, third = rows(3)
    watch.iteration(first, None)
    watch.follow(context.incumbent)
    watch.iteration(second, None)
    context.incumbent.raise_bound(-7.0)
    context.incumbent.raise_bound(-9.0)  # is known already
    watch.iteration(third, None)
    assert seen == [None, None, -7.0 * context.problem.mip.sign]
