"""Random small problems of many kinds of blocks, against enumeration of what the blocks can do."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import LinearConstraint, milp
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from torch import nn

import dovetail as dt
from dovetail.decomposition import TemplatePricing, plan
from dovetail.decomposition.hiring import shares_of
from dovetail.decomposition.modes import Digit, modes_of
from dovetail.decomposition.rounds import CHOICE_SHARE, Rounds
from dovetail.decomposition.shard import PricingOptions, Shard
from dovetail.decomposition.share import Share
from dovetail.methods import auto, facts
from dovetail.run import budget
from dovetail.run.budget import StopReason
from tests.conftest import FULL
from tests.contexts import context_of

BLOCKS = 6
CASES = 24 if FULL else 12


def problem_of(seed, *, continuous):
    """Blocks with a group of binaries (one of them, or at most one), an integer, a floor by a second network
    or a class, under rows of both senses and an equation; some have a number as well."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    width, whole = int(rng.integers(2, 4)), bool(rng.integers(2))
    families = {
        "about": dt.Family(fixed=rng.uniform(-1, 1, (BLOCKS, 2))),
        "one": dt.Family(upper=1.0, integer=True, width=width),
        "count": dt.Family(upper=2.0, integer=True) if whole else dt.Family(fixed=rng.uniform(0, 1, BLOCKS)),
        "gain": dt.Family(lower=-np.inf, cost=rng.uniform(0.5, 2.0, BLOCKS)),
    }
    if continuous:
        families["part"] = dt.Family(upper=1.0)
    rows = [
        dt.FamilyRow({"one": 1.0}, lower=float(rng.integers(2)), upper=1.0, summed=True, name="one each"),
    ]
    kind = ["value", "floor", "class"][int(rng.integers(3))]
    if kind == "class":
        families["good"] = dt.Family(upper=1.0, integer=True, cost=1.0)
    if kind == "floor":
        families["safe"] = dt.Family(lower=-0.6)
    amounts = rng.integers(1, 4, width).astype(float)
    coupling = [
        dt.FamilyRow({"one": amounts[None]}, upper=float(rng.integers(4, 10)), summed=True, name="most"),
        dt.FamilyRow({"one": np.eye(width)[:1]}, lower=float(rng.integers(3)), summed=True, name="some"),
    ]
    if rng.integers(2):
        coupling.append(
            dt.FamilyRow({"one": np.eye(width)[1:2]}, 2.0, 2.0, summed=True, name="exactly"),
        )
    if rng.integers(2):
        coupling.append(dt.FamilyRow({"gain": 1.0}, upper=1.5, name="sold"))
    problem = dt.Problem(sense="max")
    made = problem.add_template(BLOCKS, families, rows=rows, coupling=coupling)
    inputs = ("about", "one", "count", *(["part"] if continuous else []))
    size = 3 + width + continuous
    activation = [nn.ReLU, nn.Tanh][seed % 2]

    def network():
        made = nn.Sequential(nn.Linear(size, 8), activation(), nn.Linear(8, 1)).double()
        with torch.no_grad():
            made[2].weight *= 3.0
        return made

    problem.add_predictor(network(), made[inputs], made["gain"])
    if kind == "floor":
        problem.add_predictor(network(), made[inputs], made["safe"])
    if kind == "class":
        problem.add_predictor(network(), made[inputs], made["good"], output_type="classification")
    return problem


def best(problem, parts=()):
    """The optimum over all points of the integers, and these values of the number beside them, by a MIP over
    them; None if there is none."""
    mip, made = problem.mip, problem.templates[0]
    free = [j for name in ("one", "count") for j in made[name].columns.T if np.any(mip.integer[j])]
    columns, blocks = np.stack(free, axis=1), []
    ranges = [range(int(mip.upper[j]) + 1) for j in columns[0]]
    if parts:
        columns = np.concatenate([columns, made["part"].columns], axis=1)
        ranges.append(parts)
    points = np.array(list(itertools.product(*ranges)), dtype=float)
    start = np.clip(np.zeros(mip.n_columns), mip.lower, mip.upper)
    A, costs = mip.A.toarray(), []
    shared = np.arange(len(A)) >= len(A) - len(made.coupling)
    owner = [[j for name in made.families for j in made[name].columns[b]] for b in range(BLOCKS)]
    uses = []
    for b in range(BLOCKS):
        for point in points:
            z = start.copy()
            z[columns[b]] = point
            z = problem.predict(z)
            mine = np.array(owner[b])
            held = np.all(z[mine] >= mip.lower[mine] - 1e-9) and np.all(z[mine] <= mip.upper[mine] + 1e-9)
            private = ~shared & np.any(A[:, mine] != 0.0, axis=1)
            value = A[private] @ z
            held &= bool(np.all(value >= mip.row_lower[private] - 1e-9))
            held &= bool(np.all(value <= mip.row_upper[private] + 1e-9))
            if held:
                blocks.append(b)
                costs.append(mip.cost[mine] @ z[mine])
                uses.append(A[shared][:, mine] @ z[mine])
    if len(set(blocks)) < BLOCKS:
        return None
    one = (np.array(blocks) == np.arange(BLOCKS)[:, None]).astype(float)
    found = milp(
        -np.array(costs),
        constraints=[
            LinearConstraint(one, 1.0, 1.0),
            LinearConstraint(np.array(uses).T, mip.row_lower[shared] - 1e-9, mip.row_upper[shared] + 1e-9),
        ],
        integrality=np.ones(len(costs)),
        bounds=(0, 1),
    )
    return None if found.x is None else -found.fun


