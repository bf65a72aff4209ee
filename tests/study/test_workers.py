"""The order in which runs are made: the longest first, each once what it waits for is known."""

import os
import signal

import pytest

from dovetail_study import bench
from dovetail_study.bench import results
from dovetail_study.experiment import BenchSettings, Run
from tests.conftest import FULL


def run(method, seed=1, given=None, network="2x16"):
    return Run("e1", (("network", network), ("n", 5)), method, seed, given)


class Book:
    """What is done, and whether a point was found."""

    def __init__(self):
        self.found = {}

    def due(self, run):
        return run.key not in self.found and (run.given is None or self.found.get(run.given, False))


def made(planned, jobs=1, found=lambda run: True):
    """The runs in the order in which they began."""
    book, begun = Book(), []
    outcomes = {run.key: run for run in planned}
    for outcome in results(planned, BenchSettings(), book.due, jobs, begun.append):
        book.found[outcome["key"]] = found(outcomes[outcome["key"]])
    return begun


@pytest.fixture
def nothing_is_solved(monkeypatch):
    monkeypatch.setattr(bench, "execute", lambda run, settings: {"key": run.key})


def test_one_at_a_time_they_are_made_as_planned_network_by_network(nothing_is_solved):
    small, large = ([run(method, network=w) for method in ("paper", "big-m")] for w in ("2x16", "4x32"))
    assert made([small[0], large[0], small[1], large[1]]) == [*small, *large]


@pytest.mark.parametrize("found", [True, False])
def test_a_run_that_is_given_for_another_waits_for_it(nothing_is_solved, found):
    first = run("big-m")
    later = run("big-m", 2, first.key)
    planned = [later, run("paper"), first]
    made_first = [run("paper"), first]
    assert made(planned, found=lambda run: found) == ([*made_first, later] if found else made_first)


def test_without_the_run_it_is_given_for_it_is_not_made(nothing_is_solved):
    assert made([run("big-m", 2, run("big-m").key)]) == []


def at_once(work, take, jobs, alone):
    """A pool in which everything is done as soon as it is taken."""
    while taken := [run for run in (take() for _ in range(jobs)) if run is not None]:
        yield from ((run, {"key": run.key}) for run in taken)


def test_several_at_a_time_the_longest_begin(monkeypatch):
    monkeypatch.setattr(bench, "pooled", at_once)
    first = run("big-m")
    planned = [run("paper"), run("auto"), first, run("ssg"), run("big-m", 2, first.key)]
    order = [begun.method for begun in made(planned, jobs=2)]
    assert order == ["big-m", "auto", "big-m", "paper", "ssg"]


def killed(run, settings):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not FULL, reason="volume: a process and its imports")
def test_a_baseline_that_is_killed_takes_no_other_run_with_it(monkeypatch):
    monkeypatch.setattr(bench, "execute", killed)
    (said,) = results([run("big-m")], BenchSettings(), lambda run: True, 2, lambda run: None)
    assert "its process was killed" in said and "--memory-limit" in said
