"""Ray: the same answers, lost actors replaced, what is not ours left running; errors that name the fix."""

import os
import secrets
import signal
from functools import partial

import pytest

import dovetail as dt
from dovetail.decomposition import TemplatePricing
from dovetail.run import ray_cluster as module
from dovetail.run.budget import Budget
from dovetail.run.ray_cluster import ray_cluster
from tests.structure.test_templates import treated

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install ray")


@pytest.fixture(scope="module")
def started():
    """A Ray of the caller's own, with two CPUs; its token is nobody else's and is written nowhere."""
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    with ray_cluster("local", 2) as cluster:
        assert cluster.own
        yield ray
    assert not ray.is_initialized()


@pytest.fixture
def cluster(started):
    with ray_cluster(started, 2) as found:
        yield found


def test_it_listens_to_this_machine_only(started):
    assert {node["NodeManagerAddress"] for node in started.nodes()} == {"127.0.0.1"}


def test_actors_answer_and_one_that_is_killed_comes_back(cluster):
    assert not cluster.own
    crew = cluster.hire([[list, list], [partial(list, (1,))]], on_gpu=False, budget=Budget(60.0))
    crew.renew_by("append", [(9,)] * 3)
    assert crew.ask("__len__", [()] * 3, Budget(60.0)) == [0, 0, 1]
    os.kill(crew.pids[1], signal.SIGKILL)
    assert crew.ask("__len__", [()] * 3, Budget(60.0)) == [0, 0, 2]
    assert crew.losses == 1
    crew.close()


def test_a_solve_on_it_has_the_answer_of_one_process_and_leaves_it_running(started):
    """What a script defines itself travels as well."""
    problem = treated(120, budget=0.02)
    hidden = problem.blocks[0]
    local = dt.Problem(problem.mip)
    local.add_predictor(
        lambda X: hidden.predictor.predict(X), hidden.inputs, hidden.outputs, output_type="classification"
    )
    for posed in (problem, local):
        rounds = 8 if posed is problem else 1
        alone = dt.solve(posed, TemplatePricing(rounds=rounds), log=False)
        apart = dt.solve(posed, TemplatePricing(rounds=rounds), log=False, cluster=started, n_jobs=2)
        assert started.is_initialized()
        assert dt.check(posed, apart.x).within()
        assert apart.objective == pytest.approx(alone.objective, rel=1e-3)


def test_more_workers_than_cpus_are_refused(started):
    with (
        pytest.raises(dt.OptionError, match=r"n_jobs is 3, and the cluster has 2 CPUs; give n_jobs=2"),
        ray_cluster(started, 3),
    ):
        pass


def test_an_address_that_is_not_ours_is_refused_while_there_is_a_ray(started):
    with (
        pytest.raises(dt.OptionError, match=r"already; give that, or call ray\.shutdown"),
        ray_cluster("h:1", 1),
    ):
        pass


def test_another_dovetail_there_is_refused(started, monkeypatch):
    monkeypatch.setattr(module, "__version__", "0.0.0")
    with (
        pytest.raises(dt.OptionError, match=r"has dovetail .*, and this process 0\.0\.0"),
        ray_cluster("auto", 1),
    ):
        pass


@pytest.fixture
def alone(monkeypatch):
    """No Ray in this process, whatever other tests have started."""
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    return monkeypatch


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("127.0.0.1:9", "no Ray answers there .*ray start --head"),
        ("nowhere", 'give "local", "auto", the address'),
        ("ray://127.0.0.1:10001", 'give "local", "auto", the address'),
        (ray, "not started; call ray.init"),
    ],
)
@pytest.mark.usefixtures("alone")
def test_clusters_that_are_not_there(where, said):
    with pytest.raises(dt.OptionError, match=said), ray_cluster(where, 1):
        pass


def test_versions_that_differ_are_named(alone):
    def refuse(**options):
        raise RuntimeError("Version mismatch: The cluster was started with: Ray: 2.1.0\n Python: 3.9.1.")

    before = signal.getsignal(signal.SIGTERM), os.environ.get("RAY_USAGE_STATS_ENABLED")
    alone.setattr(ray, "init", refuse)
    said = r"Ray: 2\.1\.0 Python: 3\.9\.1.*Install the same Ray and Python"
    with pytest.raises(dt.OptionError, match=said), ray_cluster("auto", 1):
        pass
    assert (signal.getsignal(signal.SIGTERM), os.environ.get("RAY_USAGE_STATS_ENABLED")) == before
