"""auto: known optima for all kinds of networks and problems, the same answer twice, and plain words."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.methods.auto import Auto
from dovetail.methods.phases import Phase
from dovetail.run import work
from dovetail.run.bound import Bound
from dovetail.run.budget import OutOfTime, StopReason
from dovetail.run.context import MethodOutcome
from dovetail_study.problems.training import Training
from dovetail_study.problems.water import FEATURES, formulate, look_alike, water
from tests.conftest import FULL, sample, volume
from tests.contexts import best_of, choices
from tests.small import linear_net, random_mlp
from tests.tanh import problem_of, tanh_net

DOUBLE = {"dtype": torch.float64}


class Residual(nn.Module):
    """GELU, LayerNorm and a path around them."""

    def __init__(self, features, outputs=1):
        super().__init__()
        self.first = nn.Linear(features, 6, **DOUBLE)
        self.norm = nn.LayerNorm(6, **DOUBLE)
        self.inner = nn.Linear(6, 6, **DOUBLE)
        self.last = nn.Linear(6, outputs, **DOUBLE)

    def forward(self, x):
        h = self.first(x)
        return self.last(h + self.inner(nn.functional.gelu(self.norm(h))))


class Recurrent(nn.Module):
    """An LSTM over the features as a sequence."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 5, batch_first=True, **DOUBLE)
        self.last = nn.Linear(5, 1, **DOUBLE)

    def forward(self, x):
        return self.last(self.lstm(x.unsqueeze(2))[0][:, -1])


class Attention(nn.Module):
    """Features as tokens that attend to each other."""

    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(1, 4, **DOUBLE)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True, **DOUBLE)
        self.last = nn.Linear(4, 1, **DOUBLE)

    def forward(self, x):
        tokens = self.lift(x.unsqueeze(2))
        return self.last(self.attention(tokens, tokens, tokens, need_weights=False)[0].mean(dim=1))


def made(kind, seed=0, *args):
    """The module with large random weights, so that there is something to find."""
    torch.manual_seed(seed)
    module = kind(*args)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(2.0)
    return module


def plane(net, cost=(0.1, -0.2), *, sense="min", outputs=1):
    """Two inputs in [-1, 1] under x0 + x1 <= 1, and the network's outputs in the objective."""
    mip = dt.Mip(
        cost=[*cost, *[1.0] * outputs],
        A=[[1.0, 1.0, *[0.0] * outputs]],
        row_lower=[-np.inf],
        row_upper=[1.0],
        lower=[-1.0, -1.0, *[-np.inf] * outputs],
        upper=[1.0, 1.0, *[np.inf] * outputs],
        sense=sense,
    )
    problem = dt.Problem(mip)
    problem.add_predictor(net, [0, 1], np.arange(2, 2 + outputs))
    return problem


def grid(problem, steps=161):
    """The best value over a fine grid of columns 0 and 1, and how much neighbours differ at most."""
    mip = problem.mip
    axes = [np.linspace(mip.lower[j], mip.upper[j], steps) for j in (0, 1)]
    points = np.zeros((steps * steps, mip.n_columns))
    points[:, :2] = np.array(np.meshgrid(*axes, indexing="ij")).reshape(2, -1).T
    for block in problem.blocks:
        for i in range(block.samples):
            raw = block.predictor.predict(points[:, block.inputs[i]])
            points[:, block.outputs[i]] = block.decode(raw)
    values = mip.sign * (points @ mip.cost)
    activity = (mip.A @ points.T).T
    good = np.all((activity <= mip.row_upper + 1e-9) & (activity >= mip.row_lower - 1e-9), axis=1)
    field = values.reshape(steps, steps)
    jump = max(np.abs(np.diff(field, axis=0)).max(), np.abs(np.diff(field, axis=1)).max())
    return float(values[good].min()), float(jump)


