"""Branching by planes alone: what it proves is true, and on small problems it proves all there is."""

import itertools
import math

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.branching import planes
from dovetail.branching.plane_boxes import _SingleRows, split
from dovetail.branching.planes import PlaneRows, first_box
from dovetail.branching.tree import Tree
from dovetail.methods.branching import Branching
from dovetail.methods.branching_model import model
from dovetail.run.bound import BoundFaultError
from dovetail_study.problems.function import formulate
from tests.conftest import FULL, sample
from tests.contexts import context_of
from tests.differential.instances import make
from tests.differential.judging import as_problem
from tests.differential.truth import unbeatable

SEEDS = range(300) if FULL else range(3)
CLOSE = 1e-5
"""Values are about 1: a bound holds for all that the check accepts, which is 1e-6 away from the problem."""
HAIR = 1e-5
"""The truth lets logits within a hair of their threshold count as either class; bounds do not."""


@pytest.fixture(autouse=True)
def _by_planes_alone(monkeypatch):
    """Wherever they have something to say."""
    monkeypatch.setattr(Tree, "_planes_lead", lambda self, goal: self.planes is not None)


def rows_of(problem):
    made = model(context_of(problem))
    box = first_box(made, math.inf)
    return None if box is None else PlaneRows(made, *box, "cpu")


def solved(problem, seconds=math.inf, start=None):
    context = context_of(problem, seconds)
    if start is not None:
        context.incumbent.offer(start, "given")
    return Branching().solve(context), context.incumbent


def two_networks(width=8, seed=0, activation=torch.nn.ReLU, inputs=3):
    """The least of one random network where another has a given value."""
    torch.manual_seed(seed)
    pair = [
        torch.nn.Sequential(
            torch.nn.Linear(inputs, width), activation(), torch.nn.Linear(width, width), activation(),
            torch.nn.Linear(width, 1),
        ).double()
        for _ in range(2)
    ]  # fmt: skip
    return formulate(inputs, 4.0, pair, [], pair[1](torch.ones(1, inputs).double()).item())


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_are_true_and_tight(seed):
    """Several and chained networks, classes, equalities, integers."""
    instance = make(seed)
    problem = as_problem(instance)
    outcome, incumbent = solved(problem)
    optimum = unbeatable(instance)
    if optimum is None:
        assert incumbent.x is None
        assert outcome.infeasible
        return
    value = problem.mip.sign * optimum
    assert incumbent.bound <= value + HAIR * (1.0 + abs(value))
    assert incumbent.bound >= value - HAIR * (1.0 + abs(value))
    assert incumbent.x is None or incumbent.bound <= problem.mip.sign * incumbent.objective


@pytest.mark.parametrize("seed", sample(range(3)))
def test_an_equation_through_a_network(seed):
    instance = two_networks(seed=seed)
    start = instance.problem.predict(np.array([1.0, 1.0, 1.0, 0.0, 0.0]))
    outcome, incumbent = solved(instance.problem, start=start)
    assert incumbent.bound >= incumbent.objective - CLOSE, outcome.message
    rng = np.random.default_rng(seed)
    X = torch.as_tensor(rng.uniform(-4.0, 4.0, (200_000, 3)))
    with torch.inference_mode():
        f, g = (network(X)[:, 0].numpy() for network in instance.networks)
    slope = 1e3  # of f along g, at most: points near the surface stand for points of it
    near = np.abs(g - instance.median) < 1e-3
    assert near.any() and np.all(f[near] >= incumbent.bound - slope * 1e-3)


def test_points_of_boxes_reach_the_incumbent():
    instance = two_networks(seed=5)
    outcome, incumbent = solved(instance.problem)
    assert incumbent.bound >= incumbent.objective - CLOSE, outcome.message
    assert incumbent.source == "nodes"


@pytest.mark.parametrize("activation", sample([torch.nn.Tanh, torch.nn.Sigmoid, torch.nn.GELU], 2))
def test_smooth_networks(activation):
    instance = two_networks(width=5, seed=1, activation=activation, inputs=2)
    start = instance.problem.predict(np.array([1.0, 1.0, 0.0, 0.0]))
    outcome, incumbent = solved(instance.problem, start=start)
    assert incumbent.bound >= incumbent.objective - CLOSE, outcome.message


