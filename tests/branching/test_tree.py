"""Branch and bound over columns and neurons: bounds are below every point, and small problems are proved."""

import math

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.branching.candidates import candidates, remaining
from dovetail.branching.divisions import NO_CUTS
from dovetail.branching.pace import STRICTNESS, Pace, next_of
from dovetail.branching.root import Root
from dovetail.branching.tree import Tree
from dovetail.methods.branching import Branching
from dovetail.methods.branching_model import model, model_of
from dovetail.run.budget import Budget
from tests.conftest import FULL
from tests.contexts import context_of
from tests.differential.instances import make
from tests.differential.judging import judge
from tests.differential.tally import Tally

PARTS = 40 if FULL else 1
SEEDS = range(2000) if FULL else range(3)
EXACT = 1e-7
"""Relative: the LP's value, and what its multipliers prove."""
ROUNDING = 1e-9
ACTIVATIONS = (torch.nn.ReLU, torch.nn.Tanh, torch.nn.SiLU)


def several_networks(activation=torch.nn.ReLU, seed=0, count=2, inputs=2, least=-np.inf):
    """Networks on inputs of their own, of which one is an integer; a row over all of them, and one that
    asks for a least sum of their outputs."""
    rng = np.random.default_rng(seed)
    d, n = inputs * count, (inputs + 1) * count
    mip = dt.Mip(
        cost=np.append(rng.normal(size=d), np.ones(count)),
        A=np.stack([np.append(np.ones(d), np.full(count, 0.1)), np.append(np.zeros(d), np.ones(count))]),
        row_lower=[-1.0, least],
        row_upper=[2.0, np.inf],
        lower=np.append(np.full(d, -2.0), np.full(count, -np.inf)),
        upper=np.append(np.full(d, 2.0), np.full(count, np.inf)),
        integer=np.arange(n) == 0,
    )
    problem = dt.Problem(mip)
    for k in range(count):
        network = torch.nn.Sequential(
            torch.nn.Linear(inputs, 6),
            activation(),
            torch.nn.Linear(6, 6),
            activation(),
            torch.nn.Linear(6, 1),
        ).double()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.copy_(torch.from_numpy(0.7 * rng.normal(size=parameter.shape)))
        problem.add_predictor(network, np.arange(inputs * k, inputs * (k + 1))[None], np.array([[d + k]]))
    return problem


def points(problem, many=400, seed=1):
    """Feasible points, with the networks' own outputs."""
    rng, mip = np.random.default_rng(seed), problem.mip
    found = []
    for _ in range(many):
        x = np.zeros(mip.n_columns)
        for block in problem.blocks:
            read = block.inputs[0]
            x[read] = rng.uniform(mip.lower[read], mip.upper[read])
            x[read] = np.where(mip.integer[read], np.round(x[read]), x[read])
            x[block.outputs[0]] = block.predictor.predict(x[read][None])[0]
        if np.all(mip.A @ x >= mip.row_lower) and np.all(mip.A @ x <= mip.row_upper):
            found.append(x)
    return found


def tree_of(problem):
    mip = problem.mip
    with torch.no_grad():
        made = model_of(problem.derived(mip.minimised(), problem.blocks), mip.lower, mip.upper)
        tree = Tree(made, seed=0, threads=1)
        root = tree.root
        assert made.tighten(root.lower[None], root.upper[None], math.inf)[0]
    return tree, root


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_multipliers_prove_the_value_of_the_lp(activation):
    tree, root = tree_of(several_networks(activation))
    with torch.no_grad():
        solved = tree.lp.solve(root.lower[None], root.upper[None], Budget())[0]
        host = tree.model.host
        bound, _ = solved.multipliers.bound(
            host, tree.model.networks, root.lower[None], root.upper[None], math.inf
        )
    value = host.cost @ solved.x[: host.columns] + host.offset
    assert bound[0] <= value + EXACT * (1.0 + abs(value))
    assert bound[0] == pytest.approx(value, rel=EXACT)


