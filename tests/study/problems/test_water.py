"""The water problem: the paper's model, real or look-alike data, honest counts."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail_study.problems.water import look_alike, water
from tests.conftest import sample, volume


@pytest.fixture(scope="module")
def instance():
    return water(12, "2x16", seed=1, epochs=15)


def test_it_is_the_papers_model(instance):
    mip = instance.problem.mip
    n, size = 12, 12 * 9
    assert (mip.n_rows, mip.n_columns) == (size + 18, n + 3 * size)
    assert mip.sense == "max"
    assert mip.integer.sum() == n
    assert np.isinf(mip.lower[instance.treated]).all()
    assert mip.row_upper[-18:].tolist() == [2.0] * 18
    # x = w + a - b at a random point
    rng = np.random.default_rng(0)
    up, down = rng.random((n, 9)), rng.random((n, 9))
    x = np.concatenate([np.zeros(n), (instance.samples + up - down).ravel(), up.ravel(), down.ravel()])
    activity = mip.A @ x
    assert activity[:size] == pytest.approx(mip.row_lower[:size])
    assert activity[size : size + 9] == pytest.approx(up.sum(axis=0))
    assert activity[size + 9 :] == pytest.approx(down.sum(axis=0))
    assert mip.row_names[size] == "budget_up[ph]"
    assert mip.names[n] == "x[0,ph]"


def test_samples_are_undrinkable_and_standardised(instance):
    X, labels = look_alike(1)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    bad = {row.tobytes() for row in X[labels == 0]}
    assert all(row.tobytes() in bad for row in instance.samples)


def test_counts_add_up(instance):
    result = dt.solve(instance.problem, log=False)
    counts = instance.counts(result)
    assert counts.samples == 12
    assert counts.potable == result.objective
    with torch.no_grad():
        logits = instance.network(torch.tensor(instance.samples, dtype=torch.float32))
    assert counts.untouched == int((logits >= 0).sum())
    assert counts.potable - counts.untouched <= counts.flipped <= counts.potable
    assert counts.potable > counts.untouched


def test_too_many_samples_are_refused():
    with pytest.raises(dt.OptionError, match="undrinkable samples"):
        water(100_000, "1x4", epochs=1, allow_constant=True)


@pytest.mark.parametrize("kind", sample(["lstm", "conv1d", "residual"]))
def test_other_networks_need_no_other_code(kind):
    instance = water(5, kind, seed=2, epochs=1, allow_constant=True)
    result = dt.solve(instance.problem, dt.DualDecomposition(iterations=3), log=False)
    assert dt.check(instance.problem, result.x).within()


@volume("the study solves instances with budgets per sample")
def test_budgets_per_sample_tie_no_two_samples_together():
    instance = water(4, shared=False, epochs=1, allow_constant=True)
    mip = instance.problem.mip
    assert mip.n_rows == 3 * 4 * 9
    budgets = mip.A.toarray()[4 * 9 :]
    assert (np.count_nonzero(budgets, axis=1) == 1).all()
    assert mip.row_upper[4 * 9 :].tolist() == [2.0] * 72
    assert mip.row_names[4 * 9] == "budget_up[0,ph]"
    generous = dt.solve(instance.problem, "paper", log=False)
    tight = dt.solve(water(4, epochs=1, allow_constant=True).problem, "paper", log=False)
    assert generous.objective >= tight.objective
