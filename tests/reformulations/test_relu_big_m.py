"""Networks written out: scipy's optimum of the MIP against enumeration and fine grids."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import dovetail as dt
from dovetail.bounds.box import propagate
from dovetail.reformulations.reformulated import Reformulated
from dovetail.reformulations.relu_big_m import ReluBigM, written_out
from dovetail.structure.relu_layers import dense_layers, relu_layers
from tests.conftest import FULL, sample
from tests.contexts import best_of, breach, by_scipy, choices
from tests.small import linear_net, random_mlp

SEEDS = range(6 if FULL else 1)


def problem_over(lower, upper, integer, outputs, *, sense="min", seed=0, bounds=(-np.inf, np.inf)):
    """Decisions with the given bounds, then `outputs` free columns that carry most of the cost."""
    rng, k = np.random.default_rng(seed), len(lower)
    mip = dt.Mip(
        cost=np.concatenate([rng.normal(0, 0.2, k), rng.normal(0, 1.0, outputs)]),
        A=np.concatenate([np.ones((1, k)), np.zeros((1, outputs))], axis=1),
        row_lower=[-np.inf],
        row_upper=[float(np.sum(upper)) - 1.0],
        lower=np.concatenate([lower, np.full(outputs, bounds[0])]),
        upper=np.concatenate([upper, np.full(outputs, bounds[1])]),
        integer=np.concatenate([np.full(k, integer), np.zeros(outputs, bool)]),
        sense=sense,
    )
    return dt.Problem(mip)


def regression(lower, upper, integer, seed, layers):
    problem = problem_over(lower, upper, integer, 2, seed=seed, sense="max" if seed % 2 else "min")
    problem.add_predictor(random_mlp(2, 2, width=4, layers=layers, seed=seed), [0, 1], [2, 3])
    return problem


def one_logit(lower, upper, integer, seed, layers):
    problem = problem_over(lower, upper, integer, 1, seed=seed, bounds=(0.0, 1.0))
    net = random_mlp(2, width=4, layers=layers, seed=seed + 20)
    problem.add_predictor(net, [1, 0], [2], output_type="classification")
    return problem


def three_classes(lower, upper, integer, seed, layers):
    problem = problem_over(lower, upper, integer, 3, seed=seed, bounds=(0.0, 1.0), sense="max")
    net = random_mlp(2, 3, width=4, layers=layers, seed=seed)
    problem.add_predictor(net, [0, 1], [2, 3, 4], output_type="classification")
    return problem


def chained(lower, upper, integer, seed, layers):
    """A regression whose output another network reads, and a class that a third one reads."""
    problem = problem_over(lower, upper, integer, 4, seed=seed, bounds=(-np.inf, np.inf))
    mip = problem.mip
    low, high = mip.lower.copy(), mip.upper.copy()
    low[3], high[3] = 0.0, 1.0
    problem = dt.Problem(replace(mip, lower=low, upper=high))
    problem.add_predictor(random_mlp(2, width=3, layers=layers, seed=seed), [0, 1], [2])
    problem.add_predictor(
        random_mlp(2, width=3, layers=1, seed=seed + 1), [2, 0], [3], output_type="classification"
    )
    problem.add_predictor(random_mlp(2, width=3, layers=1, seed=seed + 2), [[3, 1], [3, 2]], [[4], [5]])
    return problem


def twice(lower, upper, integer, seed, layers):
    """A sample that reads one column twice."""
    problem = problem_over(lower, upper, integer, 1, seed=seed)
    problem.add_predictor(random_mlp(3, width=4, layers=layers, seed=seed), [0, 1, 0], [2])
    return problem


KINDS = (regression, one_logit, three_classes, chained, twice)


def as_mip(problem, **options):
    layers = relu_layers(problem, propagate(problem.mip))
    reformulated = written_out(layers, Reformulated.start(problem, propagate(problem.mip)), **options)
    assert reformulated.problem.mip.integer[problem.mip.n_columns :].sum() == layers.unstable
    assert reformulated.problem.blocks == ()
    return reformulated


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("layers", sample([2, 1, 3]))
@pytest.mark.parametrize("seed", SEEDS)
def test_over_integers_it_is_the_problem(kind, layers, seed):
    problem = kind([-2.0, -1.0], [2.0, 3.0], True, seed, layers)
    reformulated = as_mip(problem)
    truth = best_of(problem, choices(problem))
    objective, z = by_scipy(reformulated.problem.mip)
    assert objective == pytest.approx(truth[0], abs=1e-5)
    x = reformulated.restrict(z)
    whole = np.where(problem.mip.integer, np.round(x), x)
    assert problem.predict(whole) == pytest.approx(x, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("seed", SEEDS)
def test_over_reals_it_bounds_a_fine_grid_and_is_met_by_the_network(kind, seed):
    problem = kind([-1.0, -1.0], [1.0, 1.5], False, seed, 1 + seed % 2)
    reformulated = as_mip(problem)
    mip = problem.mip
    axes = np.meshgrid(np.linspace(-1, 1, 41), np.linspace(-1, 1.5, 51))
    grid = np.zeros((41 * 51, mip.n_columns))
    grid[:, 0], grid[:, 1] = axes[0].ravel(), axes[1].ravel()
    points = predicted(problem, grid)
    points = points[np.max(points @ mip.A.toarray().T - mip.row_upper, axis=1) <= 1e-12]
    seen = mip.sign * (points @ mip.cost)
    objective, z = by_scipy(reformulated.problem.mip)
    assert mip.sign * objective <= seen.min() + 1e-6
    # a tight one: the networks meet it at its own point, or (at a class boundary) nearly everywhere around
    x = reformulated.restrict(z)
    if not any(block.classifies for block in problem.blocks):
        assert problem.predict(x) == pytest.approx(x, abs=1e-5)
        assert mip.sign * objective >= seen.min() - 0.6


def predicted(problem, points):
    """`problem.predict` for many points at once."""
    points = points.copy()
    for stage in problem.stages:
        for block, samples in stage:
            for i in samples:
                values = block.predictor.predict(points[:, block.inputs[i]])
                points[:, block.outputs[i]] = block.decode(values)
    return points


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_point_of_the_problem_can_be_lifted(kind):
    problem = kind([-1.0, -1.0], [1.0, 1.5], False, 3, 2)
    reformulated = as_mip(problem)
    rng = np.random.default_rng(0)
    for _ in range(50):
        x = np.zeros(problem.mip.n_columns)
        x[:2] = rng.uniform([-1, -1], [1, 1.5])
        if x[:2].sum() > 1.5:
            continue
        x = problem.predict(x)
        z = reformulated.lift(x)
        assert np.array_equal(reformulated.restrict(z), x)
        assert breach(reformulated.problem.mip, z) <= 1e-9


def test_a_point_that_lies_is_not_in_it():
    """The MIP leaves outputs no choice: with the inputs held, least and largest output are the network's."""
    problem = regression([-1.0, -1.0], [1.0, 1.5], False, 1, 2)
    mip = as_mip(problem).problem.mip
    rng = np.random.default_rng(1)
    for _ in range(5):
        x = np.zeros(4)
        x[:2] = rng.uniform(-1, 0.5, 2)
        lower, upper = mip.lower.copy(), mip.upper.copy()
        lower[:2] = upper[:2] = x[:2]
        for sense in ("min", "max"):
            cost = np.zeros(mip.n_columns)
            cost[2] = 1.0
            held = replace(mip, cost=cost, lower=lower, upper=upper, sense=sense)
            assert by_scipy(held)[0] == pytest.approx(problem.predict(x)[2], abs=1e-6)


