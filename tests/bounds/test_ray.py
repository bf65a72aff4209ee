"""Unbounded is said only where a direction exists, in exact numbers."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.bounds.safe_lp import improving_ray
from tests.conftest import FULL
from tests.tanh import problem_of, tanh_net

SEEDS = range(2000 if FULL else 15)


def plane(seed):
    """Two columns without upper bounds, rows whose entries may lie many orders of magnitude apart."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 4))
    A = np.round(rng.normal(0, 2, (m, 2)), 1) * 10.0 ** rng.integers(-4, 6, (m, 2))
    A[np.abs(A) < 1e-9] = 0.0
    cost = np.round(rng.normal(0, 2, 2), 1)
    below = rng.random(m) < 0.5
    low, high = np.where(below, -5.0, -np.inf), np.where(below, np.inf, 5.0)
    return dt.Mip(cost, A, low, high, 0.0, np.inf)


def has_ray(mip):
    """Exactly: the cone of directions in the plane is spanned by edges of its half-planes."""
    A = [[Fraction(float(a)) for a in row] for row in mip.A.toarray()]
    limits = [(row, high) for row, high in zip(A, np.isfinite(mip.row_upper), strict=True)]
    normals = [row if high else [-a for a in row] for row, high in limits] + [[-1, 0], [0, -1]]
    cost = [Fraction(float(c)) for c in mip.cost]
    edges = [[s * -n[1], s * n[0]] for n, s in itertools.product(normals, (1, -1))] + [[-c for c in cost]]
    inside = [d for d in edges if all(n[0] * d[0] + n[1] * d[1] <= 0 for n in normals)]
    return any(cost[0] * d[0] + cost[1] * d[1] < 0 for d in inside)


def with_block(mip):
    """The same beside a network on columns of its own, so that the host is not the whole problem."""
    wide = dt.Mip(
        np.append(mip.cost, [0.0, 1.0]), np.hstack([mip.A.toarray(), np.zeros((mip.n_rows, 2))]),
        mip.row_lower, mip.row_upper, [0.0, 0.0, 0.0, -np.inf], [np.inf, np.inf, 1.0, np.inf],
    )  # fmt: skip
    problem = dt.Problem(wide)
    problem.add_predictor(torch.nn.Linear(1, 1, dtype=torch.float64), [2], [3])
    return problem


@pytest.mark.timeout(3600)
def test_unbounded_is_said_only_of_what_is():
    said = true = 0
    for seed in SEEDS:
        mip = plane(seed)
        status = dt.solve(with_block(mip), dt.Auto(effort=1), log=False).status
        truth = has_ray(mip)
        assert truth or status != "unbounded", seed
        assert not truth or status not in ("optimal", "infeasible"), seed
        said, true = said + (status == "unbounded"), true + truth
    assert 0 < 0.8 * true <= said


def test_a_small_entry_is_a_limit_too():
    """The ratio of the row's entries is 2e9: the first column ends what the second may do."""
    problem = dt.Problem(
        dt.Mip(
            [0, 1, 0, 1],
            [[1e9, -0.5, 0, 0]],
            [0],
            [np.inf],
            [0, 0, 0, -np.inf],
            [1, np.inf, 1, np.inf],
            sense="max",
        )
    )
    problem.add_predictor(torch.nn.Linear(1, 1, dtype=torch.float64), [2], [3])
    result = dt.solve(problem, log=False)
    assert result.status != "unbounded"
    assert result.objective == pytest.approx(2e9, rel=1e-6)


def test_a_direction_is_judged_on_the_rows_as_they_are():
    mip = dt.Mip([-1.0, 0.0], [[1e-4, -1e9]], [-np.inf], [0.0], 0.0, [np.inf, 1.0])
    assert not improving_ray(mip, np.array([1.0, 0.0]))
    assert improving_ray(dt.Mip([-1.0, 0.0], [[1e-4, -1e9]], [-1.0], [np.inf]), np.array([1.0, 0.0]))


def test_digits_that_decimals_do_not_have():
    """0.1 * 3 - 0.3 is not 0 in binary, and means 0."""
    mip = dt.Mip([-1.0, -1.0], [[0.1, -0.3]], [0.0], [0.0])
    assert improving_ray(mip, np.array([3.0, 1.0]))


@pytest.mark.parametrize("entry", [1e-9, 1e-8, 1e-3])
def test_a_far_limit_is_a_limit(entry):
    p = problem_of(
        [0.0, 0.0, 1.0, -1000.0, -1000.0],
        [[0, -1, 1, 0, 0], [0, 0, 0, entry, entry], [0, 0, 0, entry, 2 * entry]],
        [0.0, -np.inf, -np.inf],
        [np.inf, 1.0, 1.0],
        lower=[0.0, -np.inf, -np.inf, 0.0, 0.0],
        upper=[1.0, np.inf, np.inf, np.inf, np.inf],
    )
    p.add_predictor(tanh_net(), [0], [1])
    assert dt.solve(p, dt.Auto(effort=1), log=False).status != "unbounded"


@pytest.mark.parametrize("limits", [{}, {"integer": True}, {"lower": -1e30}])
@pytest.mark.parametrize("start", [None, [0.0, 0.0]])
def test_an_unbounded_host_without_predictors(limits, start):
    result = dt.solve(problem_of([-1.0, 0.0], **limits), start=start, log=False)
    assert (result.status, result.stop_reason) == ("unbounded", "proved")
    assert result.objective is None


def test_unbounded_beside_a_predictor_is_proved():
    p = problem_of([0.0, 0.0, -1.0], lower=[0.0, -np.inf, 0.0], upper=[1.0, np.inf, np.inf])
    p.add_predictor(tanh_net(), [0], [1])
    result = dt.solve(p, log=False)
    assert (result.status, result.stop_reason) == ("unbounded", "proved")
    assert dt.check(p, result.x).within()
