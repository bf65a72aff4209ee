"""The confirming tree against exact optima."""

import math
from fractions import Fraction

import numpy as np
import pytest

import dovetail as dt
from dovetail.branching.mip_tree import branch_and_bound
from dovetail.run.budget import Budget
from tests.bounds.test_dual_value import relaxed
from tests.conftest import FULL

SEEDS = range(2000 if FULL else 60)


def test_bounds_are_true_and_most_trees_close():
    closed = 0
    for seed in SEEDS:
        mip, best = relaxed(seed)
        proof = branch_and_bound(mip, Budget(20.0), nodes=500)
        assert best is None or Fraction(proof.bound) <= best if math.isfinite(proof.bound) else True
        if best is None:  # or only within rounding of the rows, which the tree may count
            closed += proof.bound == math.inf or proof.x is not None
            continue
        assert proof.bound < math.inf
        closed += proof.x is not None and proof.value <= float(best) + 1e-6 * abs(float(best)) + 1e-9
    assert closed >= 0.97 * len(SEEDS)


@pytest.mark.parametrize("nodes", [1, 2, 3, 5, 9])
def test_a_tree_cut_short_is_true_too(nodes):
    for seed in SEEDS[:40]:
        mip, best = relaxed(seed)
        bound = branch_and_bound(mip, Budget(20.0), nodes=nodes).bound
        assert best is None or bound == -math.inf or Fraction(bound) <= best


def test_a_cutoff_is_not_passed_by():
    """Parts that cannot beat the cutoff are closed at their own bounds, never above them."""
    for seed in SEEDS[:40]:
        mip, best = relaxed(seed)
        if best is not None:
            proof = branch_and_bound(mip, Budget(20.0), cutoff=float(best), slack=1e-3, nodes=500)
            assert Fraction(proof.bound) <= best


def test_the_whole_is_not_bounded_by_half():
    """Every part counts: x in {0, 1}, cost of each known."""
    mip = dt.Mip([-1.0, -1.0], [[2.0, 2.0]], [-np.inf], [3.0], 0.0, 1.0, True)
    proof = branch_and_bound(mip, Budget(10.0), nodes=100)
    assert proof.value == -1.0
    assert proof.bound == pytest.approx(-1.0, abs=1e-9)
