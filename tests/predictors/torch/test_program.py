"""Modules as programs: the same values, a graph of the same, planes that hold, rounding that is bounded."""

import copy
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from dovetail.bounds.planes.network_planes import NetworkPlanes, Planes
from dovetail.core.errors import UnsupportedError
from dovetail.networks.arithmetic import FLOAT32
from dovetail.predictors.torch.module import TorchPredictor
from tests.bounds.planes.sampling import boxes, outside, points_of, violation
from tests.networks.graph_values import values as of_graph
from tests.predictors.torch.networks import FEATURES, NETWORKS, network


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
