"""torch modules that are not quite what a solver would like: in place, scripted, mixed, in train mode.

What a recorded program is carried out in, or why that is not known.

What one evaluation's graph shows: kinks anywhere, the operation at the end.

Modules as programs: the same values, a graph of the same, planes that hold, rounding that is bounded.
"""

import copy
import threading
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.bounds.planes.network_planes import NetworkPlanes, Planes
from dovetail.core.errors import UnsupportedError
from dovetail.networks.arithmetic import FLOAT32, FLOAT64
from dovetail.predictors.torch.module import TorchPredictor, ends_in_sigmoid, is_smooth, program_arithmetic
from tests.bounds.planes.sampling import boxes, outside, points_of, violation
from tests.networks.graph_values import values as of_graph
from tests.predictors.torch.networks import FEATURES, NETWORKS, network
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


def program(name, dtype=torch.float32):
    return TorchPredictor(network(name).to(dtype)).program(FEATURES)


def test_the_coarsest_format_counts():
    assert program("GELU", torch.float64).arithmetic is FLOAT64
    assert program("conv2d").arithmetic is FLOAT32
    found = program_arithmetic(program("GELU"), [torch.float64], "cpu", recurrent=False)
    assert found is FLOAT32  # the inputs are


@pytest.mark.parametrize(("name", "recurrent"), [("conv1d", False), ("lstm", True)])
def test_whole_layers_on_a_gpu_are_not_known(name, recurrent):
    with pytest.raises(UnsupportedError, match="cuDNN"):
        program_arithmetic(program(name), [torch.float32], "cuda", recurrent=recurrent)
    found = program_arithmetic(program(name, torch.float64), [torch.float64], "cuda", recurrent=recurrent)
    assert found is FLOAT64


def test_transforms_on_a_processor_are_not_known(monkeypatch):
    monkeypatch.setattr(torch._C, "_get_nnpack_enabled", lambda: True)
    monkeypatch.setattr(torch._C, "_get_mkldnn_enabled", lambda: False)
    with pytest.raises(UnsupportedError, match="NNPACK"):
        program_arithmetic(program("conv1d"), [torch.float32], "cpu", recurrent=False)
    assert program("GELU").arithmetic is FLOAT32


def graph(*parts):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), *parts)(torch.rand(5, 3, requires_grad=True))


@pytest.mark.parametrize(
    ("parts", "smooth", "sigmoid"),
    [
        ([], True, False),
        ([nn.ReLU()], False, None),
        ([nn.ReLU(), nn.Linear(4, 1)], False, False),
        ([nn.Tanh(), nn.Linear(4, 1), nn.Sigmoid()], True, True),
        ([nn.Tanh(), nn.Linear(4, 1), nn.Sigmoid(), nn.Flatten(0)], True, True),
        ([nn.Hardtanh(), nn.Sigmoid()], False, True),
        ([nn.Softmax(dim=1)], True, None),
    ],
)
def test_smoothness_and_the_end(parts, smooth, sigmoid):
    outputs = graph(*parts)
    assert is_smooth(outputs) == smooth
    assert ends_in_sigmoid(outputs) is sigmoid


def test_a_bias_is_looked_through_and_a_mean_of_sigmoids_is_not():
    values = graph()
    assert ends_in_sigmoid(values @ torch.rand(4, 1) + torch.rand(1)) is False
    assert ends_in_sigmoid(0.5 * torch.sigmoid(values) + 0.5 * torch.sigmoid(2.0 * values)) is None


def test_a_constant_has_no_graph():
    assert is_smooth(torch.ones(2, 1)) and ends_in_sigmoid(torch.ones(2, 1)) is None


def program_of(module):
    return TorchPredictor(module).program(FEATURES)


@cache
def traced(name):
    """A network and its program: most of the time goes into reading it."""
    module = network(name)
    return module, program_of(module)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_program_says_what_the_module_says(name):
    module, program = traced(name)
    X = np.random.default_rng(1).normal(size=(50, FEATURES))
    truth = TorchPredictor(copy.deepcopy(module).double()).predict(X)
    np.testing.assert_allclose(program.values(X), truth, rtol=0, atol=1e-12)
    np.testing.assert_allclose(of_graph(program.graph(), X), truth, rtol=0, atol=1e-12)
    np.testing.assert_allclose(of_graph(program.graph(-0.25), X), truth - 0.25, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NETWORKS)
def test_planes_and_ranges_hold(name):
    graph, rng = traced(name)[1].graph(), np.random.default_rng(2)
    centres = rng.normal(size=(12, FEATURES))
    box = boxes(centres, np.array([0.0, 1e-6, 0.01, 0.1, 0.3, 1.0] * 2)[:, None])
    points = points_of(box, 300, rng)
    assert outside(graph, box, points) <= 1e-12
    planes = NetworkPlanes(graph)
    rows = np.concatenate([np.eye(graph.outputs), -np.eye(graph.outputs)])
    found = planes.planes(torch.tensor(rows), planes.ranges(box))
    values = of_graph(graph, points.reshape(-1, FEATURES)).reshape(12, 300, -1)
    assert violation(found, rows, points, values) <= 1e-12
    if name not in LOOSE:
        assert violation(Planes(found.slopes, found.offset + 1e-5), rows, points, values) > 0.0


