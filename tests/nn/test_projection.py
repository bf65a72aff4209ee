"""Projection on the box and on rows of network outputs."""

import torch

from dovetail.nn.projected_gradient import into_box, project, values_only, violation
from dovetail.testing.problems import make
from dovetail.testing.sub_solver_suite import SAMPLES, augmented_terms, network_block, output_rows
from tests.small import linear_net


def test_the_box_is_an_exact_projection():
    block = network_block(make("mlp"))
    u = 3.0 * augmented_terms().x
    assert torch.equal(into_box(block, u), u.clamp(-1.0, 1.0))


def test_points_that_are_inside_stay():
    block = network_block(make("mlp"), rows=output_rows(-1e3, 1e3))
    u = 0.9 * augmented_terms().x
    assert torch.equal(project(block, u), u)


def test_on_a_linear_network_it_is_the_nearest_point():
    """w'u <= limit has a projection in closed form: u - max(0, w'u - limit) w / |w|^2."""
    w = torch.tensor([1.0, -1.0, 0.5, 0.0, 2.0], dtype=torch.float64)
    block = network_block(linear_net(w.numpy()), rows=output_rows(-torch.inf, 0.1), lower=-50.0, upper=50.0)
    u = augmented_terms().x
    excess = (u @ w - 0.1).clamp(min=0.0)
    exact = u - (excess / (w @ w))[:, None] * w
    assert torch.allclose(project(block, u), exact, atol=1e-9)


def test_rows_on_kinked_and_smooth_networks_are_met():
    for kind in ("mlp", "gelu-layernorm", "attention"):
        net = make(kind)
        values = values_only(network_block(net), augmented_terms(samples=60, seed=4).x)
        low, high = float(values.quantile(0.45)), float(values.quantile(0.55))
        block = network_block(net, rows=output_rows(low, high))
        u = project(block, augmented_terms().x)
        assert torch.all(violation(block, u, values_only(block, u)) < 1e-6), kind
        assert torch.all(u.abs() <= 1.0)


def test_what_cannot_be_met_is_come_near_to():
    block = network_block(make("mlp"), rows=output_rows(1e3, torch.inf))
    start = augmented_terms().x
    before = violation(block, start, values_only(block, start))
    u = project(block, start)
    after = violation(block, u, values_only(block, u))
    assert torch.all(after <= before)
    assert torch.all(after > 0)
    assert after.shape == (SAMPLES,)
