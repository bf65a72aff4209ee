"""The log barrier where there is no interior.

The barrier's slopes and curvature, against differences.
"""

import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.nn.barrier import Barrier
from dovetail.run.budget import Budget
from dovetail.testing.problems import make
from dovetail.testing.sub_solver_suite import SAMPLES, augmented_terms, network_block, output_rows


@pytest.mark.parametrize("variant", ["newton-cg", "l-bfgs-b"])
def test_equalities_are_refused_by_name(variant):
    block = network_block(make("mlp"), rows=output_rows(0.1, 0.1))
    assert "limit is an equality" in dt.LogBarrier(variant=variant).refuses(block)


def test_no_interior_is_said():
    block, terms = network_block(make("mlp"), rows=output_rows(1e6, torch.inf)), augmented_terms()
    assert "no interior point" in dt.LogBarrier().solve(block, terms, terms.x.clone(), Budget()).note


def test_some_samples_without_an_interior_do_not_stop_the_others():
    net = make("mlp")
    rows = output_rows(-torch.inf, 100.0)
    rows.upper[2, 0] = -1e6
    block = network_block(net, rows=rows)
    answer = dt.LogBarrier().solve(block, augmented_terms(), augmented_terms().x.clone(), Budget())
    assert "1 samples" in answer.note
    assert torch.all(answer.violation[torch.arange(SAMPLES) != 2] == 0.0)


def test_the_barrier_s_curvature_is_right():
    """Exact products on a smooth network against differences of the gradient."""
    net = make("gelu-layernorm", dtype=torch.float64)
    block, pull = network_block(net, rows=output_rows(-50.0, 50.0)), augmented_terms(stiffness=1.0)
    barrier = Barrier(block, pull)
    u = 0.5 * pull.x
    direction = augmented_terms(seed=5).x
    slope, product = barrier.expand(u, 0.1)
    step = 1e-6
    ahead, _ = barrier.expand(u + step * direction, 0.1)
    behind, _ = barrier.expand(u - step * direction, 0.1)
    assert torch.allclose(product(direction), (ahead - behind) / (2 * step), atol=1e-5)
    numeric = torch.zeros_like(u)
    for j in range(5):
        move = torch.zeros_like(u)
        move[:, j] = step
        numeric[:, j] = (barrier.value(u + move, 0.1) - barrier.value(u - move, 0.1)) / (2 * step)
    assert torch.allclose(slope, numeric, atol=1e-5)


@pytest.mark.parametrize("classes", [1, 3])
def test_gauss_newton_slopes_are_right(classes):
    """The hand-written first derivatives of the barrier on a ReLU network, through the class surrogate."""
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, classes)).double()
    block = network_block(net, classifies=True, outputs=classes)
    pull = augmented_terms(outputs=classes, stiffness=0.7)
    barrier = Barrier(block, pull)
    assert not block.smooth
    u = 0.5 * pull.x
    slope, _ = barrier.expand(u, 0.05)
    step = 1e-7
    for j in range(5):
        move = torch.zeros_like(u)
        move[:, j] = step
        numeric = (barrier.value(u + move, 0.05) - barrier.value(u - move, 0.05)) / (2 * step)
        assert torch.allclose(slope[:, j], numeric, atol=1e-5)