def test_a_sigmoid_at_the_end_of_a_classifier_is_looked_through():
    for threshold in (None, 0.3):
        problem = problem_over([-2.0, -2.0], [2.0, 2.0], True, 1, seed=4, bounds=(0.0, 1.0), sense="max")
        net = nn.Sequential(random_mlp(2, width=4, seed=7), nn.Sigmoid())
        problem.add_predictor(net, [0, 1], [2], output_type="classification", threshold=threshold)
        truth = best_of(problem, choices(problem))
        objective, _ = by_scipy(as_mip(problem).problem.mip)
        assert objective == pytest.approx(truth[0], abs=1e-6)


@pytest.mark.parametrize("last", [nn.GELU(), nn.Tanh(), nn.Sigmoid(), nn.LayerNorm(4, dtype=torch.float64)])
def test_networks_that_cannot_be_written_are_none(last):
    problem = problem_over([0.0, 0.0], [1.0, 1.0], False, 1)
    net = nn.Sequential(nn.Linear(2, 4, dtype=torch.float64), last, nn.Linear(4, 1, dtype=torch.float64))
    block = problem.add_predictor(net, [0, 1], [2])
    assert dense_layers(problem, block) is None
    assert relu_layers(problem, propagate(problem.mip)) is None


def test_a_plain_function_and_a_regression_that_ends_in_a_sigmoid_are_none():
    problem = problem_over([0.0, 0.0], [1.0, 1.0], False, 2)
    function = problem.add_predictor(lambda X: X[:, :1] ** 2, [0, 1], [2])
    squashed = problem.add_predictor(nn.Sequential(random_mlp(2), nn.Sigmoid()), [0, 1], [3])
    assert dense_layers(problem, function) is None
    assert dense_layers(problem, squashed) is None


