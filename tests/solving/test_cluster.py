"""cluster=: refused before the solve where it cannot be had, or where nothing would use it."""

from contextlib import nullcontext

import pytest

import dovetail as dt
from dovetail.run import ray_cluster
from dovetail.solving import job
from dovetail.testing.problems import bowl
from tests.run.clusters import SeveralHere
from tests.structure.test_templates import treated


@pytest.mark.parametrize("cluster", [3, "", True, dt])
def test_what_is_no_cluster(cluster):
    with pytest.raises(dt.OptionError, match=r'cluster is .*; give "local"'):
        dt.solve(treated(60), cluster=cluster, log=False)


def test_methods_that_work_in_one_process_say_so():
    with pytest.raises(dt.OptionError, match="dual-decomposition works in one process"):
        dt.solve(treated(60), "dual-decomposition", cluster="local", log=False)


def test_without_ray_the_fix_is_named(monkeypatch):
    monkeypatch.setattr(ray_cluster, "ray", None)
    with pytest.raises(dt.MissingDependencyError, match="pip install ray"):
        dt.solve(treated(60), cluster="local", log=False)


def test_a_problem_with_nothing_to_spread_is_refused(monkeypatch):
    monkeypatch.setattr(job, "opened", lambda cluster, workers: nullcontext(SeveralHere()))
    with pytest.raises(dt.OptionError, match="cannot be distributed"):
        dt.solve(bowl(), cluster="local", log=False)


def test_auto_spreads_blocks_and_says_where(monkeypatch, capsys):
    cluster = SeveralHere()
    monkeypatch.setattr(job, "opened", lambda asked, workers: nullcontext(cluster))
    result = dt.solve(treated(60), cluster="local")
    assert dt.check(treated(60), result.x).within()
    assert len(cluster.hired._objects) == 5
    assert "cluster: five shares in this process" in capsys.readouterr().out
