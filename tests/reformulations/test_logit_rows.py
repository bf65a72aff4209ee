"""Limits on probabilities as rows on logits: nothing that the deployed network allows is cut off."""

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.bounds.box import Box, propagate
from dovetail.core.check import Checker
from dovetail.core.mip import TOLERANCE
from dovetail.reformulations.logit_rows import LogitRows, may_have_logits
from dovetail.reformulations.reformulated import Reformulated, reformulate
from tests.conftest import sample


def network(*, pair, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    end = nn.Softmax(dim=1) if pair else nn.Sigmoid()
    net = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 2 if pair else 1), end).to(dtype)
    with torch.no_grad():
        net[2].weight *= 5.0
    return net


def limited(net, *, least=0.0, most=1.0, row=0.0, which=0, cost=0.0):
    """Two samples; output `which` of each between two limits: bounds, or rows with this factor."""
    outputs = 2 if isinstance(net[-1], nn.Softmax) else 1
    n = 4 + 2 * outputs
    X, Y = np.arange(4).reshape(2, 2), 4 + np.arange(2 * outputs).reshape(2, outputs)
    lower, upper = np.full(n, -2.0), np.full(n, 2.0)
    A, sides = [], []
    for j in Y[:, which]:
        if row:
            A.append(np.eye(n)[j] * row)
            sides.append(sorted([row * least, row * most]))
        else:
            lower[j], upper[j] = least, most
    costs = np.concatenate([[1.0, -0.5, 0.3, 1.0], np.full(2 * outputs, cost)])
    sides = np.array(sides).reshape(-1, 2)
    A = np.array(A) if A else None
    problem = dt.Problem(dt.Mip(costs, A, sides[:, 0], sides[:, 1], lower, upper, offset=9.0))
    problem.add_predictor(net, X, Y, name="p")
    return problem, X, Y


def rewritten(problem):
    given = Reformulated.start(problem, propagate(problem.mip.loosened()))
    return reformulate(given, (LogitRows(),))


CASES = [(pair, which, row) for pair, which in ((False, 0), (True, 0), (True, 1)) for row in (0.0, -0.5, 3.0)]


def probabilities(net, U):
    with torch.no_grad():
        return net(torch.tensor(U, dtype=net[0].weight.dtype)).double().numpy()


def points(problem, X, U):
    """Points of a problem whose samples all have the same inputs."""
    for u in U:
        x = np.zeros(problem.mip.n_columns)
        x[X] = u
        yield problem.predict(x)


def within(mip, z):
    activity = mip.A @ z
    rows = np.all(activity >= mip.row_lower) and np.all(activity <= mip.row_upper)
    return rows and np.all(z >= mip.lower) and np.all(z <= mip.upper)


@pytest.mark.parametrize("dtype", sample([torch.float32, torch.float64]))
@pytest.mark.parametrize(("pair", "which", "row"), CASES)
def test_every_point_that_passes_is_in_the_relaxation(pair, which, row, dtype):
    """Those nearest to the limit, on which the limit is laid: as far out as the check accepts."""
    net = network(pair=pair, dtype=dtype)
    U = np.random.default_rng(3).uniform(-2, 2, size=(4000, 2))
    P = probabilities(net, U)[:, which]
    least = float(np.sort(P)[1200]) + TOLERANCE / (abs(row) or 1.0)
    problem, X, _ = limited(net, least=least, most=0.999, row=row, which=which)
    made, checker = rewritten(problem), Checker(problem)
    assert made.relaxed is not None and made.problem.blocks[0].name == "p logit"
    near = U[np.argsort(np.abs(P - least))][:30]
    passing = [x for x in points(problem, X, near) if checker.violation(x).within()]
    assert 8 < len(passing) < 30
    assert all(within(made.relaxed.problem.mip, made.lift(x)) for x in passing)
    assert all(made.restrict(made.lift(x)).tolist() == x.tolist() for x in passing[:3])


@pytest.mark.parametrize("pair", [False, True])
def test_points_of_the_rows_pass_the_check(pair):
    net = network(pair=pair)
    U = np.random.default_rng(0).uniform(-2, 2, size=(2000, 2))
    least = float(np.quantile(probabilities(net, U)[:, -1], 0.5))
    problem, X, _ = limited(net, least=least, which=-1)
    made, checker = rewritten(problem), Checker(problem)
    near = U[np.argsort(np.abs(probabilities(net, U)[:, -1] - least))][:30]
    found = [x for x in points(problem, X, near) if within(made.problem.mip, made.lift(x))]
    assert 8 < len(found) < 30 and all(checker.violation(x).within() for x in found)


def test_what_is_left_alone():
    net = network(pair=False)
    assert may_have_logits(limited(net, least=0.5)[0])
    assert not may_have_logits(limited(net, least=0.5, cost=1.0)[0])  # the objective reads it
    assert not may_have_logits(limited(net)[0])  # nothing is asked of it
    relu = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).double()
    problem = limited(relu, least=0.5)[0]
    assert rewritten(problem).problem is problem  # its values are no probabilities
    endless = limited(net, least=0.5)[0]
    unbounded = Reformulated.start(endless, Box(np.full(6, -np.inf), np.full(6, np.inf)))
    assert reformulate(unbounded, (LogitRows(),)) is unbounded


@pytest.mark.parametrize("pair", [False, True])
def test_a_floor_is_proved(pair):
    net = network(pair=pair, seed=2)
    U = np.random.default_rng(1).uniform(-2, 2, size=(20000, 2))
    P = probabilities(net, U)[:, -1]
    least = float(np.quantile(P, 0.9))
    problem, X, Y = limited(net, least=least, which=-1)
    result = dt.solve(problem, gap=1e-5, log=False)
    assert result.gap <= 1e-5 and np.all(result.x[Y[:, -1]] >= least - TOLERANCE)
    best = 9.0 + sum(float((U[least <= P] @ problem.mip.cost[row]).min()) for row in X)
    assert result.bound <= best and result.objective <= best + 1e-4
