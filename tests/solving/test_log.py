"""The log of whole solves: within its width for every method, rows only where something changed."""

import io
import itertools
import logging
import threading
from dataclasses import replace

import numpy as np
import pytest

import dovetail as dt
from dovetail.methods import METHODS
from dovetail.report.log.table import cells
from tests.conftest import sample
from tests.report.log.test_layout import HOSTILE
from tests.small import bowl, knapsack, linear_net, random_mlp

PAPER = dt.DualDecomposition.paper()
METHOD_OPTIONS = {
    "dual-decomposition": dt.DualDecomposition(iterations=5),
    "paper": replace(PAPER, iterations=5),
    "paper-adaptive": replace(PAPER, iterations=5, penalty=dt.IncreasingPenalty()),
    "auto": dt.Auto(effort=2),
    "sequential-linear": dt.SequentialLinear(starts=3),
    "integer-search": dt.IntegerLocalSearch(rounds=2),
    "neighbourhood": dt.Neighbourhood(rounds=2),
    "single-step-gradient": dt.SingleStepGradient(iterations=30),
}
"""Shorter than by default."""


def small():
    """Integers, a class and a network whose optimum takes a few steps."""
    mip = dt.Mip(
        cost=[1.0, 1.0, 0.5, -3.0, -0.1],
        A=[[1.0, 1.0, 1.0, 0.0, 0.0]],
        row_lower=0.5,
        row_upper=2.5,
        lower=[0.0, 0.0, 0.0, 0.0, -9.0],
        upper=[1.0, 1.0, 2.0, 1.0, 9.0],
        integer=[True, False, False, False, False],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(3, 1, 4, seed=1), [0, 1, 2], [4], name="strength")
    problem.add_predictor(
        linear_net([1.0, 1.0, 1.0]), [0, 1, 2], [3], output_type="classification", threshold=1.0, name="class"
    )
    return problem


@pytest.fixture(scope="module", params=sample([*METHODS], 4))
def both(request, tmp_path_factory):
    """The log of a method for a terminal of 60 columns, and in a file."""
    name, stream = request.param, io.StringIO()
    file = tmp_path_factory.mktemp("log") / "solve.log"
    method = METHOD_OPTIONS.get(name, name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "60")
        result = dt.solve(small(), method, log=stream, log_file=file)
    return name, stream.getvalue(), file.read_text(encoding="utf-8"), result


def test_every_line_is_within_its_width(both):
    _, narrow, wide, _ = both
    for text, width in ((narrow, 59), (wide, 79)):
        assert text.splitlines()
        assert [line for line in text.splitlines() if cells(line) > width] == []
    assert narrow != wide


def test_it_says_what_is_solved_and_what_came_of_it(both):
    name, _, text, result = both
    for words in ("dovetail ", "problem     ", "network     strength: ", "legend ", "status      ", "work  "):
        assert words in text, words
    assert f"status      {result.status.value}" in text
    if result.x is not None:
        assert "found by" in text and "\u2713 constraints" in text
    if name != "auto":
        begin, end = (line for line in text.splitlines() if line.startswith("-- "))
        assert begin.startswith(f"-- {result.method}") and f" s {result.method}: " in end


def rows_of(text):
    """The rows under each head, split into words, without time and evaluations."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["time"] and "incumbent" in words:
            found.append((words, []))
        elif found and line[:7].strip().replace(".", "").isdigit() and not line[0].isalpha():
            found[-1][1].append(words)
    return found


def test_rows_come_only_where_something_changed(both):
    name, _, text, _ = both
    ((titles, rows),) = rows_of(text)
    assert rows
    if "residual" in titles:
        assert name in ("dual-decomposition", "paper", "paper-adaptive", "single-step-gradient")
        return
    changes = [words[-5:-1] for words in rows]
    assert all(one != other for one, other in itertools.pairwise(changes))


def test_a_bound_that_has_not_seen_the_networks_has_no_gap(both):
    for line in both[2].splitlines():
        if "MIP only: " in line and line[:7].strip().replace(".", "").isdigit():
            assert "%" not in line


# ---- names


def hostile(kind):
    """A problem whose every name is hostile."""
    names = [f"{HOSTILE[k]}[red]{k}" for k in range(4)]
    least = {"optimal": 0.5, "infeasible": 5.0, "no_solution": 1.5}[kind]
    mip = dt.Mip(
        cost=[1.0, 1.0, 1.0, 0.0],
        A=[[0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0]],
        row_lower=[least if kind == "no_solution" else 0.5, least if kind == "infeasible" else 0.0],
        row_upper=[np.inf, 9.0],
        upper=[1.0, 1.0, 1.0, np.inf],
        names=names,
        row_names=[f"{HOSTILE[4]}[/]row", f"{HOSTILE[5]}[b]row"],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([0.4, 0.4, 0.4]), [0, 1, 2], [3], name=f"{HOSTILE[6]}[link=x]net")
    return problem


@pytest.mark.parametrize("kind", ["optimal", "infeasible", "no_solution"])
@pytest.mark.parametrize("columns", ["30", "80"])
def test_hostile_names_do_no_harm(kind, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    log = io.StringIO()
    method = dt.SequentialLinear(starts=2) if kind == "no_solution" else "auto"  # that proves nothing
    result = dt.solve(hostile(kind), method, log=log)
    assert result.status == kind
    lines = log.getvalue().splitlines()
    assert all(line.isprintable() and cells(line) < int(columns) for line in lines)
    assert sum(line.startswith("status") for line in lines) == 1
    assert "[link=x]" in "".join(log.getvalue().split())  # as it is: no markup of ours


# ---- files and logging


def test_a_log_file_is_written_besides_and_added_to(tmp_path):
    file, log = tmp_path / "solve.log", io.StringIO()
    dt.solve(knapsack(), log=log, log_file=file)
    assert file.read_text(encoding="utf-8") == log.getvalue()
    dt.solve(knapsack(), log=False, log_file=str(file))
    assert file.read_text(encoding="utf-8").count("status  ") == 2


def test_a_log_file_that_breaks_loses_nothing(tmp_path, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left")

    monkeypatch.setattr("dovetail.solving.job.open_log_file", lambda path: Full())
    log = io.StringIO()
    result = dt.solve(knapsack(), log=log, log_file=tmp_path / "solve.log")
    assert result.status == "optimal" and "could not be written" in result.message
    assert "status      optimal" in log.getvalue()


def test_the_lines_are_records(caplog):
    log = io.StringIO()
    with caplog.at_level(logging.INFO, "dovetail"):
        dt.solve(knapsack(), log=log)
        assert caplog.records == []  # they are printed
        dt.solve(knapsack(), log=False)
    said = [record.getMessage() for record in caplog.records]
    assert any(line.startswith("status      optimal") for line in said)


def test_the_thread_of_the_log_ends_with_the_solve():
    dt.solve(bowl(), dt.SequentialLinear(starts=1), log=io.StringIO())
    assert not [thread for thread in threading.enumerate() if thread.name == "dovetail-log"]
