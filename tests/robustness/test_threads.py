"""Solves in several threads at once leave nothing for others to see: dtype, threads, seeds, handlers."""

import importlib
import itertools
import random
import signal
import threading
import warnings

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info
from torch import nn

import dovetail as dt
from dovetail.predictors.torch.module import TorchPredictor
from dovetail.run.environment import cores, threads
from dovetail.testing.problems import busy
from tests.conftest import FULL
from tests.small import knapsack


class MakesItsOwn(nn.Module):
    """A network whose code makes floats of nothing and of whole numbers, in whatever dtype is the default."""

    def __init__(self, seed=0):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.first, self.cell, self.last = nn.Linear(3, 4), nn.LSTMCell(4, 5), nn.Linear(5, 1)

    def forward(self, x):
        state = torch.zeros(len(x), 5), torch.zeros(len(x), 5)
        whole = torch.arange(4)
        made = (
            whole / 3 + torch.linspace(0, 1, 4) + torch.full((4,), 0.3) + torch.sigmoid(whole) + whole * 0.1
        )
        listed = whole * 0.1 + torch.tensor(0.1) + torch.tensor([0.7, 1, 2, 3]) + torch.eye(4)[0]
        values = self.first(x) + made + listed + torch.arange(0, 0.4, 0.1)[:4]
        for _ in range(2):
            state = self.cell(values, state)
        return self.last(torch.stack(state).sum(0))


def seen():
    """What anybody in the process can see."""
    return {
        "dtype": torch.get_default_dtype(),
        "layer": torch.empty(2).dtype,
        "threads": torch.get_num_threads(),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "cudnn": (torch.backends.cudnn.enabled, torch.backends.cudnn.allow_tf32),
        "whole layers": (torch._C._get_mkldnn_enabled(), torch.backends.mha.get_fastpath_enabled()),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "torch's chance": torch.get_rng_state().numpy().tobytes(),
        "numpy's chance": np.random.get_state()[1].tobytes(),  # noqa: NPY002
        "Python's chance": random.getstate(),
        "numpy's errors": np.geterr(),
        "warnings": list(warnings.filters),
        "handlers": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "pools": sorted((p["filepath"], p["num_threads"]) for p in threadpool_info()),
    }


def problem_of(k):
    if k % 2:
        return busy(6, seed=k)
    mip = dt.Mip([0.0, 0.0, 0.0, 1.0], lower=[-1.0, -1.0, -1.0, -np.inf], upper=[1.0, 1.0, 1.0, np.inf])
    problem = dt.Problem(mip)
    problem.add_predictor(MakesItsOwn(k), [0, 1, 2], [3])
    return problem


def test_nobody_sees_four_solves_at_once():
    methods = ("auto", "dual-decomposition", "sequential-linear", "big-m")
    problems = [busy(6, seed=k) if method == "big-m" else problem_of(k) for k, method in enumerate(methods)]
    importlib.import_module("sympy")  # torch brings it when it is needed, and it adds a filter of warnings
    before, results, ended, enough = seen(), [], [], threading.Event()

    def work(k):
        for seed in itertools.count():
            result = dt.solve(problems[k], methods[k], time_limit=0.8, seed=seed, n_jobs=1 + k % 2, log=False)
            results.append(result.x is None or dt.check(problems[k], result.x).within())
            if enough.is_set():
                break
        ended.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(200 if FULL else 12):
            assert seen() == before
            newcomer = []
            other = threading.Thread(target=lambda into=newcomer: into.append(torch.get_num_threads()))
            other.start()
            other.join()
            assert newcomer == [torch.get_num_threads()]
    finally:
        enough.set()
        for worker in workers:
            worker.join()
    assert sorted(ended) == [0, 1, 2, 3]
    assert all(results)
    assert seen() == before


def test_a_solve_on_the_main_thread_leaves_everything_as_it_was():
    before = seen()
    dt.solve(problem_of(0), time_limit=1.0, log=False)
    assert seen() == before


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_floats_made_by_code_are_those_of_a_float64_network(dtype):
    """Against the same network in a process's float64 default, which nobody but this test sets."""
    module = MakesItsOwn().to(dtype)
    predictor = TorchPredictor(module)
    X = np.random.default_rng(0).uniform(-1, 1, (6, 3))
    assert predictor.describe(X).has_float64_copy
    ours = predictor.snapshot("cpu")(torch.tensor(X))
    torch.set_default_dtype(torch.float64)
    try:
        truth = MakesItsOwn().to(torch.float64)
        truth.load_state_dict({name: value.double() for name, value in module.state_dict().items()})
        expected = truth(torch.tensor(X))
    finally:
        torch.set_default_dtype(torch.float32)
    assert ours.dtype == torch.float64
    assert torch.equal(ours, expected)


def test_a_branch_that_no_probe_took():
    class Branching(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(1, 1)

        def forward(self, x):
            return self.layer(x) if float(x.max()) < 0.9 else self.layer(x) + x @ torch.ones(1, 1)

    predictor = TorchPredictor(Branching())
    predictor.describe(np.zeros((4, 1)))
    forward = predictor.snapshot("cpu")
    low, high = forward(torch.tensor([[0.0]])), forward(torch.tensor([[1.0]]))
    weight = predictor.module.layer.weight.item()
    assert float(high - low) == pytest.approx(1.0 + weight, abs=1e-6)


def test_threads_are_those_of_the_thread_that_asked():
    others = []
    with threads(1):
        assert torch.get_num_threads() == 1
        other = threading.Thread(target=lambda: others.append(torch.get_num_threads()))
        other.start()
        other.join()
    assert others == [torch.get_num_threads()]


def test_more_jobs_than_cores(capsys):
    result = dt.solve(knapsack(), n_jobs=10_000)
    assert result.status == "optimal"
    assert f"10000 threads were requested; {cores()} are used" in capsys.readouterr().out
