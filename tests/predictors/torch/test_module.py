"""torch modules that are not quite what a solver would like: in place, scripted, mixed, in train mode."""

import threading

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from tests.tanh import problem_of, tanh_net, tanh_problem


class InPlace(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.inner = tanh_net(dtype=dtype)

    def forward(self, x):
        x -= 0.5
        return self.inner(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_module_that_changes_its_input_in_place(dtype):
    p = problem_of([0.1, 1.0], lower=[0.0, -np.inf], upper=[1.0, np.inf])
    p.add_predictor(InPlace(dtype), [0], [1])
    result = dt.solve(p, log=False)
    assert dt.check(p, result.x).within()
    assert dt.check(p, result.x).precision.amount < 1e-5  # NaN if there were no float64 copy


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.head = nn.Linear(1, 4).double(), nn.Linear(4, 1)

    def forward(self, x):
        return self.head(torch.tanh(self.trunk(x)).float())


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
@pytest.mark.parametrize("make", [Mixed, lambda: torch.jit.script(tanh_net()), lambda: nn.Identity()])
def test_unusual_modules_work(make):
    p = problem_of([0.1, 1.0], lower=[-1.0, -np.inf], upper=[1.0, np.inf])
    p.add_predictor(make(), [0], [1])
    assert dt.check(p, dt.solve(p, dt.DualDecomposition(iterations=3), log=False).x).within()


class ThroughNumpy(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return torch.as_tensor(np.sin(x.numpy()))


@pytest.mark.parametrize(
    ("module", "said"), [(ThroughNumpy(), "plain function"), (nn.LazyLinear(1), "no shape yet")]
)
def test_modules_without_gradients_are_refused_kindly(module, said):
    p = problem_of([0.1, 1.0], lower=[-1.0, -np.inf], upper=[1.0, np.inf])
    with pytest.raises(dt.PredictorError, match=said):
        p.add_predictor(module, [0], [1])


class Constant(nn.Module):
    def forward(self, x):
        return torch.ones(len(x), 1)


def test_a_constant_without_a_gradient():
    p = problem_of([1.0, 0.0], lower=[0.0, 0.5], upper=[1.0, 2.0])
    p.add_predictor(Constant(), [0], [1])
    assert dt.solve(p, log=False).objective == pytest.approx(0.0, abs=1e-6)


def test_gradients_switched_off_by_the_caller():
    p, _ = tanh_problem()
    reference = dt.solve(p, log=False)
    with torch.no_grad():
        assert dt.solve(p, log=False).objective == reference.objective
        assert not torch.is_grad_enabled()
        late, _ = tanh_problem()
        assert dt.solve(late, log=False).objective == reference.objective
    with torch.inference_mode():
        assert dt.solve(p, log=False).objective == reference.objective


def test_one_module_in_train_mode_in_two_threads():
    network = nn.Sequential(nn.Linear(1, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 1)).double().train()
    p = problem_of([0.1, 1.0], lower=[-1.0, -np.inf], upper=[1.0, np.inf])
    p.add_predictor(network, [0], [1])
    results = []
    workers = [
        threading.Thread(
            target=lambda: results.append(dt.solve(p, dt.DualDecomposition(iterations=8), log=False))
        )
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [result.status for result in results] == ["feasible", "feasible"]
    assert all(part.training for part in network.modules())
