"""The bound by prices is never above the optimum, and near it where blocks are coupled by a budget."""

import itertools

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.decomposition.shard import Shard
from dovetail.methods.component_prices import prices as method
from dovetail.methods.component_prices.kinds import ComponentKind, KindProof, component_kinds
from dovetail.methods.component_prices.prices import BlockPrices
from dovetail.methods.component_prices.shared_rows import SharedRows
from dovetail.methods.sequential_linear import SequentialLinear
from dovetail.run.budget import Budget
from dovetail.structure.components import alike, components
from dovetail.structure.structure import structure_of
from tests.conftest import FULL
from tests.contexts import context_of
from tests.small import random_mlp

SEEDS = range(30 if FULL else 1)
EQUALITIES = list(itertools.product(SEEDS, (False, True))) if FULL else [(1, True)]
"""Seeds, and whether the budget is an equation."""
LEVELS = np.arange(0.0, 4.0)


def coupled(seed, *, integer, equal=False, floor=-np.inf):
    """Four networks of two kinds with two inputs each; a budget (or an equation) over all inputs."""
    rng = np.random.default_rng(seed)
    inputs, outputs = np.arange(8).reshape(4, 2), np.arange(8, 12)[:, None]
    use = np.tile(rng.integers(1, 4, 2), 4)
    row = np.concatenate([use, np.zeros(4)])
    mip = dt.Mip(
        cost=np.concatenate([np.tile(rng.normal(0, 0.3, 2), 4), np.ones(4)]),
        A=row[None],
        row_lower=[12.0 if equal else -np.inf],
        row_upper=[12.0],
        lower=np.concatenate([np.zeros(8), np.full(4, floor)]),
        upper=np.concatenate([np.full(8, 3.0), np.full(4, np.inf)]),
        integer=np.concatenate([np.full(8, integer), np.zeros(4, bool)]),
        sense="max" if seed % 2 else "min",
    )
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(2, width=4, layers=2, seed=seed), inputs[:3], outputs[:3])
    problem.add_predictor(random_mlp(2, width=4, layers=1, seed=seed + 99), inputs[3:], outputs[3:])
    return problem


def truth(problem):
    """Of a problem over integers: what each network may cost by what it uses, then all sums."""
    mip = problem.mip.minimised()
    use, grid = mip.A.toarray()[0], np.array(list(itertools.product(LEVELS, LEVELS)))
    best = {0.0: 0.0}
    for block in problem.blocks:
        for inputs, outputs in zip(block.inputs, block.outputs, strict=True):
            y = block.predictor.predict(grid)[:, 0]
            kept = (y >= mip.lower[outputs[0]]) & (y <= mip.upper[outputs[0]])
            cost, used = grid @ mip.cost[inputs] + mip.cost[outputs[0]] * y, grid @ use[inputs]
            longer: dict[float, float] = {}
            for (u, c), k in itertools.product(best.items(), np.flatnonzero(kept)):
                total = u + used[k]
                longer[total] = min(longer.get(total, np.inf), c + cost[k])
            best = longer
    return min(c for u, c in best.items() if mip.row_lower[0] <= u <= mip.row_upper[0])


def bounded(problem, seconds=20.0):
    context = context_of(problem, seconds)
    SequentialLinear(starts=3).solve(context)
    assert context.once(component_kinds)
    BlockPrices().solve(context)
    return context.incumbent


@pytest.mark.parametrize(("seed", "equal"), EQUALITIES)
def test_it_is_never_above_the_optimum(seed, equal):
    problem = coupled(seed, integer=True, equal=equal)
    least = truth(problem)
    incumbent = bounded(problem)
    assert incumbent.bound <= least + 1e-6 * (1.0 + abs(least))
    assert incumbent.bound >= least - 0.2 * (1.0 + abs(least))


@pytest.mark.parametrize(("seed", "equal"), EQUALITIES)
def test_by_signs_it_is_never_above_the_optimum(seed, equal, monkeypatch):
    monkeypatch.setattr(method, "FEW_NEURONS", -1)
    problem = coupled(seed, integer=True, equal=equal)
    least = truth(problem)
    incumbent = bounded(problem)
    assert np.isfinite(incumbent.bound)
    assert incumbent.bound <= least + 1e-6 * (1.0 + abs(least))