@pytest.mark.parametrize(
    ("kind", "arguments"), [(Residual, (2,)), (Recurrent, ()), (Attention, ())], ids=lambda k: str(k)[:20]
)
@pytest.mark.parametrize("sense", sample(["min", "max"]))
def test_any_module_is_brought_to_the_optimum_of_a_fine_grid(kind, arguments, sense):
    problem = plane(made(kind, 1, *arguments), sense=sense)
    truth, jump = grid(problem)
    result = dt.solve(problem, Auto(effort=8), log=False)
    assert result.status in ("feasible", "optimal")
    value = problem.mip.sign * result.objective
    assert value <= truth + 1e-6
    assert value >= truth - 2 * jump
    assert result.bound is None or problem.mip.sign * result.bound <= truth + 1e-6
    assert dt.check(problem, result.x).within()


def test_three_classes_over_integers():
    """Six integers, the class decides what is paid: all choices are known."""
    rng = np.random.default_rng(0)
    k = 5
    for sense in ("min", "max"):
        mip = dt.Mip(
            cost=[*rng.normal(0, 0.2, k), 1.0, -1.0, 0.5],
            A=[[*np.ones(k), 0.0, 0.0, 0.0]],
            row_lower=[2.0],
            row_upper=[8.0],
            lower=0.0,
            upper=[*[2.0] * k, 1.0, 1.0, 1.0],
            integer=[*[True] * k, False, False, False],
            sense=sense,
        )
        problem = dt.Problem(mip)
        net = random_mlp(k, 3, seed=4)
        problem.add_predictor(net, np.arange(k), [k, k + 1, k + 2], output_type="classification")
        truth, _ = best_of(problem, choices(problem))
        result = dt.solve(problem, log=False)
        assert result.objective == pytest.approx(truth, abs=1e-6)
        assert result.status == "optimal"


def test_three_classes_over_reals():
    """The class is wanted, and the cheapest point of its region is on the edge: a fine grid knows it."""
    net = random_mlp(2, 3, seed=7)
    mip = dt.Mip(
        cost=[1.0, 0.7, 0.0, -3.0, 0.0],
        A=[[1.0, 1.0, 0.0, 0.0, 0.0]],
        row_lower=[-np.inf],
        row_upper=[1.5],
        lower=[-1.0, -1.0, 0.0, 0.0, 0.0],
        upper=1.0,
    )
    problem = dt.Problem(mip)
    problem.add_predictor(net, [0, 1], [2, 3, 4], output_type="classification")
    truth, _ = grid(problem, 401)
    result = dt.solve(problem, Auto(effort=5), log=False)
    assert result.objective <= truth + 1e-3  # the margin of 1e-4 is kept from the edge
    assert result.objective >= truth - 0.02  # steps of 0.005
    if result.bound is not None:
        assert result.bound <= truth + 1e-6


def test_regressions_and_classes_together():
    """Binaries decide both; another engine's answer is enumeration."""
    rng = np.random.default_rng(3)
    k = 6
    mip = dt.Mip(
        cost=[*rng.normal(0, 0.3, k), 1.0, -2.0],
        A=[[*np.ones(k), 0.0, 0.0], [*np.zeros(k), 1.0, 1.0]],
        row_lower=[2.0, -np.inf],
        row_upper=[4.0, 2.0],
        lower=[*np.zeros(k), -np.inf, 0.0],
        upper=[*np.ones(k), np.inf, 1.0],
        integer=[*[True] * k, False, False],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(k, seed=5), np.arange(k), [k])
    problem.add_predictor(random_mlp(3, seed=11), [0, 2, 4], [k + 1], output_type="classification")
    truth, _ = best_of(problem, choices(problem))
    result = dt.solve(problem, log=False, gap=1e-6)
    assert result.objective == pytest.approx(truth, abs=1e-6)
    assert result.status == "optimal"
    assert result.bound == pytest.approx(truth, abs=1e-5)


