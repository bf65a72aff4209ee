"""Local search over integers: neighbours completed by rows and networks, judged by the networks."""

import itertools

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.methods.integer_search.local_search import LocalSearch
from tests.conftest import FULL
from tests.contexts import context_of
from tests.small import random_mlp


def configurations(groups=3, per=4, seed=0):
    """One choice per group decides two features; price from the features, sales from features and price."""
    rng = np.random.default_rng(seed)
    count, d = groups * per, 2
    columns = count + d + 2
    worth = rng.normal(size=(count, d))
    rows, side = [], []
    for g in range(groups):
        row = np.zeros(columns)
        row[g * per : (g + 1) * per] = 1.0
        rows.append(row)
        side.append((1.0, 1.0))
    for j in range(d):
        row = np.zeros(columns)
        row[:count], row[count + j] = -worth[:, j], 1.0
        rows.append(row)
        side.append((0.0, 0.0))
    row = np.zeros(columns)
    row[0] = row[per] = 1.0  # two options exclude each other
    rows.append(row)
    side.append((-np.inf, 1.0))
    low, high = np.array(side).T
    wide = np.full(d + 2, 50.0)
    mip = dt.Mip(
        cost=np.concatenate([rng.uniform(0, 0.2, count), np.zeros(d), [1.0, -1.5]]),
        A=np.array(rows), row_lower=low, row_upper=high,
        lower=np.concatenate([np.zeros(count), -wide]), upper=np.concatenate([np.ones(count), wide]),
        integer=np.concatenate([np.ones(count, bool), np.zeros(d + 2, bool)]),
    )  # fmt: skip
    problem = dt.Problem(mip)
    features = count + np.arange(d)
    problem.add_predictor(random_mlp(2, seed=seed), features, [count + d], name="price")
    problem.add_predictor(random_mlp(3, seed=seed + 1), [*features, count + d], [count + d + 1], name="sales")
    return problem, groups, per


def enumerated(problem, groups, per):
    """The best configuration of all."""
    best = np.inf
    count = groups * per
    for picks in itertools.product(range(per), repeat=groups):
        x = np.zeros(problem.mip.n_columns)
        x[[g * per + k for g, k in enumerate(picks)]] = 1.0
        for j in range(2):
            row = problem.mip.A[[groups + j]].toarray()[0]
            x[count + j] = -(row[:count] @ x[:count])
        x = problem.predict(x)
        if dt.check(problem, x).within():
            best = min(best, problem.mip.objective(x))
    return best


@pytest.mark.parametrize("seed", range(4 if FULL else 1))
def test_it_finds_the_best_configuration(seed):
    problem, groups, per = configurations(seed=seed)
    result = dt.solve(problem, dt.IntegerLocalSearch(rounds=3), log=False)
    assert dt.check(problem, result.x).within()
    assert result.objective == pytest.approx(enumerated(problem, groups, per), abs=1e-6)


def test_an_assignment_trades_places_and_keeps_both_sums():
    """Jobs on machines: a binary is in a job's choice and in a machine's; only fourfold moves keep both."""
    jobs, machines = 6, 3
    size = jobs * machines
    A = np.zeros((jobs + machines + machines, size + 2 * machines))
    for j in range(jobs):
        A[j, j * machines : (j + 1) * machines] = 1.0
    weights = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    for m in range(machines):
        A[jobs + m, m:size:machines] = 1.0
        A[jobs + machines + m, m:size:machines] = -weights
        A[jobs + machines + m, size + m] = 1.0
    side = np.concatenate([np.ones(jobs), np.full(machines, 2.0), np.zeros(machines)])
    free = np.full(2 * machines, np.inf)
    mip = dt.Mip(
        cost=np.concatenate([np.zeros(size + machines), np.ones(machines)]),
        A=A, row_lower=side, row_upper=side,
        lower=np.concatenate([np.zeros(size), -free]), upper=np.concatenate([np.ones(size), free]),
        integer=np.concatenate([np.ones(size, bool), np.zeros(2 * machines, bool)]),
    )  # fmt: skip
    problem = dt.Problem(mip)
    square = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Softplus()).double()
    loads, costs = size + np.arange(machines)[:, None], size + machines + np.arange(machines)[:, None]
    problem.add_predictor(square, loads, costs)
    context = context_of(problem)
    local = LocalSearch(context, ScaledProblem.of(context))
    z = np.zeros(problem.mip.n_columns)
    z[[0, 3, 7, 10, 14, 17]] = 1.0
    columns, changes = local._moves(z)
    assert len(columns)
    for four, by in zip(columns, changes, strict=True):
        moved = z.copy()
        np.add.at(moved, four, by)
        assert np.array_equal((A @ moved)[: jobs + machines], side[: jobs + machines])
    best = min(
        sum(float(square(torch.tensor([[weights[list(g)].sum()]]).double()).detach()) for g in groups)
        for groups in _pairings(list(range(jobs)))
    )
    result = dt.solve(problem, dt.IntegerLocalSearch(rounds=3, kicks=12), log=False)
    assert result.objective == pytest.approx(best, abs=1e-6)


def _pairings(items):
    """All ways to part six jobs in three pairs, machines in order of their first job (they are all alike)."""
    if not items:
        yield []
        return
    first, *rest = items
    for other in rest:
        left = [k for k in rest if k != other]
        for others in _pairings(left):
            yield [(first, other), *others]
