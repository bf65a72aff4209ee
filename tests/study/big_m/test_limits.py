"""The baseline's limits: memory while it writes and while SCIP searches, and SCIP's own seconds."""

import threading

import numpy as np
import pytest

import dovetail as dt
from dovetail.mip import own_thread
from dovetail.mip.scip import watched_model
from dovetail.run import memory
from dovetail.run.budget import Budget, StopReason
from dovetail.testing.problems import busy
from dovetail_study.big_m import scip_formulation
from dovetail_study.big_m.scip_formulation import ScipFormulation


@pytest.fixture
def models(monkeypatch):
    """The models that were begun, each with the seconds it may be written in, and how often it was freed."""
    begun = []

    def remembered(scip, budget):
        model = watched_model(scip, budget)
        free = model.free
        model.seconds, model.freed = budget.left, threading.Event()
        model.free = lambda: (free(), model.freed.set())
        begun.append(model)
        return model

    monkeypatch.setattr(scip_formulation, "watched_model", remembered)
    return begun


@pytest.fixture
def machine(monkeypatch):
    """A process that holds so many GB, as the test says."""
    told = {"held": 0.5}
    monkeypatch.setattr(memory, "resident", lambda: told["held"])
    monkeypatch.setattr(memory, "spare", lambda: None)
    monkeypatch.setattr(memory, "LOOK_SECONDS", 0.0)
    return told


def test_out_of_memory_before_anything_is_written(models):
    """Measured, not pretended: a process with numpy and torch in it holds more than ten megabytes."""
    result = dt.solve(busy(3), dt.BigM(memory_limit=0.01), log=False)
    assert result.stop_reason == "memory"
    assert result.status == "feasible"  # the host's own point
    assert "of 0.01 GB while the model was written (BigM(memory_limit=) gives more)" in result.message
    assert "whole it would have" in result.message
    written = result.written
    assert written.end == "memory" and written.memory_gb > 0.01
    assert (written.solving_seconds, written.variables, written.said) == (None, None, None)
    assert all(model.freed.is_set() for model in models)


@pytest.mark.parametrize("when", ["among the columns", "among the neurons"])
def test_out_of_memory_in_the_middle_of_writing(models, machine, monkeypatch, when):
    if when == "among the neurons":
        honest = ScipFormulation.add

        def hungry(self, *args):
            machine["held"] = 1.5
            honest(self, *args)

        monkeypatch.setattr(ScipFormulation, "add", hungry)
    else:
        monkeypatch.setattr(
            scip_formulation, "import_pyscipopt_ml", _then(machine, scip_formulation.import_pyscipopt_ml)
        )
    problem = busy(3)
    known = problem.predict(problem.mip.lower)
    result = dt.solve(problem, dt.BigM(memory_limit=1.0), start=known, log=False)
    assert result.stop_reason == "memory" and result.written.end == "memory"
    assert result.written.solving_seconds is None
    assert np.array_equal(result.x, known)  # the best point so far
    assert "out of memory: 1.50 GB of 1.00 GB while the model was written" in result.message
    assert [model.freed.is_set() for model in models] == [True]


def _then(machine, call):
    """The call, after which the process holds too much."""

    def changed(*args):
        answer = call(*args)
        machine["held"] = 1.5
        return answer

    return changed


def test_out_of_memory_while_scip_searches(models, machine, monkeypatch):
    honest = ScipFormulation.solve

    def hungry(self, *args, **kwargs):
        machine["held"] = 1.5
        return honest(self, *args, **kwargs)

    monkeypatch.setattr(ScipFormulation, "solve", hungry)
    result = dt.solve(busy(40), dt.BigM(memory_limit=1.0, margin=1e-4), time_limit=60.0, log=False)
    written = result.written
    assert result.stop_reason == "memory" and written.end == "memory"
    assert written.solving_seconds is not None and written.variables > 0 and written.memory_gb == 1.5
    assert "out of memory: 1.50 GB of 1.00 GB while SCIP searched" in result.message
    assert [model.freed.is_set() for model in models] == [True]


def test_scip_keeps_to_what_is_left(machine, monkeypatch):
    given = []

    def told(self, *args, memory):
        given.append(memory)
        return "memlimit"

    monkeypatch.setattr(ScipFormulation, "solve", told)
    monkeypatch.setattr(ScipFormulation, "bound", -np.inf)
    result = dt.solve(busy(3), dt.BigM(memory_limit=2.0), log=False)
    assert given == [1.5]
    assert result.stop_reason == "memory" and result.written.end == "memory"


def test_scip_hears_its_own_memory_limit():
    mip = dt.Mip(
        cost=-np.ones(30),
        A=np.ones((1, 30)),
        row_lower=0.0,
        row_upper=7.5,
        lower=0.0,
        upper=1.0,
        integer=True,
    )
    model = ScipFormulation(mip, mip.lower, mip.upper)
    assert model.solve(Budget(60.0), lambda x: None, lambda n: None, memory=1e-9) == "memlimit"
    model.free()


def test_a_model_that_scip_does_not_leave_is_freed_when_it_does(models, monkeypatch):
    monkeypatch.setattr(own_thread, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(scip_formulation, "interrupter", lambda model: lambda: None)
    problem = busy(40)
    mip = problem.mip.minimised()
    model = ScipFormulation(mip, mip.lower, mip.upper)
    block = problem.blocks[0]
    model.add(block.description.layers(), block.inputs, block.outputs, "bigm", 0.5)
    budget = Budget(2.0)
    budget.stop(StopReason.CALLBACK)
    assert model.solve(budget, lambda x: None, lambda n: None) == "abandoned"
    model.free()  # not while SCIP computes
    assert models[0].freed.wait(60.0)


@pytest.mark.parametrize(("asked", "least", "most"), [(7.0, 0.0, 7.0), (None, 1e5, 1e6)])
def test_scip_has_its_own_seconds_and_writing_the_rest(models, monkeypatch, asked, least, most):
    given = []

    def told(self, budget, *args, **kwargs):
        given.append(budget.left)
        return "timelimit"

    monkeypatch.setattr(ScipFormulation, "solve", told)
    monkeypatch.setattr(ScipFormulation, "bound", -np.inf)
    result = dt.solve(busy(3), dt.BigM(solve_seconds=asked), time_limit=1e6, log=False)
    assert least < given[0] <= most
    assert models[0].seconds <= 1e6 - (asked or 0.0)
    assert result.stop_reason == "time" and result.written.end == "time"


def test_writing_leaves_scip_its_seconds():
    result = dt.solve(busy(3), dt.BigM(solve_seconds=60.0), time_limit=60.0, log=False)
    assert result.stop_reason == "time"
    assert result.written.end == "writing" and result.written.solving_seconds is None
    assert "60 s of it are kept for SCIP (solve_seconds); raise time_limit" in result.message
