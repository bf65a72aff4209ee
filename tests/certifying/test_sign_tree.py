"""Trees over signs of neurons: made from a search, looked at by the checker."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.branching.sign_nodes import Nodes
from dovetail.certificates.checker.verification import verify
from dovetail.certifying import certify as certifying
from dovetail.certifying.sign_tree import SignLeaves, sign_tree, tree_of
from tests.certificates.checker.test_signs import ball, sampled
from tests.certificates.reference import graphs_of, network, problem_of
from tests.conftest import sample


@pytest.mark.parametrize("seed", sample(range(4)))
def test_a_ball_gets_a_certificate_over_signs(seed, monkeypatch):
    monkeypatch.setattr(certifying, "MOST_INPUTS", 0)
    problem, _ = ball(seed)
    best = sampled(problem)[:, -1].min()
    certificate = certifying.certify(problem, best - 0.01, "signs", 600.0)
    found = verify(problem, certificate, graphs_of(problem))
    assert found.holds
    assert best - 0.02 <= found.bound <= best
    wrong = certifying.certify(problem, best + 0.01, "signs", 600.0)
    assert verify(problem, wrong, graphs_of(problem)).bound <= best


def test_other_problems_have_none():
    assert sign_tree(dt.Problem(problem_of(network(1)).mip), 0.0, 1.0) is None


def leaves(signs):
    sign = torch.tensor(signs)
    one, zeros = torch.ones(len(sign)), torch.zeros(sign.shape)
    whole = one.long()
    return SignLeaves(Nodes(whole, one, zeros, zeros, sign, zeros, zeros, whole, one), one)


def test_signs_make_up_a_tree_or_none():
    tree = tree_of(leaves([[1, 1, 0], [1, -1, 0], [-1, 0, 1], [-1, 0, -1]]), 7, 2)
    assert tree.variable[0] == 7
    assert len(tree.variable) == 3
    assert np.sort(tree.children.ravel()).tolist() == [-4, -3, -2, -1, 1, 2]
    assert tree_of(leaves([[1, 0, 0], [0, 1, 0]]), 7, 2) is None