@pytest.mark.parametrize("smooth", [False, True])
def test_general_integers_beside_reals(smooth):
    """An integer and a real input of one network: a line of grids, one per integer."""
    torch.manual_seed(2)
    net = made(Residual, 3, 2) if smooth else random_mlp(2, seed=8)
    mip = dt.Mip(
        cost=[0.05, -0.1, 1.0],
        A=[[1.0, 2.0, 0.0]],
        row_lower=[-3.0],
        row_upper=[3.0],
        lower=[-3.0, -1.0, -np.inf],
        upper=[3.0, 1.0, np.inf],
        integer=[True, False, False],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(net, [0, 1], [2])
    t = np.linspace(-1, 1, 2001)
    lines = np.array([[k, x] for k in range(-3, 4) for x in t if -3 <= k + 2 * x <= 3])
    values = 0.05 * lines[:, 0] - 0.1 * lines[:, 1] + problem.blocks[0].predictor.predict(lines)[:, 0]
    result = dt.solve(problem, Auto(effort=8), log=False)
    assert result.objective <= values.min() + 1e-6
    assert result.objective >= values.min() - 0.01
    if not smooth:
        assert result.status == "optimal"


def periods(count=6, levels=5):
    """What a plant makes by its level 0..4 and its temperature, and a stock that must not run out.

    What is made rises with the temperature at every level, so that for given levels it may be anything
    between the coldest and the hottest.
    """
    rng = np.random.default_rng(11)
    hump = nn.Sequential(linear_net(np.eye(2)[[0, 0, 0, 1]], [0.0, -1.0, -2.5, 0.0]), nn.ReLU(),
                         linear_net([[1.0, 0.8, -1.9, 0.5]], 0.2))  # fmt: skip
    price, demand = rng.uniform(0.5, 1.5, count), rng.uniform(0.8, 2.2, count)
    first, most = 1.0, 3.0
    level, heat, made, stock = np.arange(4 * count).reshape(4, count)
    A = np.zeros((count, 4 * count))
    for t in range(count):  # stock[t] = stock[t-1] + made[t] - demand[t]
        A[t, stock[t]], A[t, made[t]] = 1.0, -1.0
        if t:
            A[t, stock[t - 1]] = -1.0
    right = -demand + first * (np.arange(count) == 0)
    mip = dt.Mip(
        cost=np.concatenate([price, np.zeros(count), np.zeros(count), np.full(count, 0.05)]),
        A=A, row_lower=right, row_upper=right,
        lower=np.repeat([0.0, 0.0, -np.inf, 0.0], count),
        upper=np.repeat([levels - 1.0, 1.0, np.inf, most], count),
        integer=np.repeat([True, False, False, False], count),
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(hump, np.column_stack([level, heat]), made[:, None])
    return problem, hump, (price, demand, first, most, levels)


def least_cost(net, price, demand, first, most, levels):
    """Over every sequence of levels: the cheapest stocks are then the smallest that never run out."""
    with torch.no_grad():
        cold, hot = (
            net(torch.tensor([[k, heat] for k in range(levels)], **DOUBLE))[:, 0].numpy()
            for heat in (0.0, 1.0)
        )
    best = np.inf
    for chosen in itertools.product(range(levels), repeat=len(price)):
        low, high = cold[list(chosen)], hot[list(chosen)]
        cost, stock = price @ chosen, first
        if cost >= best:
            continue
        need = np.zeros(len(price) + 1)
        for t in range(len(price))[::-1]:
            need[t] = max(0.0, need[t + 1] + demand[t] - high[t])
        for t in range(len(price)):
            stock = max(stock + low[t] - demand[t], need[t + 1])
            cost += 0.05 * stock
            if stock > most:
                cost = np.inf
        best = min(best, cost if need[0] <= first else np.inf)
    return best


def test_levels_and_temperatures_of_six_periods():
    """General integers beside reals in each network, and rows that tie the periods together."""
    problem, net, numbers = periods()
    truth = least_cost(net, *numbers)
    searched, proved = (Auto(effort=4, exact=False), "feasible"), (Auto(effort=4), "optimal")
    for method, status in (searched, proved) if FULL else (proved,):
        result = dt.solve(problem, method, time_limit=600.0, log=False)
        assert result.status == status
        assert result.objective == pytest.approx(truth, abs=1e-5)
        assert dt.check(problem, result.x).within()


def test_a_concave_network_is_solved_to_a_proof_where_it_can_be_written():
    net = nn.Sequential(linear_net([[1.0], [-1.0]], [-0.5, 0.5]), nn.ReLU(), linear_net([-1.0, -1.0], 1.0))
    mip = dt.Mip(cost=[0.1, 1.0], lower=[-2.0, -9.0], upper=[2.0, 9.0], sense="max")
    problem = dt.Problem(mip)
    problem.add_predictor(net, [0], [1])
    result = dt.solve(problem, log=False)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(1.05, abs=1e-6)


@pytest.mark.parametrize("seed", range(3 if FULL else 1))
def test_classes_under_one_budget_are_a_knapsack(seed):
    """Raising sample i by deficit_i flips it, which is worth value_i: a common budget, by brute force."""
    n = 9
    rng = np.random.default_rng(seed)
    deficit, value = rng.uniform(0.2, 1.5, n), rng.uniform(0.5, 2.0, n)
    budget = 0.4 * deficit.sum()
    eye = np.eye(n)
    A = np.vstack([np.hstack([eye, -eye, 0 * eye]), [*np.zeros(n), *np.ones(n), *np.zeros(n)]])
    mip = dt.Mip(
        cost=np.concatenate([np.zeros(2 * n), value]),
        A=A,
        row_lower=np.append(-deficit, -np.inf),
        row_upper=np.append(-deficit, budget),
        lower=np.repeat([-np.inf, 0.0, 0.0], n),
        upper=np.repeat([np.inf, 3.0, 1.0], n),
        sense="max",
    )
    problem = dt.Problem(mip)
    net = nn.Sequential(linear_net([[2.0], [1.0]]), nn.Tanh(), linear_net([1.0, 0.5]))  # 0 at 0, and rising
    columns = np.arange(n)[:, None]
    problem.add_predictor(net, columns, 2 * n + columns, output_type="classification")
    truth = max(
        sum(value[list(some)])
        for k in range(n + 1)
        for some in itertools.combinations(range(n), k)
        if deficit[list(some)].sum() <= budget - 1e-3  # room for the margins
    )
    result = dt.solve(problem, Auto(effort=12, exact=False), log=False)
    assert "block prices" in result.trace.column("part")
    assert result.objective == pytest.approx(truth, abs=1e-6)


# --- promises --------------------------------------------------------------------------------------------


def coupled_classes(n=4, *, smooth=False, budget=0.15):
    """Water in small: samples under tight common budgets; a smooth network cannot be written out."""
    X, _ = look_alike(0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    net = made(Residual, 2, len(FEATURES)) if smooth else random_mlp(len(FEATURES), width=5, layers=1, seed=1)
    problem = formulate(X[:n], net, Training(1.0, 0.5, 1.0, 1)).problem
    upper = np.where(problem.mip.row_upper == 2.0, budget, problem.mip.row_upper)
    return problem.derived(replace(problem.mip, row_upper=upper), problem.blocks)


def coupled_smooth_classes():
    return coupled_classes(8, smooth=True)


def mixed_integers():
    mip = dt.Mip(
        cost=[0.1, -0.1, 0.3, 0.2, 1.0, -1.0],
        A=[[1.0, 1.0, 1.0, 1.0, 0.0, 0.0]], row_lower=[0.5], row_upper=[3.0],
        lower=[0.0, 0.0, -1.0, -1.0, -np.inf, 0.0], upper=[3.0, 1.0, 1.0, 1.0, np.inf, 1.0],
        integer=[True, True, False, False, False, False],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(made(Residual, 5, 4), [0, 1, 2, 3], [4])
    problem.add_predictor(random_mlp(2, seed=9), [1, 2], [5], output_type="classification")
    return problem


@volume("the conformance suite solves such a problem twice, by every method")
@pytest.mark.parametrize(
    "make", [coupled_classes, coupled_smooth_classes, mixed_integers], ids=lambda make: make.__name__
)
def test_two_solves_with_one_seed_are_the_same(make):
    def run():
        result = dt.solve(make(), Auto(effort=1), seed=4, time_limit=600.0, log=False)
        steps = [
            row for row in result.trace if not np.isnan(row.objective)
        ]  # bounds are reported by the clock
        return result.x.tobytes(), repr([(row.objective, row.incumbent) for row in steps])

    assert run() == run()


@pytest.mark.parametrize(
    "net", [random_mlp(2, seed=3), made(Residual, 1, 2), made(Recurrent, 1)], ids=["relu", "residual", "lstm"]
)
@pytest.mark.parametrize("integer", [True, False], ids=["integers", "reals"])
def test_an_output_that_cannot_be_reached_is_infeasible_with_the_nearest_miss(net, integer):
    mip = dt.Mip(
        cost=[1.0, 1.0, 0.0], A=[[0.0, 0.0, 1.0]], row_lower=[1e3], row_upper=[2e3],
        lower=[-1.0, -1.0, -np.inf], upper=[1.0, 1.0, np.inf], integer=[integer, integer, False],
        row_names=["enough"],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(net, [0, 1], [2])
    result = dt.solve(problem, Auto(effort=2), log=False)
    assert result.status == "infeasible"
    assert result.x is None
    assert "the nearest candidate violates constraint enough by" in result.message


def test_a_hundredth_of_a_second_is_a_result_too():
    problem = water(100, epochs=2, allow_constant=True).problem
    result = dt.solve(problem, time_limit=0.01, log=False)
    assert result.stop_reason == "time"
    assert result.status in ("feasible", "no_solution")
    if result.x is not None:
        assert dt.check(problem, result.x).within()


@pytest.mark.parametrize("limit", [0.0, 0.05, 0.3])
def test_short_limits_have_results_with_integers_and_tables(limit):
    problem = mixed_integers()
    result = dt.solve(problem, time_limit=limit, log=False)
    assert result.status in ("feasible", "no_solution", "optimal")


def test_options_that_make_no_sense_are_refused():
    with pytest.raises(dt.OptionError, match="Auto: effort"):
        Auto(effort=0)


@pytest.mark.parametrize("off", ["tables", "exact", "block_prices"])
def test_every_part_can_be_left_out(off):
    problem = coupled_classes(3) if off == "columns" else mixed_integers()
    result = dt.solve(problem, Auto(effort=1, **{off: False}), log=False)
    assert result.x is not None
    assert dt.check(problem, result.x).within()


def test_a_classifier_that_is_an_empty_network():
    """nn.Identity: class 1 where the input is at least 0."""
    mip = dt.Mip(cost=[1.0, -5.0], lower=[-1.0, 0.0], upper=1.0)
    problem = dt.Problem(mip)
    problem.add_predictor(nn.Identity(), [0], [1], output_type="classification", threshold=0.0)
    result = dt.solve(problem, Auto(effort=2), log=False)
    assert result.objective == pytest.approx(-5.0, abs=2e-4)


def test_inputs_that_are_all_fixed_make_a_table_of_one_row():
    mip = dt.Mip(cost=[0.0, 1.0, 1.0], lower=[0.5, -np.inf, 0.0], upper=[0.5, np.inf, 1.0])
    problem = dt.Problem(mip)
    net = random_mlp(1, seed=2)
    problem.add_predictor(net, [0], [1])
    result = dt.solve(problem, log=False)
    with torch.no_grad():
        truth = float(net(torch.tensor([[0.5]], **DOUBLE)))
    assert result.status == "optimal"
    assert result.objective == pytest.approx(truth, abs=1e-9)


@pytest.mark.skipif(not FULL, reason="volume: six seconds of waiting")
def test_a_slow_first_mip_step_is_not_the_end():
    """A hard equality knapsack: the first MIP step finds its point only after its slice."""
    rng = np.random.default_rng(3)
    A = rng.integers(1, 100, (3, 24)).astype(float)
    right = A @ rng.integers(0, 2, 24)
    side = np.hstack([A, np.zeros((3, 1))])
    p = problem_of(
        np.append(np.zeros(24), 1.0),
        side,
        right,
        right,
        lower=np.append(np.zeros(24), -np.inf),
        upper=np.append(np.ones(24), np.inf),
        integer=np.append(np.ones(24, bool), False),
    )
    p.add_predictor(tanh_net(24), np.arange(24), [24])
    result = dt.solve(p, time_limit=6.0, log=False)
    assert result.x is not None or result.seconds > 4.5


def test_a_gap_that_rounding_keeps_open_is_not_searched_for_ever():
    """What a float32 network rounds keeps the gap open: nothing more is found, and that is the end of it."""
    net = nn.Sequential(nn.Linear(2, 1), nn.ReLU())
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, -2.0]]))
        net[0].bias.fill_(0.5)
    problem = dt.Problem(dt.Mip([-1.0, 0.0, 1.5], upper=[3.0, 1.0, 9.0], integer=[True, False, False]))
    problem.add_predictor(net, [0, 1], [2])
    result = dt.solve(problem, Auto(patience=3), time_limit=60.0, log=False)
    assert result.objective == pytest.approx(-1.25, abs=1e-5)
    assert result.stop_reason in ("stalled", "proved")


class Closing:
    """A proof that ends with a bound so far from the best point."""

    name = "closing"

    def __init__(self, apart):
        self._apart = apart

    def solve(self, context):
        context.incumbent.offer(np.array([0.0, 0.0]), "here")
        context.incumbent.raise_bound(Bound(context.incumbent.objective - self._apart, "boxes"))
        return MethodOutcome(StopReason.STALLED, 1, closed=True)


class Ran:
    """Says that it ran."""

    name = "ran"

    def __init__(self, heard, called):
        self._heard, self._called = heard, called

    def solve(self, context):
        self._heard.append(self._called)
        return MethodOutcome(StopReason.STALLED, 1)


def run_with(monkeypatch, apart, **phase):
    """The phases that a plan of three runs after a proof that is closed."""
    heard = []

    def made(method, **more):
        return Phase(method.name, "always", lambda facts: True, lambda options: method, "why", **more)

    searches = [made(Ran(heard, "exact")), made(Ran(heard, "search"), **phase)]
    monkeypatch.setattr("dovetail.methods.phases.PHASES", [made(Closing(apart)), *searches])
    return heard, dt.solve(waves(), time_limit=10.0, log=False)


def waves():
    problem = dt.Problem(dt.Mip([0.5, 1.0], lower=[-1.0, -9.0], upper=[1.0, 9.0], offset=1.0))
    problem.add_predictor(lambda X: np.abs(np.sin(X)), [0], [1])
    return problem


def test_what_a_closed_proof_leaves_open_is_searched(monkeypatch):
    heard, result = run_with(monkeypatch, 1e-3)
    assert heard == ["exact", "search"]
    assert (result.status, result.stop_reason) == ("feasible", "stalled")


def test_what_a_closed_proof_leaves_to_tolerances_is_not_searched(monkeypatch):
    monkeypatch.setattr("dovetail.solving.job.worth_of_rounding", lambda *a: 2e-3)
    heard, result = run_with(monkeypatch, 1e-3)
    assert heard == []
    assert (result.status, result.stop_reason) == ("optimal", "proved")
    assert "from the rounding of the predictors" in result.message
    assert result.allowed_gap == pytest.approx(1e-3)


def test_a_phase_that_is_left_in_the_middle_of_a_step_keeps_what_was_said_before(monkeypatch):
    def leave(_, context):
        context.budget.stop(StopReason.CALLBACK)
        raise OutOfTime

    monkeypatch.setattr(Ran, "solve", leave)
    monkeypatch.setattr(Closing, "solve", lambda self, context: MethodOutcome(StopReason.STALLED, 1, "said"))
    _, result = run_with(monkeypatch, 1e-3)
    assert result.stop_reason == "callback"
    assert "said" in result.message


class Resting(Ran):
    """Works for ever, and says when it was told to leave."""

    def solve(self, context):
        try:
            while not context.over:
                work.count(effort=0.01)
        finally:
            self._heard.append(self._called)
        return MethodOutcome(StopReason.STALLED, 1)


class Failing(Ran):
    def solve(self, context):
        raise ZeroDivisionError


def test_an_error_leaves_no_other_part_in_the_middle_of_its_work(monkeypatch):
    """An engine that rests on a thread of its own would end the process with a fault."""
    left = []
    parts = [
        Phase(method.name, "always", lambda facts: True, lambda options, method=method: method, "why")
        for method in (Resting(left, "rested"), Failing(left, "failed"))
    ]
    monkeypatch.setattr("dovetail.methods.phases.PHASES", parts)
    with pytest.raises(ZeroDivisionError) as kept:
        dt.solve(waves(), time_limit=10.0, log=False)
    assert left == ["rested"]
    assert kept.value is not None, "its traceback holds all that was at work"
