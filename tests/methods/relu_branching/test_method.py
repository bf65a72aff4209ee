"""A proof over a set that leaves rows out notices when its best point violates one of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.methods.relu_branching.method import ReluBranching

INPUTS = 20


def one_network(A, row_lower, row_upper, names):
    """The least of a ReLU network over [0, 1]^20 and some rows."""
    torch.manual_seed(3)
    net = torch.nn.Sequential(
        torch.nn.Linear(INPUTS, 10), torch.nn.ReLU(), torch.nn.Linear(10, 1)
    ).double()  # fmt: skip
    with torch.no_grad():
        net[0].weight *= 4
    A = np.c_[np.array(A), np.zeros(len(A))]
    cost, box = [*np.zeros(INPUTS), 1.0], [*np.zeros(INPUTS), -np.inf]
    top = [*np.ones(INPUTS), np.inf]
    problem = dt.Problem(dt.Mip(cost, A, row_lower, row_upper, box, top, row_names=names))
    problem.add_predictor(net, np.arange(INPUTS), [INPUTS])
    return problem


def test_one_row_is_part_of_the_set_and_the_proof_closes():
    rng = np.random.default_rng(0)
    problem = one_network([rng.uniform(0.5, 1.5, INPUTS)], [4.0], [6.0], ["weight"])
    result = dt.solve(problem, ReluBranching(), time_limit=600.0, log=False)
    assert result.status == "optimal" and "closed" in result.message


def test_a_row_that_is_left_out_and_violated_is_named():
    """The second row asks for what the first point that is found does not have."""
    halves = np.repeat([1.0, 0.0], INPUTS // 2), np.repeat([0.0, 1.0], INPUTS // 2)
    problem = one_network([np.ones(INPUTS), halves[0]], [4.0, 4.0], [6.0, 4.0], ["total", "first half"])
    alone = dt.solve(problem, ReluBranching(), time_limit=600.0, log=False)
    assert "given up: the set leaves out first half" in alone.message
    assert "closed" not in alone.message
    whole = dt.solve(problem, time_limit=600.0, gap=1e-6, log=False)
    exact = dt.solve(problem, "big-m", gap=1e-6, time_limit=600.0, log=False)
    assert whole.status == "optimal" and abs(whole.objective - exact.objective) < 1e-5
    assert alone.bound is None or alone.bound <= exact.objective + 1e-6


def limited(kind):
    """One row, and a limit that the closed form has no place for."""
    problem = one_network([np.ones(INPUTS)], [4.0], [6.0], ["total"])
    lower, upper, integer = problem.mip.lower.copy(), problem.mip.upper.copy(), np.zeros(INPUTS + 1, bool)
    if "integrality" in kind:
        integer[:INPUTS] = True
        lower[:INPUTS], upper[:INPUTS] = 0.0, 3.0
    else:
        lower[INPUTS] = dt.solve(problem, time_limit=600.0, log=False).objective + 0.1
    mip = replace(problem.mip, lower=lower, upper=upper, integer=integer)
    again = dt.Problem(mip)
    again.add_predictor(problem.blocks[0].predictor, np.arange(INPUTS), [INPUTS])
    return again


@pytest.mark.parametrize("kind", ["the integrality of", "the bounds of 1 column"])
def test_integers_and_bounds_of_the_output_are_left_out_and_named(kind):
    """The incumbent repairs such a point into another one, so that nothing is refused."""
    problem = limited(kind)
    alone = dt.solve(problem, ReluBranching(), time_limit=600.0, gap=1e-6, log=False)
    exact = dt.solve(problem, "big-m", gap=1e-6, time_limit=600.0, log=False)
    assert exact.status == "optimal" and alone.status == "feasible"
    assert "given up: the set leaves out" in alone.message and kind in alone.message
    assert "closed" not in alone.message
    assert alone.bound is None or alone.bound <= exact.objective + 1e-6
    whole = dt.solve(problem, time_limit=600.0, gap=1e-6, log=False)
    assert whole.status == "optimal" and abs(whole.objective - exact.objective) < 1e-5


def nearest_of_class(wanted):
    """The shortest way in the 1-norm from a point of the other class; class 0 by the network turned round."""
    d, rng = 16, np.random.default_rng(0)
    w, one = rng.uniform(0.2, 0.8, d), np.eye(d)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(d, 10), torch.nn.ReLU(), torch.nn.Linear(10, 1)).double()
    with torch.no_grad():
        net[2].bias -= net(torch.as_tensor(w)[None])[0] + 0.05
        for part in net[2].parameters():
            part *= 1.0 if wanted else -1.0
    A, free = np.c_[one, -one, one, np.zeros(d)], np.zeros(3 * d)
    lower, upper = np.r_[free, wanted], np.r_[np.ones(3 * d), wanted]
    mip = dt.Mip(np.r_[np.zeros(d), np.ones(2 * d), 0.0], A, w, w, lower, upper, np.r_[free > 0, True])
    problem = dt.Problem(mip)
    problem.add_predictor(net, np.arange(d), [3 * d], output_type="classification", threshold=0.0)
    return problem


def test_either_class_is_proved_with_the_same_work():
    one, other = (
        dt.solve(nearest_of_class(wanted), ReluBranching(), time_limit=600.0, log=False) for wanted in (1, 0)
    )
    assert one.bound_source == other.bound_source == "signs"
    assert one.bound == pytest.approx(other.bound, abs=1e-9) and one.work == other.work
