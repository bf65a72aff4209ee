"""Projection on the box and on rows of network outputs."""

import torch

from dovetail.nn.passes import values_only
from dovetail.nn.projection import into_box, project, violation
from tests.conformance import nets
from tests.conformance.test_nn_solvers import N, block_of, output_rows, pull_of
from tests.small import linear_net


def test_the_box_is_an_exact_projection():
    block = block_of(nets.make("mlp"))
    u = 3.0 * pull_of().x
    assert torch.equal(into_box(block, u), u.clamp(-1.0, 1.0))


def test_points_that_are_inside_stay():
    block = block_of(nets.make("mlp"), rows=output_rows(-1e3, 1e3))
    u = 0.9 * pull_of().x
    assert torch.equal(project(block, u), u)


def test_on_a_linear_network_it_is_the_nearest_point():
    """w'u <= limit has a projection in closed form: u - max(0, w'u - limit) w / |w|^2."""
    w = torch.tensor([1.0, -1.0, 0.5, 0.0, 2.0], dtype=torch.float64)
    block = block_of(linear_net(w.numpy()), rows=output_rows(-torch.inf, 0.1), lower=-50.0, upper=50.0)
    u = pull_of().x
    excess = (u @ w - 0.1).clamp(min=0.0)
    exact = u - (excess / (w @ w))[:, None] * w
    assert torch.allclose(project(block, u), exact, atol=1e-9)


def test_rows_on_kinked_and_smooth_networks_are_met():
    for kind in ("mlp", "gelu-layernorm", "attention"):
        net = nets.make(kind)
        values = values_only(block_of(net), pull_of(60, seed=4).x)
        low, high = float(values.quantile(0.45)), float(values.quantile(0.55))
        block = block_of(net, rows=output_rows(low, high))
        u = project(block, pull_of().x)
        assert torch.all(violation(block, u, values_only(block, u)) < 1e-6), kind
        assert torch.all(u.abs() <= 1.0)


def test_what_cannot_be_met_is_come_near_to():
    block = block_of(nets.make("mlp"), rows=output_rows(1e3, torch.inf))
    start = pull_of().x
    before = violation(block, start, values_only(block, start))
    u = project(block, start)
    after = violation(block, u, values_only(block, u))
    assert torch.all(after <= before)
    assert torch.all(after > 0)
    assert after.shape == (N,)
