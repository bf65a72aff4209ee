"""What is planned: cells, seeds, limits, and the runs that depend on the outcome of others."""

from collections import Counter
from dataclasses import replace

import pytest

from dovetail_study import EXPERIMENTS
from dovetail_study.contestants import AUTO_LIMIT, BASELINES, CONTESTANTS, seconds
from dovetail_study.run import SEEDS, BenchSettings, Run
from dovetail_study.workers import experiment_named

HELD_OUT = (7, 5, 9001, 3, 11)
"""Seeds that are not the paper's, in no order."""


def planned(name, **settings):
    return experiment_named(name).runs(BenchSettings(**settings))


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("quick", [False, True])
def test_no_run_is_planned_twice_and_every_method_is_announced(name, quick):
    runs = planned(name, quick=quick)
    assert max(Counter(run.key for run in runs).values()) == 1
    assert {run.method for run in runs} <= set(experiment_named(name).methods)


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name != "readings"])
def test_nothing_hangs_on_the_paper_s_seeds(name):
    """With other seeds the plan is the same, seed for seed."""
    other = dict(zip(SEEDS, HELD_OUT, strict=True))
    for mine, theirs in zip(planned(name), planned(name, seeds=HELD_OUT), strict=True):
        assert (theirs.cell, theirs.method, theirs.seed) == (mine.cell, mine.method, other[mine.seed])
        assert (theirs.given is None) == (mine.given is None)
        if theirs.given is not None:
            assert theirs.given.endswith(f"seed={HELD_OUT[0]}")


@pytest.mark.parametrize("name", ["e1", "e2", "e3", "e4", "e5"])
def test_big_m_is_tried_once_everywhere_and_again_where_it_found_a_point(name):
    runs = [run for run in planned(name) if run.method == "big-m"]
    keys = {run.key for run in runs}
    for run in runs:
        assert run.seed in SEEDS[:3]
        if run.seed == SEEDS[0]:
            assert run.given is None
        else:
            assert run.given == Run(name, run.cell, "big-m", SEEDS[0]).key
            assert run.given in keys


@pytest.mark.parametrize(
    ("name", "method", "count"),
    [("e1", "paper", 5), ("e1", "paper-scip", 3), ("e1", "auto", 5), ("e3", "ssg", 5), ("e3", "auto", 5),
     ("e3", "paper-no-dual", 5), ("e2", "auto", 5), ("e4", "auto", 5), ("e5", "paper", 5),
     ("e5", "paper-outputs", 3), ("e5", "paper-scip", 3), ("sensitivity", "paper-balanced", 5)],
)  # fmt: skip
def test_seeds_of_each_method(name, method, count):
    per_cell = Counter(run.cell for run in planned(name) if run.method == method)
    assert set(per_cell.values()) == {count}


def test_cells():
    e1 = planned("e1", methods=("paper",), seeds=(1,))
    assert len(e1) == 2 * 4 * 5 + 1
    assert {run["n"] for run in planned("e1", methods=("paper-scip",))} == {25, 50, 100}
    assert {run["budgets"] for run in planned("e1", methods=("paper-scip",))} == {"total", "per sample"}
    assert len(planned("e3", methods=("paper",), seeds=(1,))) == 2 * 7
    assert len(planned("e2", methods=("paper",), seeds=(1,))) == 2 * 13
    assert len(planned("e5", methods=("big-m",), seeds=(1,))) == 3
    assert not [run for run in planned("e1") if run.method == "big-m-sos"]
    assert planned("e1", methods=("big-m-sos",))


def test_the_paper_s_longer_limits():
    """The headline and tree planting: 900 s of SCIP; the instance of its introduction: two hours in all."""
    long = {(run.experiment, run.times) for name in EXPERIMENTS for run in planned(name) if run.times != 1.0}
    assert long == {("e1", 3.0), ("e5", 3.0)}
    (introduction,) = [run for name in EXPERIMENTS for run in planned(name) if run.whole is not None]
    assert (introduction["network"], introduction["n"], introduction.method) == ("64x512", 500, "big-m")
    for settings in (BenchSettings(), BenchSettings(baseline_limit=30.0, writing_limit=1200.0)):
        assert seconds(introduction, settings) == 2 * 3600.0
    headline = [run for run in planned("e1") if run.times == 3.0]
    assert {(run["network"], run["n"], run.method) for run in headline} == {("6x128", 500, "big-m")}


def test_limits():
    settings = BenchSettings(time_limit=200.0, baseline_limit=30.0, writing_limit=4.0)
    run = Run("e1", (("n", 5),), "paper", 1)
    assert seconds(run, settings) == 200.0
    assert seconds(replace(run, method="auto"), settings) == AUTO_LIMIT
    assert seconds(replace(run, method="auto"), replace(settings, time_limit=2.0)) == 2.0
    assert seconds(replace(run, method="big-m", times=3.0), settings) == 4.0 + 3 * 30.0


def test_every_contestant_is_somebody_s_and_can_be_made():
    used = {method for name in EXPERIMENTS for method in experiment_named(name).methods}
    assert set(CONTESTANTS) <= used
    assert set(BASELINES) <= set(CONTESTANTS)
    for name, make in CONTESTANTS.items():
        assert make() is not None, name