@pytest.mark.parametrize("seed", range(CASES))
def test_integers_against_enumeration(seed, monkeypatch):
    """Every combination of a block is a column, so that the choice is the optimum, and a point is found
    wherever there is one."""
    problem = problem_of(seed, continuous=False)
    result = dt.solve(problem, TemplatePricing(rounds=3), log=False)
    assert not result.failures
    optimum = best(problem)
    if optimum is None:
        assert result.x is None
        return
    assert result.objective == pytest.approx(optimum, abs=1e-5)
    assert result.bound_kind == "proven"
    assert result.bound >= optimum - 1e-9 * (1.0 + abs(optimum))
    assert dt.check(problem, result.x).within()


def test_many_free_binaries_have_no_list_of_modes():
    """64 have more combinations than an integer of 64 bits can count."""
    program = SimpleNamespace(whole=np.ones(64, dtype=bool), coordinates=64)
    digits = [Digit(np.array([column]), np.array([[0.0], [1.0]])) for column in range(64)]
    assert modes_of(program, digits) is None


def test_many_blocks_are_not_made_different_by_tables_of_some(monkeypatch):
    for module in (auto, facts):
        monkeypatch.setattr(module, "MANY_BLOCKS", BLOCKS - 1)
    problem = problem_of(4, continuous=False)
    result = dt.solve(problem, log=False)
    assert "template pricing: 6 blocks" in result.message
    assert result.objective == pytest.approx(best(problem), abs=1e-5)


@pytest.mark.parametrize("seed", range(CASES))
def test_numbers_beside_integers(seed, monkeypatch):
    """The optimum over three values of the number is a point: nearly as good is found, what is found passes
    the check, and the bound is not below."""
    problem = problem_of(seed, continuous=True)
    result = dt.solve(problem, TemplatePricing(rounds=4), log=False)
    assert not result.failures
    optimum = best(problem, (0.0, 0.5, 1.0))
    if result.x is not None:
        assert dt.check(problem, result.x).within()
    if optimum is not None:
        assert result.objective is not None
        assert result.objective >= optimum - 0.02 * (1.0 + abs(optimum))
        assert result.bound_kind == "proven"
        assert result.bound >= optimum - 1e-9 * (1.0 + abs(optimum))


def shifted(seed, *, rows):
    """Amounts that cost by how far they are from a wish, written by two rows or by parts; trees or a network
    decide a class or a number of them."""
    rng, n = np.random.default_rng(seed), 60
    torch.manual_seed(seed)
    wish, about = rng.uniform(-0.5, 0.5, (n, 2)), rng.uniform(-1, 1, (n, 1))
    classes, problem = bool(rng.integers(2)), dt.Problem(sense="min")
    far = {"far": dt.Family(upper=1.2, width=2, cost=rng.uniform(0.5, 1.5, (1, 2)))}
    parts = {"up": far["far"], "down": far["far"]}
    slope = float(rng.choice([1.0, 2.0]))
    as_rows = [
        dt.FamilyRow({"far": 1.0, "amount": -1.0}, lower=-wish, name="above"),
        dt.FamilyRow({"far": slope, "amount": slope}, lower=slope * wish, name="below"),
    ]
    as_parts = [dt.FamilyRow({"amount": 1.0, "up": -1.0, "down": 1.0}, wish, wish, name="parts")]
    said = dt.Family(upper=1.0, integer=True) if classes else dt.Family(lower=-np.inf)
    made = problem.add_template(
        n,
        {
            "about": dt.Family(fixed=about),
            "amount": dt.Family(lower=-1.0, upper=1.0, width=2),
            **(far if rows else parts),
            "said": said,
        },
        rows=as_rows if rows else as_parts,
        coupling=[dt.FamilyRow({"said": 1.0}, lower=35.0 if classes else 12.0, name="said")],
    )
    if rng.integers(2):
        X = rng.uniform(-1, 1, (300, 3))
        y = np.sin(3 * X[:, 1]) * X[:, 2] + X[:, 0]
        kind = RandomForestClassifier if classes else RandomForestRegressor
        predictor = kind(8, max_depth=4, random_state=seed).fit(X, y > 0.1 if classes else y)
    else:
        predictor = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)).double()
        with torch.no_grad():
            predictor[2].weight *= 3.0
    how = {"output_type": "classification"} if classes else {}
    problem.add_predictor(predictor, made["about", "amount"], made["said"], **how)
    return problem


