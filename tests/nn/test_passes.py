"""Gradients of the network step, against differences."""

import torch

from dovetail.nn.projected_gradient import gradient
from dovetail.testing.problems import make
from dovetail.testing.sub_solver_suite import augmented_terms, network_block, step_value


def test_gradient_pass_matches_finite_differences():
    block, pull = network_block(make("gelu-layernorm", dtype=torch.float64)), augmented_terms(stiffness=2.0)
    u = 0.3 * pull.x
    _, slope, _ = gradient(block, pull, u)
    for j in range(5):
        move = torch.zeros_like(u)
        move[:, j] = 1e-6
        numeric = (step_value(block, pull, u + move) - step_value(block, pull, u - move)) / 2e-6
        assert torch.allclose(slope[:, j], numeric, atol=1e-6)