def test_a_network_that_computes_something_else_is_none():
    """A hook changes what a module says without a trace in its layers."""
    problem = problem_over([0.0, 0.0], [1.0, 1.0], False, 1)
    net = random_mlp(2)
    net.register_forward_hook(lambda module, inputs, output: output + 1.0)
    block = problem.add_predictor(net, [0, 1], [2])
    assert dense_layers(problem, block) is None


def test_inputs_without_a_box_are_none():
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=-np.inf))
    problem.add_predictor(random_mlp(1), [0], [1])
    assert relu_layers(problem, propagate(problem.mip)) is None


def test_neurons_that_cannot_change_sign_need_no_binary():
    # x in [1, 2]: neuron 0 always on (x), neuron 1 always off (-x), neuron 2 open (x - 1.5)
    net = nn.Sequential(
        linear_net([[1.0], [-1.0], [1.0]], [0.0, 0.0, -1.5]), nn.ReLU(), linear_net([1.0, 1.0, -3.0])
    )
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=[1.0, -np.inf], upper=[2.0, np.inf]))
    problem.add_predictor(net, [0], [1])
    reformulated = as_mip(problem)
    assert relu_layers(problem, propagate(problem.mip)).unstable == 1
    assert reformulated.problem.mip.integer.sum() == 1
    assert by_scipy(reformulated.problem.mip)[0] == pytest.approx(0.5)  # at x = 2: 2 - 1.5
    assert by_scipy(replace(reformulated.problem.mip, sense="max"))[0] == pytest.approx(1.5)  # at the kink


def test_a_margin_keeps_logits_away_from_the_boundary():
    epsilon = 0.25
    for cost, sense in ((0.0, "min"), (0.0, "max")):
        # y is class 1 where x - 0.5 >= 0; with y held, x goes as near to the boundary as it may
        for held, nearest in ((1.0, 0.75), (0.0, 0.25)):
            mip = dt.Mip(cost=[1.0, cost], lower=[-1.0, held], upper=[2.0, held], sense=sense)
            problem = dt.Problem(mip)
            problem.add_predictor(
                linear_net([1.0], -0.5), [0], [1], output_type="classification", epsilon=epsilon
            )
            objective, _ = by_scipy(as_mip(problem, margin=True).problem.mip)
            plain, _ = by_scipy(as_mip(problem).problem.mip)
            towards = (sense == "min") == (held == 1.0)
            assert objective == pytest.approx(nearest if towards else (2.0 if sense == "max" else -1.0))
            assert plain == pytest.approx(0.5 if towards else (2.0 if sense == "max" else -1.0))


def test_a_margin_keeps_the_winner_ahead():
    # logits (x, 1 - x): class 0 while x >= 0.5, and with a margin of 0.3 while 2 x - 1 >= 0.3
    mip = dt.Mip(cost=[1.0, 0.0, 0.0], lower=[0.0, 1.0, 0.0], upper=[1.0, 1.0, 1.0])
    problem = dt.Problem(mip)
    net = linear_net([[1.0], [-1.0]], [0.0, 1.0])
    problem.add_predictor(net, [0], [1, 2], output_type="classification", epsilon=0.3)
    assert by_scipy(as_mip(problem, margin=True).problem.mip)[0] == pytest.approx(0.65)
    assert by_scipy(as_mip(problem).problem.mip)[0] == pytest.approx(0.5)


def test_points_with_a_margin_have_clear_logits():
    problem = one_logit([-1.0, -1.0], [1.0, 1.5], False, 1, 2)
    (block,) = problem.blocks
    problem = problem.derived(problem.mip, (replace(block, epsilon=0.05),))
    rng = np.random.default_rng(0)
    mip = as_mip(problem, margin=True).problem.mip
    seen = set()
    for _ in range(10):
        cost = np.zeros(mip.n_columns)
        cost[:3] = rng.normal(size=3)
        found = by_scipy(replace(mip, cost=cost))
        x = found[1][:3]
        logit = float(block.predictor.predict(x[None, [1, 0]])[0, 0])
        assert abs(logit) >= 0.05 - 1e-5
        assert (logit > 0) == (x[2] > 0.5)
        seen.add(bool(x[2] > 0.5))
    assert seen == {True, False}


