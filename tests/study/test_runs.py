"""What is planned: cells, seeds, limits, and the runs that depend on the outcome of others."""

from collections import Counter

import pytest

from dovetail_study import EXPERIMENTS
from dovetail_study.bench import experiment_named
from dovetail_study.contestants import BASELINES, CONTESTANTS, seconds
from dovetail_study.experiment import SEEDS, BenchSettings, Run

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


def test_every_contestant_is_somebody_s_and_can_be_made():
    used = {method for name in EXPERIMENTS for method in experiment_named(name).methods}
    assert set(CONTESTANTS) <= used
    assert set(BASELINES) <= set(CONTESTANTS)
    for name, make in CONTESTANTS.items():
        assert make() is not None, name