@pytest.mark.parametrize("activation", ACTIVATIONS if FULL else ACTIVATIONS[:2])
@pytest.mark.parametrize("seed", range(20 if FULL else 1))
def test_no_bound_is_above_a_point(activation, seed):
    """After every step of the tree, whatever shrank its first box before: below the goal, nothing is lost."""
    problem = several_networks(activation, seed)
    best = min(problem.mip.objective(x) for x in points(problem))
    tree, _ = tree_of(problem)
    goal = best + 0.5
    with torch.no_grad():
        smaller = Root(tree.model, seed=0, threads=1)
        smaller.shrink(goal, Budget())
        assert smaller.done and smaller.bound <= best
        tree.use(smaller.model, smaller.bound)
        for _ in range(20 if FULL else 4):
            tree.step(goal, Budget())
            assert tree.bound <= best


def test_rows_of_single_networks_raise_the_bound():
    problem = several_networks(count=2)
    goal = min(problem.mip.objective(x) for x in points(problem))
    tree, root = tree_of(problem)
    smaller = Root(tree.model, seed=0, threads=1)
    with torch.no_grad():
        solved = tree.lp.solve(root.lower[None], root.upper[None], Budget())[0]
        host = tree.model.host
        smaller.shrink(goal, Budget())
    assert smaller.model.host.A.shape[0] > host.A.shape[0]
    assert smaller.bound > host.cost @ solved.x[: host.columns] + 0.01


@pytest.mark.parametrize("activation", ACTIVATIONS if FULL else ACTIVATIONS[:2])
@pytest.mark.parametrize("seed", range(20 if FULL else 1))
@pytest.mark.parametrize("inputs", [2, 5])
def test_the_first_box_holds_every_point_that_is_better(activation, seed, inputs):
    """Five inputs are too many for cells: their networks have neurons in every LP."""
    problem = several_networks(activation, seed, inputs=inputs)
    known = points(problem)
    values = np.array([problem.mip.objective(x) for x in known])
    goal = float(np.quantile(values, 0.3))
    tree, _ = tree_of(problem)
    smaller = Root(tree.model, seed=0, threads=1)
    with torch.no_grad():
        smaller.shrink(goal, Budget())
    n, better = problem.mip.n_columns, np.array(known)[values < goal]
    assert np.all(better >= smaller.lower[:n] - ROUNDING) and np.all(better <= smaller.upper[:n] + ROUNDING)
    assert np.all(smaller.lower >= tree.model.lower) and np.all(smaller.upper <= tree.model.upper)
    assert smaller.bound <= values.min()


def test_below_every_point_the_first_box_is_empty():
    problem = several_networks(count=2)
    tree, _ = tree_of(problem)
    goal = min(problem.mip.objective(x) for x in points(problem)) - 100.0
    smaller = Root(tree.model, seed=0, threads=1)
    with torch.no_grad():
        smaller.shrink(goal, Budget())
        tree.use(smaller.model, smaller.bound)
        assert tree.step(goal, Budget()) == [] and not len(tree)
    assert smaller.done and tree.bound == goal


@pytest.mark.parametrize("activation", ACTIVATIONS if FULL else ACTIVATIONS[:2])
def test_a_small_problem_is_proved(activation):
    problem = several_networks(activation)
    result = dt.solve(problem, Branching(), gap=1e-6, log=False)
    assert result.status == "optimal"
    assert result.objective <= min(problem.mip.objective(x) for x in points(problem))


def test_an_infeasible_problem_is_proved():
    """The outputs' sum would have to be more than any point gives."""
    problem = several_networks()
    most = max(x[problem.outputs].sum() for x in points(problem, 4000))
    result = dt.solve(several_networks(least=2.0 * most + 1.0), Branching(), log=False)
    assert result.status == "infeasible"


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600)
def test_against_the_enumerated_optimum(part):
    tally = Tally()
    for seed in SEEDS[part::PARTS]:
        judge(make(seed), Branching(), tally)
    assert tally.faults == []


