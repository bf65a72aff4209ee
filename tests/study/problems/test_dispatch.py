"""Dispatching: the model in plain numpy, and all assignments of a small instance."""

import itertools

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail_study.problems.dispatch import dispatch
from tests.conftest import FULL


@pytest.fixture(scope="module")
def pair():
    return dispatch(8, 2, seed=1, epochs=15)


@pytest.fixture(scope="module")
def ring():
    return dispatch(15, 5, "1x4", rows=200, seed=1, epochs=10)


def a_point(instance, machine_of):
    """The whole point of an assignment, by loops and torch alone."""
    jobs, machines = instance.assigned.shape
    own = np.zeros(machines)
    for j, m in enumerate(machine_of):
        own[m] += instance.weights[j] / (jobs // machines)
    x = np.zeros(instance.problem.mip.n_columns)
    x[instance.assigned[np.arange(jobs), machine_of]] = 1.0
    for m in range(machines):
        near = {(m - 1) % machines, (m + 1) % machines} - {m}
        far = set(range(machines)) - near - {m} or near
        inputs = [own[m], np.mean([own[k] for k in near]), np.mean([own[k] for k in far])]
        x[instance.loads[m]] = inputs
        with torch.no_grad():
            x[instance.efficiency[m]] = float(instance.networks[m](torch.tensor([inputs]))[0, 0])
    x[instance.smallest] = x[instance.efficiency].min()
    return x


def assignments(jobs, machines):
    """Every way to give each machine as many jobs as the next."""
    every = itertools.product(range(machines), repeat=jobs)
    return [c for c in every if all(c.count(m) == jobs // machines for m in range(machines))]


@pytest.mark.parametrize("name", ["pair", "ring"])
def test_the_rows_say_what_the_docstring_says(name, request):
    instance = request.getfixturevalue(name)
    jobs, machines = instance.assigned.shape
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = a_point(instance, rng.permutation(jobs) % machines)
        assert dt.check(instance.problem, x).within(1e-9)
        assert instance.problem.mip.objective(x) == x[instance.efficiency].min()
    machine_of = np.arange(jobs) % machines
    machine_of[0] = 1
    assert dt.check(instance.problem, a_point(instance, machine_of)).rows.name.startswith("share[")
    x = a_point(instance, np.arange(jobs) % machines)
    x[instance.smallest] += 0.1
    assert dt.check(instance.problem, x).rows.amount == pytest.approx(0.1)
    assert dt.check(instance.problem, x).rows.name.startswith("smallest[")
    x[instance.loads[1, 2]] += 0.05
    assert dt.check(instance.problem, x).prediction.amount > 0


def test_auto_finds_what_enumeration_finds(pair):
    best = max(a_point(pair, np.array(c))[pair.smallest] for c in assignments(8, 2))
    result = dt.solve(pair.problem, method="auto", log=False)
    assert dt.check(pair.problem, result.x).within()
    assert result.objective == pytest.approx(best, abs=1e-5)


def enough(event):
    if event.x is not None:
        event.stop()


def test_four_machines_have_someone_else():
    jobs, ways = (8, 2520) if FULL else (4, 24)
    instance = dispatch(jobs, 4, "1x4", rows=200, seed=2, epochs=10)
    every = assignments(jobs, 4)
    assert len(every) == ways
    best = max(a_point(instance, np.array(c))[instance.smallest] for c in every)
    result = dt.solve(instance.problem, callback=enough, log=False)
    assert dt.check(instance.problem, result.x).within()
    assert result.objective <= best + 1e-5


def test_every_load_is_within_its_bounds(ring):
    """The bounds are reached: by the lightest and by the heaviest jobs together."""
    mip = ring.problem.mip
    order = np.argsort(ring.weights)
    machine_of = np.empty(15, dtype=int)
    machine_of[order] = np.repeat(np.arange(5), 3)
    x = a_point(ring, machine_of)
    assert x[ring.loads[0, 0]] == pytest.approx(mip.lower[ring.loads[0, 0]])
    assert x[ring.loads[4, 0]] == pytest.approx(mip.upper[ring.loads[4, 0]])


def test_the_default_size():
    instance = dispatch(rows=20, epochs=1, allow_constant=True)
    mip = instance.problem.mip
    assert mip.integer.sum() == 5760
    assert mip.n_rows == 240 + 5 * 24 and mip.n_columns == 5760 + 4 * 24 + 1
    assert len(instance.problem.blocks) == 24
    assert dt.check(instance.problem, a_point(instance, np.arange(240) % 24)).within(1e-9)


@pytest.mark.parametrize(("jobs", "machines"), [(8, 1), (9, 2), (1, 2), (0, 2)])
def test_bad_sizes_are_refused(jobs, machines):
    with pytest.raises(dt.OptionError, match="share equally"):
        dispatch(jobs, machines)
    with pytest.raises(dt.OptionError, match="rows is 3"):
        dispatch(8, 2, rows=3)
