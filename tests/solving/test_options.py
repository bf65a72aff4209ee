"""Options of `solve` are refused before any work, by name."""

import io
import math

import numpy as np
import pytest
import torch

import dovetail as dt
from tests.small import bowl, knapsack


@pytest.mark.parametrize(
    ("options", "error", "culprit"),
    [
        ({"method": "simulated-annealing"}, dt.OptionError, "'simulated-annealing' is not known"),
        ({"method": 7}, dt.OptionError, "method is 7"),
        ({"time_limit": -1.0}, dt.OptionError, "time_limit .* is -1"),
        ({"time_limit": float("nan")}, dt.OptionError, "time_limit .* is nan"),
        ({"n_jobs": 0}, dt.OptionError, "n_jobs is 0.*-1 for one per core"),
        ({"device": "cuda:77"}, dt.OptionError, "device 'cuda:77' cannot be used"),
        ({"device": "toaster"}, dt.OptionError, "device 'toaster' cannot be used"),
        ({"method": dt.DualDecomposition(engine="piqp")}, dt.UnsupportedError, "a is integer"),
        ({"seed": -1}, dt.OptionError, "seed is -1"),
        ({"seed": 1.5}, dt.OptionError, "seed is 1.5"),
        ({"gap": 5}, dt.OptionError, "gap .* is 5, which would be 500 %; .* 0.05 is 5 %"),
        ({"gap": 1.0}, dt.OptionError, "gap .* is 1.0, which would be 100 %"),
        ({"gap": -0.1}, dt.OptionError, "gap .* is -0.1; give a finite number >= 0"),
        ({"time_limit": "10"}, dt.OptionError, "time_limit .* is '10'"),
        ({"n_jobs": 2.5}, dt.OptionError, "n_jobs is 2.5"),
        ({"callback": 3}, dt.OptionError, "callback is 3"),
        ({"log": "x.log"}, dt.OptionError, "log is 'x.log'"),
        ({"device": "meta"}, dt.OptionError, "device 'meta' cannot be used"),
        ({"method": dt.DualDecomposition}, dt.OptionError, "method is <class"),
        ({"method": dt.LogBarrier}, dt.OptionError, "method is <class"),
    ],
)
def test_refuses_before_any_work(options, error, culprit):
    with pytest.raises(error, match=culprit):
        dt.solve(knapsack(), **{"log": False, **options})


@pytest.mark.parametrize("none", [None, math.inf, np.inf])
@pytest.mark.parametrize("jobs", [1, 2])
def test_no_time_limit(none, jobs):
    """It ends by its iterations, and the settings say how to ask for it again."""
    log = io.StringIO()
    method = dt.DualDecomposition(iterations=1)
    result = dt.solve(bowl(), method, time_limit=none, n_jobs=jobs, log=log)
    assert "no time limit" in log.getvalue()
    assert "time_limit=None" in result.settings.call
    assert result.x is not None


@pytest.mark.parametrize("device", [torch.device("cpu"), b"cpu"])
def test_a_device_is_known_by_its_name(device):
    """Whatever torch takes for one: a file can hold the name."""
    result = dt.solve(bowl(), dt.DualDecomposition(iterations=1), device=device, log=False)
    assert result.settings is not None and result.settings.options["device"] == "'cpu'"


def test_a_missing_engine_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyscipopt", None)
    with pytest.raises(dt.MissingDependencyError, match="pip install pyscipopt"):
        dt.solve(knapsack(), dt.DualDecomposition(engine="scip"), log=False)


def test_n_jobs_is_given_back():
    before = torch.get_num_threads()
    dt.solve(bowl(), dt.DualDecomposition(iterations=1), n_jobs=2, log=False)
    assert torch.get_num_threads() == before
