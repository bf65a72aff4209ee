"""Local search over integers: neighbours completed by rows and networks, judged by the networks."""

import itertools

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.linearised.scaled_problem import ScaledProblem, scaled_problem
from dovetail.methods import integer_search
from dovetail.methods.integer_search import ChainSums, IntegerLocalSearch, LocalSearch, settled
from dovetail.run.budget import StopReason
from dovetail_study.zoo import build
from tests.blends import blend
from tests.conftest import FULL, volume
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


@volume("trades of places within one sum are enumerated above")
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


def mixed(wide=3.0, A=None):
    """cost'x + y / 2 with y the sum of squares of two integers and a number, within bounds."""
    sides = {} if A is None else {"A": [A], "row_lower": [1.0], "row_upper": [3.0]}
    mip = dt.Mip(
        cost=[1.0, 2.0, 3.0, 0.5], lower=[-wide, -wide, -3.0, -1e9], upper=[wide, wide, 3.5, 1e9],
        integer=[True, True, False, False], **sides,
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: (X**2).sum(1, keepdims=True), [0, 1, 2], [3])
    return problem


@pytest.mark.parametrize("held", [-2.0, 0.3])
def test_a_few_values_are_all_looked_at_once(held):
    """49 of them, beside whatever the continuous column is: the best one, and nothing is asked twice."""
    context = context_of(mixed())
    search = LocalSearch(context, context.once(scaled_problem))
    before, asked = integer_search.CompletedMerit.of, []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            integer_search.CompletedMerit, "of", lambda self, Z: asked.append(len(Z)) or before(self, Z)
        )
        _, merit = search.run(np.array([3.0, 3.0, held, 0.0]), 50, context.budget, "test")
    values = [a + 2 * b + 3 * held + 0.5 * (a * a + b * b + held * held)
              for a, b in itertools.product(range(-3, 4), repeat=2)]  # fmt: skip
    assert asked == [49]
    assert merit == pytest.approx(min(values))
    assert context.incumbent.objective == pytest.approx(min(values))


def test_a_wide_integer_takes_long_steps():
    """From one corner of [-1000, 1000] squared to the middle; a kick from there leads back, seven times."""
    context = context_of(mixed(1000.0))
    asked, before = [], LocalSearch._merits
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LocalSearch, "_merits", lambda self, Z: asked.append(len(Z)) or before(self, Z))
        search = LocalSearch(context, context.once(scaled_problem))
        _, merit = search.run(np.array([1000.0, -1000.0, -3.0, 0.0]), 50, context.budget, "test")
    assert merit == pytest.approx(-7.0)
    assert sum(asked) < 2000


@pytest.mark.parametrize(("searches", "optima", "enough"), [(6, 1, False), (7, 1, True), (15, 2, False)])
def test_searches_end_where_all_optima_are_probably_known(searches, optima, enough):
    """By the expected number of optima, (n - 1) w / (n - w - 2), as the paper has it."""
    expected = optima * (searches - 1) / (searches - optima - 2)
    assert settled(searches, optima) == enough == (expected <= optima + 0.5)


@pytest.mark.parametrize(("row", "best"), [(None, -7.0), ([1.0, 1.0, 1.0, 0.0], 1.5)])
def test_a_small_search_that_finds_no_more_notices_soon(row, best):
    """The default method: both integers and the number beside them are at the optimum, found by hand."""
    result = dt.solve(mixed(A=row), log=False)
    assert result.objective == pytest.approx(best, abs=1e-6)
    assert result.stop_reason == "stalled"
    assert result.evaluations < 8000


def test_phases_of_one_solve_share_their_patience():
    context = context_of(mixed())
    first = IntegerLocalSearch(patience=4).solve(context)
    second = IntegerLocalSearch(patience=4).solve(context)
    assert first.stop_reason is second.stop_reason is StopReason.STALLED
    assert (first.iterations > 4, second.iterations) == (True, 1)


def test_integers_that_decide_what_trees_see_are_searched_as_well():
    """Descents over cells of trees find no point of these prices, whose ladders only integers know."""
    problem = build("ladders-trees", 1, 0)
    result = dt.solve(problem, dt.IntegerLocalSearch(rounds=1, kicks=8, until_feasible=True), log=False)
    assert result.x is not None