def distances():
    """Two networks |x - 1.5| over whole x: signs prove 0, and no whole point has less than 0.5."""
    mip = dt.Mip(
        cost=[0.0, 0.0, 1.0, 1.0],
        A=[[1.0, 1.0, 0.0, 0.0]],
        row_lower=[1.0],
        row_upper=[np.inf],
        upper=[30.0, 30.0, 90.0, 90.0],
        integer=[True, True, False, False],
    )
    problem = dt.Problem(mip)
    distance = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)).double()
    weights = ([[1.0], [-1.0]], [-1.5, 1.5], [[1.0, 1.0]], [0.0])
    for parameter, values in zip(distance.parameters(), weights, strict=True):
        parameter.data = torch.tensor(values, dtype=torch.float64)
    problem.add_predictor(distance, [[0], [1]], [[2], [3]])
    return problem


def test_trees_take_over_where_signs_leave_integers_out():
    assert bounded(distances()).bound == pytest.approx(1.0, abs=1e-2)


def test_what_signs_leave_out_is_said_where_no_tree_takes_over(monkeypatch):
    monkeypatch.setattr(method, "FEW_NEURONS", -1)
    monkeypatch.setattr(Shard, "prove", lambda *arguments: None)
    seen = []

    def twelve_rounds(event):
        seen.append(event)
        if len(seen) == 12:
            event.stop()

    result = dt.solve(distances(), BlockPrices(), callback=twelve_rounds, log=False)
    assert result.status != "optimal" and result.bound <= 1.0
    said = "the sets of the blocks ignore the integrality of 1 column, which the points found violate"
    assert said in result.message


def test_signs_are_enough_where_they_leave_nothing_out(monkeypatch):
    monkeypatch.setattr(ComponentKind, "tree", None)
    assert np.isfinite(bounded(coupled(0, integer=False)).bound)


@pytest.mark.parametrize("seed", SEEDS)
def test_by_trees_alone_it_is_never_above_the_optimum(seed, monkeypatch):
    monkeypatch.setattr(method, "coupled_problem", lambda context: None)
    problem = coupled(seed, integer=True)
    least = truth(problem)
    incumbent = bounded(problem)
    assert incumbent.bound <= least + 1e-6 * (1.0 + abs(least))
    assert incumbent.bound >= least - 0.2 * (1.0 + abs(least))


@pytest.mark.parametrize("seed", SEEDS)
def test_it_is_below_every_point_met(seed):
    problem = coupled(seed + 7, integer=False, floor=-3.0)
    incumbent = bounded(problem)
    value = problem.mip.sign * incumbent.objective
    assert incumbent.bound <= value + 1e-6 * (1.0 + abs(value))
    assert np.isfinite(incumbent.bound)


def test_what_is_alike_is_proved_once():
    problem = coupled(0, integer=False)
    kinds = alike(problem, components(problem), 9)
    assert sorted(len(columns) for columns, _ in kinds) == [1, 3]
    assert alike(problem, components(problem), 1) is None
    other = dt.Mip(
        cost=problem.mip.cost,
        A=problem.mip.A,
        row_lower=problem.mip.row_lower,
        row_upper=problem.mip.row_upper,
        lower=problem.mip.lower,
        upper=np.where(np.arange(12) == 2, 2.0, problem.mip.upper),
    )
    assert len(alike(problem.derived(other, problem.blocks), components(problem), 9)) == 3


def test_a_problem_of_one_piece_has_no_prices():
    problem = dt.Problem(dt.Mip(cost=[0.0, 0.0, 1.0], lower=-1.0, upper=[1.0, 1.0, 9.0]))
    problem.add_predictor(random_mlp(2, width=3, layers=1, seed=0), [0, 1], [2])
    context = context_of(problem)
    assert not context.once(component_kinds)
    assert "no blocks that share" in BlockPrices().solve(context).message


def test_points_that_trees_meet_lower_their_goal():
    """What is known may be far above the least cost: boxes that are no better than a point met are closed."""
    problem = coupled(0, integer=True)
    context = context_of(problem)
    kinds, rows = context.once(component_kinds), SharedRows.of_structure(context.once(structure_of))
    prices, known = np.zeros(rows.sides.count), np.full(rows.parts.count, 1e3)
    proof = KindProof(context, rows, kinds, prices, known)
    assert proof.run(1e-6, Budget(60.0), lambda: False, 100_000) == "closed"
    assert proof.current - 1e-4 <= proof.lower <= proof.current + 1e-9 < 1e3