def test_a_plane_that_is_too_high_is_heard(monkeypatch):
    """A planted fault: the tests above would not let it pass."""
    own = planes._Network.rows

    def lifted(self, *args):
        rows, right, offset = own(self, *args)
        return rows, right + 1e-3, offset

    monkeypatch.setattr(planes._Network, "rows", lifted)
    enough = 3 if FULL else 1
    heard = list(itertools.islice((seed for seed in range(16) if claims_too_much(seed)), enough))
    assert len(heard) == enough


def claims_too_much(seed):
    """Whether a bound of a random problem is beyond its optimum."""
    instance = make(seed)
    optimum, problem = unbeatable(instance), as_problem(instance)
    if optimum is None:
        return False
    value = problem.mip.sign * optimum
    try:
        _, incumbent = solved(problem)
    except BoundFaultError:
        return True
    return incumbent.bound > value + HAIR * (1.0 + abs(value))


def test_a_float32_network_gets_a_bound_that_allows_for_its_rounding():
    instance = two_networks(seed=2)
    pair = [network.float() for network in instance.networks]
    mip = dt.Mip([0.0, 0.0, 0.0, 1.0], lower=[*[-4.0] * 3, -np.inf], upper=[*[4.0] * 3, np.inf])
    problem = dt.Problem(mip)
    problem.add_predictor(pair[0], [0, 1, 2], [3])
    _, incumbent = solved(problem)
    rng = np.random.default_rng(0)
    X = rng.uniform(-4.0, 4.0, (20_000, 3))
    least = float(problem.blocks[0].predictor.predict(X).min())
    assert incumbent.bound <= min(least, incumbent.objective)
    assert incumbent.bound >= incumbent.objective - 1e-3


def test_planes_hold_at_every_point():
    instance = two_networks(seed=2)
    rows = rows_of(instance.problem)
    relaxed = rows.with_networks(rows.bare(rows.lower[None], rows.upper[None]))
    x = np.random.default_rng(0).uniform(-4.0, 4.0, (300, 3))
    z = torch.zeros(300, rows.columns, dtype=torch.float64)
    z[:, :3] = torch.as_tensor(x)
    with torch.no_grad():
        for column, network in zip(instance.outputs.tolist(), instance.networks, strict=True):
            z[:, column] = network(z[:, :3])[:, 0]
    host = len(rows.host_rows)
    own, right = relaxed.programs.rows[0, host:], relaxed.programs.row_lower[0, host:]
    assert bool((z @ own.T >= right - 1e-9).all())


def test_a_model_whose_rows_are_too_many_is_left_to_lps(monkeypatch):
    monkeypatch.setattr(planes, "MOST_CELLS", 10)
    assert rows_of(two_networks().problem) is None


def test_it_ends_in_time():
    instance = two_networks(width=64, seed=3)
    outcome, _ = solved(instance.problem, seconds=0.5)
    assert outcome.stop_reason in ("time", "proved")


