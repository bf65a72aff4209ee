"""Sets of inputs that rows leave of a box: no point of the rows is outside, and proofs by them are right."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.bounds.planes.domain import Boxes
from dovetail.branching.input_sets import input_sets
from dovetail.methods.branching import Branching

INPUTS = 12
OTHERS = 3


def network(seed, inputs=INPUTS):
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(inputs, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).double()
    with torch.no_grad():
        net[0].weight *= 4
    return net


def ball(rng, samples):
    """x = w + a - b for each sample, and one budget of all moves and of other columns together."""
    d, each = INPUTS, 3 * INPUTS
    n = samples * each + OTHERS + samples
    A, sides = np.zeros((samples * d + 1, n)), np.zeros(samples * d + 1)
    upper = np.ones(n)
    for k in range(samples):
        x, a, b = (k * each + part * d + np.arange(d) for part in range(3))
        rows = k * d + np.arange(d)
        A[rows, x], A[rows, a], A[rows, b] = 1.0, -1.0, 1.0
        sides[rows] = rng.uniform(0.3, 0.7, d)
        A[-1, a], A[-1, b] = rng.uniform(0.5, 1.5, (2, d))
    A[-1, samples * each : samples * each + OTHERS] = rng.uniform(-1.0, 1.0, OTHERS)
    lower, low = np.zeros(n), sides.copy()
    low[-1], sides[-1] = -np.inf, 1.0
    lower[-samples:], upper[-samples:] = -np.inf, np.inf
    problem = dt.Problem(dt.Mip(np.r_[np.zeros(n - samples), np.ones(samples)], A, low, sides, lower, upper))
    inputs = np.array([k * each + np.arange(d) for k in range(samples)])
    problem.add_predictor(network(1), inputs, np.arange(n - samples, n)[:, None])
    return problem


def points(problem, rng, samples, lower, upper):
    """Of the rows, within a box over the moves and the others."""
    each, d = 3 * INPUTS, INPUTS
    z = lower + (upper - lower) * rng.random(lower.size) * (rng.random(lower.size) < rng.choice([0.02, 0.1]))
    for k in range(samples):
        x, a, b = (k * each + part * d + np.arange(d) for part in range(3))
        z[x] = problem.mip.row_lower[k * d : (k + 1) * d] + z[a] - z[b]
    return z


@pytest.mark.parametrize("samples", [1, 2])
def test_no_point_of_the_rows_is_left_out(samples):
    rng = np.random.default_rng(samples)
    problem = ball(rng, samples)
    block, mip, each = problem.blocks[0], problem.mip, 3 * INPUTS
    lower, upper = mip.lower.copy(), np.minimum(mip.upper, 2.0)
    lower[-samples:] = -100.0
    sets = input_sets(problem, block, lower, upper)
    inside = 0
    for _ in range(30):
        part = [lower.copy(), upper.copy()]
        for j in range(samples * each):
            if j % each >= INPUTS and rng.random() < 0.3:
                part[1 if rng.random() < 0.7 else 0][j] = 0.05 * rng.random()
        boxes = Boxes(*(torch.tensor(ends[block.inputs]) for ends in part))
        domain = sets.within(boxes, *(end[None] for end in part), np.zeros(samples, int), np.arange(samples))
        slopes = torch.tensor(rng.normal(size=(samples, 5, INPUTS)))
        least = domain.minimum(slopes, torch.zeros(samples, 5, dtype=torch.float64))
        for _ in range(20):
            z = points(problem, rng, samples, *part)
            if (mip.A @ z)[-1] > 1.0 or np.any(z < part[0]) or np.any(z > part[1]):
                continue
            inside += 1
            x = torch.tensor(z[block.inputs])
            assert torch.all(domain.lower <= x) and torch.all(x <= domain.upper)
            assert torch.all((slopes * x[:, None]).sum(2) >= least)
    assert inside > 20
    free = Boxes(torch.tensor(lower[block.inputs]), torch.tensor(upper[block.inputs]))
    whole = sets.within(free, lower[None], upper[None], np.zeros(samples, int), np.arange(samples))
    nothing = torch.zeros(samples, 5, dtype=torch.float64)
    more = whole.minimum(slopes, nothing) - free.minimum(slopes, nothing)
    assert torch.all(more >= 0.0) and more.max() > 0.5


def test_networks_of_few_inputs_and_without_rows_have_none():
    problem = dt.Problem(
        dt.Mip(np.append(np.zeros(INPUTS), 1.0), lower=[*np.zeros(INPUTS), -np.inf], upper=1.0)
    )
    problem.add_predictor(network(0), np.arange(INPUTS), [INPUTS])
    lower, upper = np.zeros(INPUTS + 1), np.ones(INPUTS + 1)
    assert input_sets(problem, problem.blocks[0], lower, upper) is None
    few = dt.Problem(dt.Mip([0.0, 0.0, 1.0], [[1.0, 1.0, 0.0]], [1.0], [1.0], 0.0, 1.0))
    few.add_predictor(network(0, 2), [0, 1], [2])
    assert input_sets(few, few.blocks[0], np.zeros(3), np.ones(3)) is None


def over_simplex(kind):
    """The least of a network where its inputs add up to 4, and more."""
    halves = np.repeat([1.0, 0.0], INPUTS // 2), np.repeat([0.0, 1.0], INPUTS // 2)
    A = np.c_[np.array([np.ones(INPUTS), halves[0]]), np.zeros(2)]
    first = 4.0 if kind == "a second row" else 6.0
    mip = dt.Mip(
        [*np.zeros(INPUTS), 1.0], A, [4.0, 4.0 if kind == "a second row" else 0.0], [6.0, first],
        [*np.zeros(INPUTS), -np.inf], [*np.ones(INPUTS), np.inf],
    )  # fmt: skip
    if kind == "integers":
        mip = replace(mip, integer=np.append(np.arange(INPUTS) % 3 == 0, False))
    if kind == "a bound of the output":
        mip = replace(mip, lower=np.append(np.zeros(INPUTS), 0.2))
    problem = dt.Problem(mip)
    problem.add_predictor(network(3), np.arange(INPUTS), [INPUTS])
    return problem


@pytest.mark.parametrize("kind", ["a row", "a second row", "integers", "a bound of the output"])
def test_what_the_set_leaves_out_is_proved_as_well(kind):
    problem = over_simplex(kind)
    found = dt.solve(problem, Branching(), time_limit=600.0, gap=1e-6, log=False)
    exact = dt.solve(problem, "big-m", gap=1e-6, time_limit=600.0, log=False)
    assert exact.status == "optimal"
    assert found.bound <= exact.objective + 1e-6
    assert found.bound >= exact.objective - 1e-5


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


def test_either_class_is_proved():
    """As near as the class's epsilon lets points come."""
    one, other = (
        dt.solve(nearest_of_class(wanted), Branching(), time_limit=600.0, log=False) for wanted in (1, 0)
    )
    assert one.bound == pytest.approx(other.bound, abs=1e-7) and one.gap < 1e-3