def test_weights_that_cancel_in_a_column_read_three_times():
    """0.1 + 0.2 - 0.3 is 5.6e-17: an entry no engine takes, and none that matters."""
    net = nn.Sequential(linear_net([[0.1, 0.2, -0.3, 1.0]]), nn.ReLU(), linear_net([1.0]))
    mip = dt.Mip(cost=[0.0, 0.0, 1.0], lower=[-1.0, -1.0, -np.inf], upper=[1.0, 1.0, np.inf])
    problem = dt.Problem(mip)
    problem.add_predictor(net, [0, 0, 0, 1], [2])
    assert by_scipy(as_mip(problem).problem.mip)[0] == pytest.approx(0.0, abs=1e-9)


def test_a_class_without_bounds_that_feeds_a_network_is_known_to_be_0_or_1():
    mip = dt.Mip(cost=[0.0, 0.0, 1.0], lower=[-1.0, -np.inf, -np.inf], upper=[1.0, np.inf, np.inf])
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [0], [1], output_type="classification")
    problem.add_predictor(random_mlp(2, width=3, layers=1), [0, 1], [2])
    assert relu_layers(problem, propagate(mip)) is not None


def deployed(seed, dtype, offset):
    """Two continuous inputs and a network with large numbers inside, in its own dtype."""
    rng = np.random.default_rng(seed)
    net = random_mlp(2, 2, width=5, layers=2, seed=seed, dtype=dtype)
    with torch.no_grad():
        net[0].bias += offset
        net[4].bias += offset * torch.as_tensor(rng.normal(size=2), dtype=dtype)
    return net


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("offset", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("classifies", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_the_network_says_in_its_own_dtype_is_in_it(dtype, offset, classifies, seed):
    """Rows for a bound hold at every answer, asked for alone or in a batch, to what float64 can tell."""
    net = deployed(seed, dtype, offset)
    limits = (0.0, 1.0) if classifies else (-np.inf, np.inf)
    problem = problem_over([-1.0, -1.0], [1.0, 1.5], False, 2, bounds=limits)
    kind = "classification" if classifies else "regression"
    block = problem.add_predictor(net, [0, 1], [2, 3], output_type=kind)
    reformulated = as_mip(problem)
    X = np.random.default_rng(seed).uniform([-1, -1], [0.5, 1], (100, 2))
    together = block.decode(block.predictor.predict(X))
    alone = np.concatenate([block.decode(block.predictor.predict(x[None])) for x in X])
    for values in (together, alone):
        for x, y in zip(X, values, strict=True):
            z = reformulated.lift(np.concatenate([x, y]))
            assert breach(reformulated.problem.mip, z) <= 1e-14 * 100 * max(1.0, offset)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_ties_of_saturated_classes_are_in_it(dtype):
    """tanh(30 x) is 1.0 for both classes from x = 1 on: the first wins, though its logit is the smaller."""
    problem = problem_over([0.0], [4.0], True, 2, bounds=(0.0, 1.0))
    net = nn.Sequential(linear_net([[30.0], [31.0]], dtype=dtype), nn.Tanh())
    problem.add_predictor(net, [0], [1, 2], output_type="classification")
    reformulated = as_mip(problem)
    x = problem.predict(np.array([3.0, 0.0, 0.0]))
    assert x[1] == 1.0  # the one that is behind
    assert breach(reformulated.problem.mip, reformulated.lift(x)) <= 1e-9


def test_float32_is_known_to_less_than_float64():
    found = []
    for dtype in (torch.float32, torch.float64):
        problem = problem_with(random_mlp(2, dtype=dtype))
        given = Reformulated.start(problem, propagate(problem.mip))
        found.append(relu_layers(problem, given.box))
        written = ReluBigM(found[-1]).apply(given)
        assert written.proves and written.relaxed is None  # nothing but the objective reads the output
    loose, tight = found
    assert loose.pieces[0].slack.max() > 1e7 * tight.pieces[0].slack.max()


def problem_with(net):
    problem = problem_over([-1.0, -1.0], [1.0, 1.0], False, 1)
    problem.add_predictor(net, [0, 1], [2])
    return problem