def test_a_batch_is_no_larger_with_many_samples(monkeypatch):
    """Two samples: as many neighbours as make so many questions, and never fewer than a few."""
    context = context_of(blend(0))
    scaled, asked = context.once(scaled_problem), []
    merits = LocalSearch._merits
    monkeypatch.setattr(LocalSearch, "_merits", lambda self, Z: asked.append(len(Z)) or merits(self, Z))
    monkeypatch.setattr(integer_search, "FEWEST_NEIGHBOURS", 3)
    for most in (4, 10):
        monkeypatch.setattr(integer_search, "MOST_SAMPLES", most)
        asked.clear()
        LocalSearch(context, scaled).run(np.full(14, 0.5), 0, context.budget, "test")
        assert max(asked) == max(3, most // 2)


def test_chains_find_what_no_single_exchange_does():
    """Numbers that sum up to half of all of them: from 10 + 9 of 20 no single exchange leads on."""
    sizes = np.array([10.0, 9.0, 7.0, 6.0, 4.0, 4.0])
    rows = np.zeros((7, 13))
    for j in range(6):
        rows[j, [2 * j, 2 * j + 1]] = 1.0
    rows[6, :12:2] = sizes
    mip = dt.Mip(
        cost=[0.0] * 12 + [1.0], A=rows, row_lower=[1.0] * 6 + [20.0], row_upper=[1.0] * 6 + [20.0],
        lower=[0.0] * 12 + [-9.0], upper=[1.0] * 12 + [9.0], integer=[True] * 12 + [False],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: X.sum(axis=1, keepdims=True), inputs=[0, 4, 8], outputs=[12])
    context = context_of(problem)
    z = np.zeros(13)
    z[1:12:2] = 1.0
    LocalSearch(context, context.once(scaled_problem)).run(z, 0, context.budget, "test")
    assert context.incumbent.x is not None


def test_sums_of_changes_are_exact_where_networks_are_linear():
    """Two exchanges in a row, beside a pushed column: the merit that the point after both has."""
    weights = np.array([3.0, 2.0, 1.0, 1.5])
    rows = np.zeros((7, 12))  # four jobs on two machines, their loads, efficiencies, and the least of these
    for j in range(4):
        rows[j, [2 * j, 2 * j + 1]] = 1.0
    for m in range(2):
        rows[4 + m, np.arange(4) * 2 + m], rows[4 + m, 8 + m] = weights, -1.0
    rows[6, :8:2] = 1.0
    least = np.zeros((2, 12))
    least[[0, 1], [10, 11]] = 1.0
    A = np.hstack([np.vstack([rows, least]), np.array([[0.0]] * 7 + [[-1.0]] * 2)])
    mip = dt.Mip(
        cost=[0.0] * 12 + [-1.0], A=A, row_lower=[1.0] * 4 + [0.0] * 2 + [2.0] + [0.0] * 2,
        row_upper=[1.0] * 4 + [0.0] * 2 + [2.0] + [np.inf] * 2, lower=[0.0] * 10 + [-9.0] * 3,
        upper=[1.0] * 8 + [5.0] * 2 + [9.0] * 3, integer=[True] * 8 + [False] * 5,
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: 4.0 - X, inputs=[[8], [9]], outputs=[[10], [11]])
    context = context_of(problem)
    search = LocalSearch(context, context.once(scaled_problem))
    z = np.zeros(13)
    z[[0, 2, 5, 7]] = 1.0  # 5 and 2.5
    Z = z[None].copy()
    search._merits(Z)
    columns, changes = search._moves(Z[0])
    near = np.repeat(Z, len(columns), axis=0)
    for side in range(4):
        near[np.arange(len(columns)), columns[:, side]] += changes[:, side]
    search._merits(near)
    by_move = near - Z[0]
    by_move[:, search._propagation.pushed] = 0.0
    sums = ChainSums(search._merit, search._propagation, by_move, (columns, changes))
    before, move, expected = sums.likely(near, len(near) ** 2)
    truly = search._merits(near[before] + by_move[move])
    assert len(near) == 4
    assert expected == pytest.approx(truly)


@pytest.mark.parametrize("left_out", [None, 1, 5])
@pytest.mark.parametrize("seed", range(3))
def test_an_assignment_is_seen_in_any_order_of_its_rows(seed, left_out):
    """Four jobs, two on each machine, in three rows of jobs or one row of machines fewer as well."""
    rng = np.random.default_rng(seed)
    rows = np.vstack([np.kron(np.eye(4), np.ones(2)), np.kron(np.ones(4), np.eye(2))])
    side = np.array([1.0] * 4 + [2.0] * 2)
    kept = rng.permutation([r for r in range(6) if r != left_out])
    order = rng.permutation(8)
    A = np.hstack([rows[kept][:, order], np.zeros((len(kept), 1))])
    mip = dt.Mip(
        cost=[0.0] * 8 + [1.0], A=A, row_lower=side[kept], row_upper=side[kept],
        lower=[0.0] * 8 + [-9.0], upper=[1.0] * 8 + [9.0], integer=[True] * 8 + [False],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: X.sum(axis=1, keepdims=True), inputs=[0, 3], outputs=[8])
    context = context_of(problem)
    search = LocalSearch(context, context.once(scaled_problem))
    z = np.zeros(9)
    z[:8] = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0])[order]  # jobs 0 and 1 on machine 0
    columns, changes = search._moves(z)
    assert len(columns) == 4
    for four, by in zip(columns, changes, strict=True):
        moved = z.copy()
        moved[four] += by
        assert np.count_nonzero(moved[:8]) == 4
        assert rows[:, order] @ moved[:8] == pytest.approx(side)


def test_each_step_is_better_though_networks_answer_differently_by_the_batch():
    """Answers about few points at a time are worse, by far more than float32 ones are."""
    problem, _, _ = configurations()
    context = context_of(problem)
    search, steps = LocalSearch(context, context.once(scaled_problem)), []
    merits, further = search._merits, search._further
    search._merits = lambda Z: merits(Z) + 5.0 * (len(Z) < 8)

    def step(z, Z, near, moves, merit, *rest):
        found = further(z, Z, near, moves, merit, *rest)
        steps.append((merit, None if found is None else found[1]))
        return found

    search._further = step
    rng = np.random.default_rng(0)
    for _ in range(5):
        search.run(rng.random(problem.mip.n_columns), 5, context.budget, "test")
    assert sum(after is not None for _, after in steps) > 5
    assert all(after < before for before, after in steps if after is not None)