LOOSE = frozenset(("layer_norm", "group_norm"))
"""Whose planes touch nowhere, so that a small fault has room."""


@pytest.mark.parametrize("name", NETWORKS)
def test_rounding_is_within_what_is_said(name):
    """At single points, and for whole boxes; and what is said is not endless."""
    (module, program), rng = traced(name), np.random.default_rng(3)
    X = rng.normal(size=(400, FEATURES))
    own = TorchPredictor(module).predict(X)
    low, high, error = program.errors(FLOAT32, X, X)
    exact = program.values(X)
    assert np.all(np.abs(own - exact) <= error)
    assert np.all((low <= exact + 1e-9) & (exact - 1e-9 <= high))
    assert np.all(error < 1e-2)
    _, _, wide = program.errors(FLOAT32, X - 0.01, X + 0.01)
    assert np.all(error <= wide * (1.0 + 1e-9))


def test_the_arithmetic_is_that_of_the_module():
    assert program_of(network("lstm")).arithmetic is FLOAT32
    module = nn.Sequential(nn.Linear(FEATURES, 4), nn.GELU(), nn.Linear(4, 1))
    with torch.autocast("cpu"):
        assert program_of(module).arithmetic is None


class Following(nn.Module):
    def __init__(self, forward):
        super().__init__()
        self.linear, self._forward = nn.Linear(FEATURES, 1), forward

    def forward(self, x):
        return self._forward(self.linear(x))


@pytest.mark.parametrize(
    "forward",
    [
        lambda y: y if y.sum() > 0 else -y,
        lambda y: y * float(y[0, 0]),
        lambda y: y + torch.from_numpy(np.asarray(y.detach().numpy())),
        lambda y: y + y.detach().tolist()[0][0],
        lambda y: y.round(),
        lambda y: torch.where(y > 0.0, y, 0.0),
        lambda y: (y > 0.0).to(y.dtype),
        lambda y: y.sort(dim=1)[0],
        lambda y: y * torch.inf,
    ],
)
def test_what_looks_at_numbers_is_refused(forward):
    with pytest.raises(UnsupportedError, match="Following has no bound"):
        program_of(Following(forward))


def test_the_missing_operation_is_named():
    with pytest.raises(UnsupportedError, match="round"):
        program_of(Following(torch.round))


@pytest.mark.parametrize("kind", ["module", "global", "patched"])
def test_hooks_and_patches_are_followed(kind):
    """A clamp in a hook once gave a false optimum: it is in the program, because the module itself is run."""
    module = nn.Sequential(nn.Linear(FEATURES, 1), nn.GELU())
    handle = None
    if kind == "module":
        module[0].register_forward_hook(lambda part, given, made: made.clamp(-0.1, 0.1))
    elif kind == "global":
        handle = nn.modules.module.register_module_forward_hook(
            lambda part, given, made: made.clamp(-0.1, 0.1)
        )
    else:
        module[0].forward = lambda x: torch.full((len(x), 1), 0.25) + x[:, :1]
    try:
        X = np.random.default_rng(0).normal(size=(20, FEATURES))
        program, truth = program_of(module), TorchPredictor(module).predict(X)
    finally:
        if handle is not None:
            handle.remove()
    np.testing.assert_allclose(program.values(X), truth, atol=1e-6)


def whole_layers():
    """Switches of the whole process, which make layers one operation or many."""
    return torch._C._get_mkldnn_enabled(), torch.backends.mha.get_fastpath_enabled()


@pytest.mark.parametrize("name", ["attention", "transformer", "lstm", "lstm_both_ways", "gru"])
def test_modules_and_torch_are_left_as_they_were(name):
    """Within a recording, too: other threads might look."""
    module, seen = network(name).train(), set()
    module.register_forward_pre_hook(lambda *_: seen.add(whole_layers()))
    program_of(module)
    assert module.training
    assert seen == {whole_layers()}


def test_what_is_changed_in_place_is_changed_for_all_views():
    def forward(y):
        first = y.expand(-1, 3).contiguous()
        second = first[:, 1:]
        second.mul_(2.0)
        first[:, 0].relu_()
        return (first * torch.tensor([1.0, 10.0, 100.0])).sum(dim=1)

    module, X = Following(forward), np.random.default_rng(0).normal(size=(20, FEATURES))
    np.testing.assert_allclose(program_of(module).values(X), TorchPredictor(module).predict(X), rtol=1e-5)