def test_a_tree_goes_on_where_it_was():
    context = context_of(several_networks())
    first = Branching().solve(context)
    assert context.over
    assert Branching().solve(context).message == first.message


def test_a_goal_that_rises_again_brings_no_box_back():
    """A steadier point may be worse by a hair: what was closed for the better one stays closed."""
    problem = several_networks()
    best = min(problem.mip.objective(x) for x in points(problem))
    tree, _ = tree_of(problem)
    with torch.no_grad():
        while len(tree):
            tree.step(best - 5.0, Budget())
    assert tree.bound <= best - 5.0


def test_boxes_are_looked_at_together_as_one_by_one():
    tree, _ = tree_of(several_networks(seed=3))
    made = tree.model
    lower, upper = np.tile(made.lower, (3, 1)), np.tile(made.upper, (3, 1))
    for k in range(3):
        upper[k, made.networks[0].inputs[0, 1]] -= 0.5 * k
    with torch.no_grad():
        assert np.all(made.tighten(lower, upper, math.inf))
        solved = tree.lp.solve(lower, upper, Budget())
    together = candidates(made, lower, upper, solved, [NO_CUTS] * 3)
    sides = [one.sides(*box) for one, *box in zip(together, lower, upper, strict=True)]
    owner = np.repeat(np.arange(3), [len(low) for low, _ in sides])
    parts = tuple(np.concatenate(ends) for ends in zip(*sides, strict=True))
    left = remaining(made, (lower, upper), solved, together, parts, owner)
    for k in range(3):
        box = lower[k : k + 1], upper[k : k + 1]
        (alone,) = candidates(made, *box, solved[k : k + 1], [NO_CUTS])
        assert alone.columns.size and np.array_equal(alone.columns, together[k].columns)
        assert np.allclose(alone.below, together[k].below)
        mine = remaining(made, box, solved[k : k + 1], [alone], sides[k], np.zeros(len(sides[k][0]), int))
        assert np.allclose(mine, left[owner == k])
        assert np.all((left >= 0.0) & (left <= 1.0 + ROUNDING))


def test_the_first_box_is_made_smaller_with_as_much_work_as_boxes_take():
    problem = several_networks(count=1)
    best, (tree, _) = min(problem.mip.objective(x) for x in points(problem)), tree_of(problem)
    tree.shrink_first()
    first, steps = tree.first, []
    with torch.no_grad():
        while len(tree):
            before = first.effort, tree.effort
            tree.step(best, Budget())
            assert tree.effort == before[1] or first.effort == before[0]
            steps.append(first.effort > before[0])
    assert any(steps) and not steps[0]


def test_the_frontier_that_closes_more_of_the_gap_works_more():
    efforts = [Pace(), Pace()]
    for _ in range(200):
        one = next_of(efforts, 3.0)
        one.add(0.1, 2.0 if one is efforts[0] else 1.0)
    assert efforts[0].effort == pytest.approx(2.0**STRICTNESS * efforts[1].effort, rel=0.2)
    efforts = [Pace(), Pace()]
    for _ in range(20):
        one = next_of(efforts, math.inf)
        one.add(0.1, 2.0 if one is efforts[0] else 1.0)
    assert efforts[0].effort == pytest.approx(efforts[1].effort)


def test_rows_are_as_loose_as_the_check_until_a_point_is_known():
    problem = several_networks(count=1)
    written, loose = problem.mip, model(context_of(problem)).host
    above, below = np.isfinite(written.row_upper), np.isfinite(written.row_lower)
    upper, lower = (side[: written.n_rows] for side in (loose.row_upper, loose.row_lower))
    assert above.any() and np.all(upper[above] > written.row_upper[above])
    assert np.all(lower[below] < written.row_lower[below])
