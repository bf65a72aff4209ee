"""Adam's direction against torch's own optimiser, and its state from one network step to the next."""

import pytest
import torch

import dovetail as dt
from dovetail.nn.projected_gradient import gradient
from dovetail.run.budget import Budget
from dovetail.testing.problems import FEATURES
from dovetail.testing.sub_solver_suite import SAMPLES, augmented_terms, network_block
from tests.small import random_mlp

START = torch.zeros(SAMPLES, FEATURES, dtype=torch.float64)


def by_torch(block, terms, u, steps, lr):
    """The same steps by `torch.optim.Adam`, without a projection."""
    u = u.clone().requires_grad_(True)
    adam = torch.optim.Adam([u], lr=lr)
    for _ in range(steps):
        u.grad = gradient(block, terms, u.detach())[1]
        adam.step()
    return u.detach()


@pytest.mark.parametrize("state", ["fresh", "kept"])
def test_two_network_steps_of_three_steps_each(state):
    """A kept state makes them six steps of one optimiser; a fresh one twice three steps of two."""
    block, terms = network_block(random_mlp(FEATURES), lower=-9.0, upper=9.0), augmented_terms()
    solver = dt.ProjectedGradient(steps=3, lr=0.01, decay=False, keep_best=False, state=state)
    start = torch.zeros_like(block.lower)
    first = solver.solve(block, terms, start, Budget()).u
    second = solver.solve(block, terms, first, Budget()).u
    assert torch.allclose(first, by_torch(block, terms, start, 3, 0.01), atol=1e-9)
    expected = by_torch(block, terms, *((start, 6) if state == "kept" else (first, 3)), 0.01)
    assert torch.allclose(second, expected, atol=1e-9)


def test_a_kept_state_belongs_to_one_solve():
    """The options hold nothing: another block begins anew."""
    solver = dt.ProjectedGradient(steps=2, decay=False, keep_best=False, state="kept")
    ends = [
        solver.solve(network_block(random_mlp(FEATURES)), augmented_terms(), START, Budget()).u
        for _ in range(2)
    ]
    assert torch.equal(*ends)