@pytest.mark.parametrize("seed", range(CASES // 3))
def test_absolute_values_by_rows_and_by_parts(seed):
    """What is proved of one form holds for the points of the other."""
    problems = [shifted(seed, rows=True), shifted(seed, rows=False)]
    by_rows, by_parts = (dt.solve(one, TemplatePricing(rounds=5), log=False) for one in problems)
    for found, problem, other in ((by_rows, problems[0], by_parts), (by_parts, problems[1], by_rows)):
        assert not found.failures
        if found.x is not None:
            assert dt.check(problem, found.x).within()
        if found.bound is not None and other.objective is not None:
            assert found.bound <= other.objective + 1e-6 * (1.0 + abs(other.objective))
    assert (by_rows.x is None) == (by_parts.x is None)


def test_near_is_said_of_each_side_of_the_rows():
    """Two columns that hardly differ are near for the side that they differ in, and no other."""
    choice = Share.__new__(Share)
    use = torch.tensor([[[1.0, 0.0], [1.01, 0.0], [1.0, 1.0]], [[1.0, 0.0], [2.0, 1.0], [0.0, 0.0]]])
    choice._shard = SimpleNamespace(pool=SimpleNamespace(use=use), everyone=torch.arange(2))
    choice._priced = torch.tensor([[0.0, 1e-4, 3.0], [0.0, 2.0, torch.inf]])
    choice._place = torch.zeros(2, dtype=torch.int64)
    expected = np.array([[1e-2, 3.0], [2.0, 2.0]])
    np.testing.assert_allclose(choice.margins().numpy(), expected, rtol=1e-3)


def test_the_search_leaves_the_choice_its_part_of_the_time(monkeypatch):
    """Also where pricing takes all the time it is given: the clock stands where it left it."""
    problem, clock = problem_of(3, continuous=True), [0.0]
    monkeypatch.setattr(budget.time, "perf_counter", lambda: clock[0])

    def price(self, which, anchors, noise, unit, rng, mine, most=None):
        clock[0] += mine.left

    monkeypatch.setattr(Shard, "price", price)
    context = context_of(problem, 100.0)
    found = context.once(plan.template_plan)
    totals = [program.count for program in found.programs]
    with shares_of(context, found, PricingOptions()) as shares:
        rounds = Rounds(shares, found.sides, totals, context.budget, context.stopwatch, 0)
        done = list(rounds.all(5))
    assert len(done) == 1 and done[0].last and done[0].over is StopReason.TIME
    assert context.budget.left == pytest.approx(100.0 * CHOICE_SHARE)


@pytest.mark.parametrize("seed", range(4))
def test_blocks_without_data_of_their_own_have_prices_all_the_same(seed):
    """Nothing differs between blocks at rest: what usual moves do to a row says what it is measured in."""
    n, rng = 50, np.random.default_rng(seed)
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(1, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1)).double()
    price, levels = rng.uniform(0.0, 0.5), np.arange(4.0)
    with torch.no_grad():
        y = net(torch.as_tensor(levels[:, None])).numpy().ravel()
    middle = n * rng.uniform(0.3, 0.7) * (y.max() - y.min()) + n * y.min()
    A = np.concatenate([np.zeros(n), np.ones(n)])[None]
    cost = np.concatenate([np.full(n, price), np.full(n, rng.normal())])
    lower, upper = np.repeat([0.0, -np.inf], n), np.repeat([3.0, np.inf], n)
    whole = np.repeat([True, False], n)
    problem = dt.Problem(dt.Mip(cost, A, [middle - 0.5], [middle + 0.5], lower, upper, whole))
    problem.add_predictor(net, np.arange(n)[:, None], n + np.arange(n)[:, None])
    counts = [
        (a, b, c, n - a - b - c) for a in range(n + 1) for b in range(n + 1 - a) for c in range(n + 1 - a - b)
    ]
    table = np.array(counts)
    value = table @ (price * levels + cost[-1] * y)
    best = value[np.abs(table @ y - middle) <= 0.5].min()
    result = dt.solve(problem, TemplatePricing(), log=False)
    size = np.abs(price * levels + cost[-1] * y).max() * n
    assert best - 1e-6 <= result.objective <= best + 1e-3 * size
    assert best - 1e-2 * size <= result.bound <= result.objective + 1e-6
