"""A predictor's own rounding: counted as its own, reported for the rows it may break, kept away from.

The modules here give other last digits alone than in a batch, on any machine.
"""

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from tests.conftest import FULL
from tests.small import random_mlp

AUTO = dt.Auto(effort=3)
"""Ends by itself, long before the time does."""
ULP = 2.0**-22
"""Twice the rounding of float32: what a sum in another order may well change."""


class Unsteady(nn.Module):
    """A linear map in float32 that gives one row by itself another last digit."""

    def __init__(self, weights, bias=0.0, alone=ULP):
        super().__init__()
        self.inner = nn.Linear(len(weights), 1)
        self.alone = alone
        with torch.no_grad():
            self.inner.weight.copy_(torch.tensor([weights]))
            self.inner.bias.fill_(bias)

    def forward(self, x):
        y = self.inner(x)
        return y * (1.0 + self.alone) if len(x) == 1 and y.dtype == torch.float32 else y


def limited(size, samples=3, row_lower=-np.inf, **options):
    """max sum of x, y_i = size x_i <= size / 3, in a row each."""
    n = samples
    mip = dt.Mip(
        cost=np.repeat([1.0, 0.0], n),
        A=np.hstack([np.zeros((n, n)), np.eye(n)]),
        row_lower=row_lower,
        row_upper=size / 3.0,
        lower=np.repeat([0.0, -np.inf], n),
        upper=np.repeat([1.0, np.inf], n),
        sense="max",
        row_names=[f"limit{i}" for i in range(n)],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(
        Unsteady([size], **options), np.arange(n)[:, None], n + np.arange(n)[:, None], name="net"
    )
    return problem


def one_by_one(problem, x):
    """The point with each sample evaluated alone."""
    x = x.copy()
    for block in problem.blocks:
        for inputs, outputs in zip(block.inputs, block.outputs, strict=True):
            x[outputs] = block.decode(block.predictor.predict(x[inputs][None]))[0]
    return x


def beyond(problem, x):
    activity = problem.mip.A @ x
    return float(np.max(np.maximum(problem.mip.row_lower - activity, activity - problem.mip.row_upper)))


@pytest.mark.parametrize("size", [1e2, 1e4, 1e6])
def test_what_a_row_may_be_missed_by_is_said(size):
    problem = limited(size)
    x = problem.predict(np.repeat([np.float64(np.float32(1 / 3)), 0.0], 3))
    x[:3] = x[:3] * (1.0 - 1e-7)
    x = problem.predict(x)
    violation = dt.check(problem, x)
    missed = beyond(problem, one_by_one(problem, x))
    assert missed > 1e-6
    assert violation.within() and not violation.steady()
    assert missed <= violation.rounding.amount <= 1e-5 * size
    assert violation.rounding.name.startswith("limit")


def test_a_point_clear_of_its_rows_is_steady():
    problem = limited(1e4)
    violation = dt.check(problem, problem.predict(np.repeat([0.3, 0.0], 3)))
    assert violation.steady() and violation.rounding.amount == 0.0


def test_float64_is_steady_on_its_rows():
    problem = dt.Problem(dt.Mip(cost=[1.0, 0.0], upper=[9.0, 3.0], lower=[-9.0, -np.inf]))
    net = nn.Linear(1, 1, dtype=torch.float64)
    with torch.no_grad():
        net.weight.fill_(3.0)
        net.bias.fill_(0.0)
    problem.add_predictor(net, [0], [1])
    assert dt.check(problem, [1.0, 3.0]).steady()


@pytest.mark.parametrize("seed", range(60 if FULL else 5))
def test_answers_by_another_route_count_and_others_do_not(seed):
    """Outputs computed one by one, or in float64, are the predictor's; ten times as far off they are not."""
    rng = np.random.default_rng(seed)
    n, size = 4, 10.0 ** rng.uniform(0, 6)
    net = random_mlp(2, seed=seed, dtype=torch.float32)
    with torch.no_grad():
        net[-1].weight.mul_(size)
    limits = np.repeat([1.0, np.inf], [2 * n, n])
    problem = dt.Problem(dt.Mip(cost=np.zeros(3 * n), lower=-limits, upper=limits))
    problem.add_predictor(net, np.arange(2 * n).reshape(n, 2), 2 * n + np.arange(n)[:, None], name="net")
    x = problem.predict(np.concatenate([rng.uniform(-1, 1, 2 * n), np.zeros(n)]))
    assert dt.check(problem, one_by_one(problem, x)).within()
    double = x.copy()
    double[2 * n :] = problem.blocks[0].predictor.snapshot("cpu")(torch.tensor(x[: 2 * n].reshape(n, 2)))[
        :, 0
    ]
    assert dt.check(problem, double).within()
    values = x[2 * n :]
    rough = 1e-5 * np.max(np.abs(values)) + 2e-6  # far beyond what float32 rounds here
    wrong = x.copy()
    wrong[2 * n + int(rng.integers(n))] += rough * rng.choice([-1.0, 1.0]) * max(1.0, size)
    assert not dt.check(problem, wrong).within()


@pytest.mark.parametrize("size", [1e2, 1e4, 1e6])
def test_a_solve_ends_clear_of_its_rows(size):
    problem = limited(size)
    result = dt.solve(problem, AUTO, log=False)
    assert result.violation.steady()
    assert beyond(problem, one_by_one(problem, result.x)) <= 1e-6
    assert result.objective == pytest.approx(1.0, rel=1e-5)  # the room costs a hair
    assert "rounding" not in result.message


def test_an_equality_has_no_room_and_the_result_says_so():
    """y - s = 0 with s free: whatever s is, alone y is another number."""
    size = 1e4
    mip = dt.Mip(
        cost=[1.0, 0.0, 0.0],
        A=[[0.0, 1.0, -1.0]],
        row_lower=0.0,
        row_upper=0.0,
        lower=[0.0, -np.inf, -np.inf],
        upper=[1.0, np.inf, 7e3],
        sense="max",
        row_names=["same"],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(Unsteady([size]), [0], [1])
    # one sample: the batch is the sample alone, so that another machine is all there is to fear
    result = dt.solve(problem, AUTO, log=False)
    assert result.violation.rounding.name == "same"
    assert 1e-6 < result.violation.rounding.amount < 1.0
    assert "may violate same by" in result.message and "rounding" in result.message
    again = dt.Result.from_json(result.to_json())
    assert again.violation.rounding == result.violation.rounding


def exactly(value, by_bounds=False):
    """The least input whose output of some ten thousand is a number that float32 does not have."""
    mip = dt.Mip(
        cost=[1.0, 0.0, 0.0],
        A=[[0.0, 1.0, 0.0]],
        row_lower=-np.inf if by_bounds else value,
        row_upper=np.inf if by_bounds else value,
        lower=[0.0, value if by_bounds else -np.inf, -np.inf],
        upper=[1.0, value if by_bounds else np.inf, np.inf],
        row_names=["exactly"],
        names=["x", "y", "z"],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(Unsteady([2e4], alone=0.0), ["x"], ["y"])
    return problem


@pytest.mark.parametrize("by_bounds", [False, True])
def test_a_value_that_float32_does_not_have_is_met_within_its_rounding(by_bounds):
    value = 1e4 + 1.0 / 3.0
    problem = exactly(value, by_bounds)
    result = dt.solve(problem, AUTO, log=False)
    assert result.x[1] == pytest.approx(value, abs=1e-6)
    assert "moved within its predictor's rounding" in result.message.split(";")[0]
    said = problem.blocks[0].predictor.predict(result.x[None, :1]).item()
    assert 1e-6 < abs(said - value) <= 1e-3  # float32 has a value every 1e-3 there
    assert result.violation.prediction.amount <= 1e-6 and "own rounding" in result.message


def test_a_value_that_another_network_reads_is_the_predictors_own_or_none():
    problem = exactly(1e4 + 1.0 / 3.0)
    problem.add_predictor(Unsteady([1.0], alone=0.0), ["y"], ["z"])
    result = dt.solve(problem, AUTO, log=False)
    assert result.x is None and result.status == "no_solution"
    assert "exactly" in result.message and "less than the rounding of the predictors" in result.message


def test_networks_that_read_each_other_through_rows_meet_within_their_rounding():
    """Three steps of a state s = 1000 net(u, w) + 37.3 that the next step reads as w: in float32 each is
    known to some 1e-4, and rows are held to 1e-6, so that no answers of the networks fit together."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    steps = np.arange(3)
    u, w, y, s = (4 * steps + k for k in range(4))
    A, sides = np.zeros((6, 12)), np.array([37.3, 100.0, 37.3, -11.1, 37.3, -11.1])
    A[2 * steps, s], A[2 * steps, y], A[2 * steps + 1, w] = 1.0, -1000.0, 300.0
    A[2 * steps[1:] + 1, s[:-1]] = -1.0  # 300 w = the state before - 11.1
    limits, cost = np.full(12, np.inf), np.zeros(12)
    limits[u], limits[w], limits[s], cost[s], cost[u] = 1.0, 5.0, 5e3, 1.0, 0.3
    mip = dt.Mip(cost, A=A, row_lower=sides, row_upper=sides, lower=-limits, upper=limits)
    problem = dt.Problem(mip)
    for k in steps:
        problem.add_predictor(net, [u[k], w[k]], [y[k]])
    result = dt.solve(problem, time_limit=60, target=-500.0, log=False)
    assert result.status == "feasible" and dt.check(problem, result.x).within()
    alone = [block.predictor.predict(result.x[block.inputs])[0, 0] for block in problem.blocks]
    assert result.x[y] == pytest.approx(alone, abs=1e-5) and not np.array_equal(result.x[y], alone)


class TestClasses:
    def problem(self, epsilon, alone=-1e-6):
        """Two samples, class 1 where x >= 1/2; a sample alone sees a little less of x."""

        class Edge(nn.Module):
            def __init__(self):
                super().__init__()
                self.shift = nn.Parameter(torch.tensor(0.5))

            def forward(self, x):
                alone_too = alone if len(x) == 1 and x.dtype == torch.float32 else 0.0
                return x - self.shift + alone_too

        mip = dt.Mip(
            cost=[1.0, 1.0, 0.0, 0.0],
            lower=[0.0, 0.0, 1.0, 1.0],
            upper=1.0,
            integer=[False, False, True, True],
        )
        problem = dt.Problem(mip)
        options = {"output_type": "classification", "threshold": 0.0, "epsilon": epsilon, "name": "edge"}
        problem.add_predictor(Edge(), [[0], [1]], [[2], [3]], **options)
        return problem

    def test_one_that_turns_alone_is_refused(self):
        problem = self.problem(0.0)
        violation = dt.check(problem, [0.5, 0.8, 1.0, 1.0])
        assert not violation.within()
        assert "between a sample in its batch and alone" in violation.prediction.name
        assert dt.check(problem, [0.500002, 0.8, 1.0, 1.0]).within()

    def test_one_that_may_turn_elsewhere_is_said(self):
        problem = self.problem(0.0, alone=-1e-7)
        violation = dt.check(problem, [0.5 + 2e-7, 0.8, 1.0, 1.0])
        assert violation.within() and not violation.steady()
        assert violation.rounding.amount == 1.0 and "edge, sample 0" in violation.rounding.name

    @pytest.mark.parametrize("epsilon", [0.0, 1e-4])
    def test_a_solve_keeps_its_classes(self, epsilon):
        problem = self.problem(epsilon)
        result = dt.solve(problem, AUTO, log=False)
        assert np.array_equal(one_by_one(problem, result.x)[2:], result.x[2:])
        assert result.objective == pytest.approx(1.0, abs=1e-3)


def test_outputs_far_apart_by_route_still_count():
    """Four times the tolerance between a sample in its batch and alone: both are the predictor's own."""
    problem = limited(1e2, alone=2.0**-18)
    x = problem.predict(np.repeat([0.2, 0.0], 3))
    alone = one_by_one(problem, x)
    assert np.max(np.abs(alone - x) / np.maximum(1.0, np.abs(x))) > 2e-6
    assert dt.check(problem, x).within() and dt.check(problem, alone).within()


def test_rounding_goes_through_chained_networks():
    mip = dt.Mip(cost=[1.0, 0.0, 0.0], lower=[0.0, -np.inf, -np.inf], upper=[1.0, np.inf, 5e3], sense="max")
    problem = dt.Problem(mip)
    problem.add_predictor(Unsteady([1.0]), [0], [1], name="first")
    second = nn.Linear(1, 1, dtype=torch.float64)
    with torch.no_grad():
        second.weight.fill_(1e4)
        second.bias.fill_(0.0)
    problem.add_predictor(second, [1], [2], name="second")
    x = problem.predict(np.array([0.5 - 1e-9, 0.0, 0.0]))
    said = dt.check(problem, x).rounding
    double = 1e4 * (0.5 - 1e-9)  # the same chain in float64, whose first network rounds otherwise
    assert said.amount >= abs(double - x[2]) + x[2] - 5e3 and said.amount > 1e-6
    assert "x[2]" in said.name or said.name == problem.mip.column_name(2)


def test_a_row_at_zero_between_large_outputs_is_cleared_at_the_end():
    """y0 - y1 <= 0 with both in the thousands: nothing shows before the search how much room it needs."""
    mip = dt.Mip(
        cost=[1.0, -0.5, 0.0, 0.0],
        A=[[0.0, 0.0, 1.0, -1.0]],
        row_lower=-np.inf,
        row_upper=0.0,
        lower=[0.0, 0.0, -np.inf, -np.inf],
        upper=[1.0, 0.6, np.inf, np.inf],
        sense="max",
    )
    problem = dt.Problem(mip)
    problem.add_predictor(Unsteady([1e4], 1.0 / 3.0), [[0], [1]], [[2], [3]])
    result = dt.solve(problem, AUTO, log=False)
    assert result.violation.steady()
    assert result.objective == pytest.approx(0.3, rel=1e-4)
