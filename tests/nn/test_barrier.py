"""The log barrier where there is no interior."""

import pytest
import torch

import dovetail as dt
from dovetail.run.budget import Budget
from dovetail.testing.networks import make
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