@pytest.mark.parametrize("seed", sample(range(3)))
def test_points_are_found_where_lots_leave_no_room(seed):
    """Five lots for what five lots make: the LP of every leaf has one point and no inside."""
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    lots = np.array([some for some in itertools.product(range(6), repeat=3) if sum(some) == 5])
    with torch.no_grad():
        quality = net(torch.as_tensor(lots / 5.0)).numpy().ravel()
    floor, costs = float(np.sort(quality)[9:11].mean()), np.array([3.0, 2.0, 1.0])
    truth = np.where(quality >= floor, lots @ costs - quality, np.inf).min()
    mip = dt.Mip(
        cost=np.concatenate([np.zeros(3), costs, [-1.0]]),
        A=np.block([[np.ones((1, 3)), np.zeros((1, 4))],
                    [np.zeros((1, 3)), np.ones((1, 3)), np.zeros((1, 1))],
                    [50.0 * np.eye(3), -10.0 * np.eye(3), np.zeros((3, 1))]]),
        row_lower=np.array([1.0, -np.inf, -np.inf, -np.inf, -np.inf]),
        row_upper=np.array([1.0, 5.0, 0.0, 0.0, 0.0]),
        lower=np.append(np.zeros(6), floor),
        upper=np.concatenate([np.ones(3), np.full(3, 5.0), [np.inf]]),
        integer=np.array([False] * 3 + [True] * 3 + [False]),
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(net, [0, 1, 2], [6])
    outcome, incumbent = solved(problem)
    assert incumbent.objective == pytest.approx(truth, abs=1e-5)
    assert incumbent.bound == pytest.approx(truth, abs=1e-4)
    assert outcome.stop_reason in ("proved", "stalled")


def ensemble(inputs, hidden, members=2, rng=0):
    """The mean of networks on the same inputs, in a column that only its row limits."""
    torch.manual_seed(rng)
    count = inputs + members + 1
    mean = np.zeros(count)
    mean[inputs:-1], mean[-1] = 1.0 / members, -1.0
    ends = np.r_[np.ones(inputs), np.full(members + 1, np.inf)]
    problem = dt.Problem(
        dt.Mip(
            np.eye(count)[-1], A=mean[None], row_lower=[0.0], row_upper=[0.0], lower=-ends, upper=ends,
            integer=np.arange(count) < 1,
        )
    )  # fmt: skip
    networks = [
        torch.nn.Sequential(
            torch.nn.Linear(inputs, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 1)
        ).double()
        for _ in range(members)
    ]
    for k, network in enumerate(networks):
        problem.add_predictor(network, np.arange(inputs), [inputs + k])
    return problem, networks


def test_a_column_that_rows_limit_once_outputs_are_known_needs_no_bound():
    """Against the kinks of one line for each whole number: between them the mean is linear."""
    problem, networks = ensemble(2, 6)
    outcome, incumbent = solved(problem)
    assert outcome.stop_reason == "proved"
    least = np.inf
    for whole in (-1.0, 0.0, 1.0):
        first = [network[0] for network in networks]
        kinks = [-(layer.bias + layer.weight[:, 0] * whole) / layer.weight[:, 1] for layer in first]
        t = torch.cat([*kinks, torch.tensor([-1.0, 1.0], dtype=torch.float64)]).detach().clamp(-1.0, 1.0)
        X = torch.stack([torch.full_like(t, whole), t], dim=1)
        least = min(least, torch.cat([network(X) for network in networks], 1).mean(1).min().item())
    assert incumbent.bound <= least + CLOSE
    assert incumbent.objective == pytest.approx(least, abs=CLOSE)
    assert incumbent.bound == pytest.approx(least, abs=CLOSE)


@pytest.mark.parametrize("score", [3.0, math.inf, math.nan])
def test_a_column_that_is_a_point_is_not_chosen_again(score):
    """An infinite score stays infinite when it is halved, and one half of a decided integer is empty."""
    lower, upper = torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 1.0]])
    integer, scores = torch.tensor([True, False]), torch.tensor([[score, 1.0]])
    lower, upper, scores = split(lower, upper, scores, integer)
    assert lower[:, 0].tolist() == upper[:, 0].tolist() == [0.0, 1.0]
    assert scores.tolist() == [[0.0, 1.0], [0.0, 1.0]]
    lower, upper, scores = split(lower, upper, scores, integer)
    assert upper[:, 1].tolist() == [0.5, 0.5, 1.0, 1.0]
    assert scores[:, 1].tolist() == [0.5] * 4


def test_single_rows_lose_no_point():
    """Points that satisfy all rows stay in the box, and most boxes become smaller."""
    smaller = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1.0, 1.0, (200, 4))
        whole = np.array([False, True, False, True])
        x[:, whole] = np.round(2.0 * x[:, whole])
        rows = rng.normal(size=(200, 5, 4)) * (rng.random((200, 5, 4)) < 0.6)
        values = np.einsum("nmj,nj->nm", rows, x)
        low = np.where(rng.random((200, 5)) < 0.5, values - 0.1, -np.inf)
        high = np.where(rng.random((200, 5)) < 0.5, values + 0.1, np.inf)
        low[0], high[0] = np.nan, np.nan  # no plane is known
        loaded = (torch.as_tensor(part) for part in (rows, low, high, whole))
        ends = torch.as_tensor(np.floor(x - 1.0)), torch.as_tensor(np.ceil(x + 1.0))
        lower, upper = _SingleRows(*loaded).tightened(*ends)
        assert bool(((lower.numpy() <= x + 1e-9) & (x <= upper.numpy() + 1e-9)).all())
        smaller += int(((lower > ends[0]) | (upper < ends[1])).any(1).sum())
    assert smaller > 500
