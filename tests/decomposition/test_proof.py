"""What is proved of blocks at prices, against their points: many by chance, and those that were found."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from torch import nn

import dovetail as dt
from dovetail.decomposition import TemplatePricing, proof, rounds
from dovetail.decomposition.plan import plan_of
from dovetail.decomposition.shard import PricingOptions, Shard, usual_spread
from dovetail.run.budget import Budget
from dovetail.structure.structure import Structure
from tests.conftest import sample
from tests.structure.test_templates import treated

from .families import blends, judged, network, offers, sales

POINTS = 400


def kinds(n: int, *, classes: int = 0, activation: type[nn.Module] = nn.ReLU, numbers: int = 1) -> dt.Problem:
    """Blocks with an amount, a wide integer and one of three, one of `classes` or numbers, in float32."""
    rng, problem = np.random.default_rng(n), dt.Problem(sense="max")
    torch.manual_seed(n)
    made = nn.Sequential(nn.Linear(6, 8), activation(), nn.Linear(8, classes or numbers))
    with torch.no_grad():
        made[2].weight *= 3.0
    output = {"kind": dt.Family(upper=1.0, integer=True, width=classes, cost=rng.uniform(0, 3, (n, classes)))}
    number = {"gain": dt.Family(lower=-np.inf, width=numbers, cost=rng.uniform(0.5, 2.0, (n, numbers)))}
    template = problem.add_template(
        n,
        {
            "about": dt.Family(fixed=rng.uniform(-1, 1, n)),
            "amount": dt.Family(lower=-0.5, upper=1.0),
            "count": dt.Family(lower=-3.0, upper=37.0, integer=True),
            "one": dt.Family(upper=1.0, integer=True, width=3),
            **(output if classes else number),
        },
        rows=[
            dt.FamilyRow({"one": 1.0}, lower=1.0, upper=1.0, summed=True),
            dt.FamilyRow({"amount": 4.0, "count": 0.1}, upper=rng.uniform(0.5, 2.0, n)),
        ],
        coupling=[
            dt.FamilyRow({"count": 1.0}, upper=4.0 * n, name="counts"),
            dt.FamilyRow({"amount": 1.0}, lower=0.1 * n, name="amounts"),
        ],
    )
    problem.add_predictor(
        made, template["about", "amount", "count", "one"], template["kind" if classes else "gain"],
        **({"output_type": "classification"} if classes else {}),
    )  # fmt: skip
    return problem


def forest(n: int, *, classes: int = 0) -> dt.Problem:
    """Blocks with an amount beside a number that is theirs, an integer and trees, a class or a number."""
    rng, problem = np.random.default_rng(n), dt.Problem(sense="max")
    X = rng.uniform(-1, 2, (300, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0.5)
    if classes:
        trees = RandomForestClassifier(6, max_depth=4, random_state=0).fit(
            X, np.digitize(y, [0.3, 1.0])[: len(y)]
        )
        trees = (
            trees if classes > 1 else RandomForestClassifier(6, max_depth=4, random_state=0).fit(X, y > 0.5)
        )
        cost = rng.uniform(0, 3, (n, 1)) if classes == 1 else rng.uniform(0, 3, (n, classes))
        output = dt.Family(upper=1.0, integer=True, width=classes, cost=cost)
    else:
        trees = GradientBoostingRegressor(n_estimators=12, random_state=0).fit(X, y)
        output = dt.Family(lower=-np.inf, cost=rng.uniform(0.5, 2.0, n))
    template = problem.add_template(
        n,
        {
            "about": dt.Family(fixed=rng.uniform(-1, 1, n)),
            "before": dt.Family(fixed=rng.uniform(0, 0.5, n)),
            "amount": dt.Family(lower=-0.5, upper=1.0, cost=-0.3),
            "after": dt.Family(lower=-2.0, upper=3.0),
            "count": dt.Family(upper=2.0, integer=True),
            "said": output,
        },
        rows=[dt.FamilyRow({"after": 1.0, "amount": -1.0, "before": -1.0}, lower=0.0, upper=0.0)],
        coupling=[dt.FamilyRow({"amount": 1.0, "count": 0.2}, 0.1 * n, 0.1 * n, name="amounts")],
    )
    problem.add_predictor(
        trees, template["about", "after", "count"], template["said"],
        **({"output_type": "classification"} if classes else {}),
    )  # fmt: skip
    return problem


def sorted_out(n: int) -> dt.Problem:
    """Blocks with two amounts and two numbers that are theirs, in three classes that the amounts decide."""
    rng, problem = np.random.default_rng(4), dt.Problem(sense="min")
    made = problem.add_template(
        n,
        {
            "about": dt.Family(fixed=rng.uniform(0, 1, (n, 2))),
            "amounts": dt.Family(upper=1.0, width=2, cost=[[1.0, 0.7]]),
            "kind": dt.Family(upper=1.0, integer=True, width=3),
        },
        coupling=[
            dt.FamilyRow({"kind": [[1.0, 0.0, 0.0]]}, lower=0.4 * n, summed=True),
            dt.FamilyRow({"kind": [[0.0, 0.0, 1.0]]}, upper=0.1 * n, summed=True),
        ],
    )
    torch.manual_seed(4)
    net = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 3)).double()
    X = rng.uniform(0, 1, (400, 4))
    gain = X[:, 2] - X[:, 0] + 0.5 * X[:, 3] * X[:, 1]
    with torch.no_grad():
        hidden = np.column_stack([net[:2](torch.as_tensor(X)).numpy(), np.ones(len(X))])
        fitted = np.linalg.lstsq(hidden, np.column_stack([gain, 0.1 - abs(gain - 0.2), -gain]), rcond=None)[0]
        net[2].weight.copy_(torch.as_tensor(fitted[:-1].T))
        net[2].bias.copy_(torch.as_tensor(fitted[-1]))
    problem.add_predictor(net, made["about", "amounts"], made["kind"], output_type="classification")
    return problem


PROBLEMS = {
    "integers": lambda: offers(60),
    "an integer and a number": lambda: offers(60, continuous=True),
    "two networks and a floor": lambda: blends(60),
    "a defined column": lambda: sales(60),
    "both ways, a class": lambda: judged(60),
    "all of it": lambda: kinds(60),
    "smooth": lambda: kinds(61, activation=nn.Tanh),
    "two numbers": lambda: kinds(64, activation=nn.Tanh, numbers=2),
    "one class": lambda: kinds(62, classes=1),
    "several classes": lambda: kinds(63, classes=3),
    "classes by amounts": lambda: sorted_out(60),
    "trees": lambda: forest(60),
    "one class of trees": lambda: forest(61, classes=1),
    "several classes of trees": lambda: forest(62, classes=3),
}


def shard_of(problem: dt.Problem) -> Shard:
    """All blocks."""
    (program,), blocks = plan_of(Structure(problem)).programs, list(problem.blocks)
    return Shard(program, blocks, PricingOptions(), "cpu", usual_spread(program, blocks))


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("seed", sample(range(6), 2))
def test_no_point_of_a_block_costs_less(kind, seed):
    with torch.no_grad():
        problem = PROBLEMS[kind]()
        shard, rng = shard_of(problem), np.random.default_rng(seed)
        unit, usual = shard.stake, shard.usual_use
        prices = rng.exponential(1.0, len(usual)) * unit / np.maximum(usual, 1e-9)
        everyone, program = np.arange(shard.count), shard.program
        shard.price(everyone, prices[None], 0.5, unit, rng, Budget(60.0))
        _, found = shard.prove(everyone, prices, 1e-3 * unit, 25, unit, Budget(60.0))
        lower = found.lower.numpy()
        assert np.all(np.isfinite(lower))
        costs = shard.data.true_part_costs(torch.arange(shard.count), torch.as_tensor(prices)).numpy()
        for place in range(POINTS):
            low, high = program.lower, program.upper
            moves = low + rng.uniform(size=low.shape) ** rng.choice([0.2, 1.0, 5.0]) * (high - low)
            if place < shard.pool.cost.shape[1]:
                known = torch.isfinite(shard.pool.cost[:, place])
                moves = shard.column(shard.everyone, torch.where(known, place, 0))[0].numpy()
            moves = np.where(program.whole, np.floor(moves + 0.5), moves)
            moves = torch.as_tensor(moves)
            found, outputs = shard.owners.confirmed(shard.everyone, moves, None)
            holds, cost = found.numpy(), (costs * shard.data.parts(moves, outputs).numpy()).sum(axis=1)
            assert np.all(cost[holds] >= lower[holds] - 1e-9 * (1.0 + np.abs(lower[holds])))


def test_where_it_ends_least_costs_are_near():
    """Points met on the way become columns, and the best columns cost no more than the tolerance beyond."""
    with torch.no_grad():
        shard = shard_of(kinds(60))
        unit, prices = shard.stake, np.zeros(2)
        _, found = shard.prove(np.arange(60), prices, 1e-3 * unit, 5_000, unit, Budget(60.0))
        assert bool(found.closed.all())
        assert bool(found.better.any())  # nothing was priced before
        best = shard.pool.priced(torch.zeros(2)).min(dim=1).values.double()
        assert float((best - found.lower).max()) <= 5e-3 * unit


def test_a_class_is_a_condition_on_the_inputs():
    """The cheapest amounts lie where the class changes. Planes of the logits bound them without boxes along
    the whole border."""
    with torch.no_grad():
        shard, rng = shard_of(sorted_out(60)), np.random.default_rng(0)
        everyone, prices = np.arange(60), np.array([0.0, 2.0])
        shard.price(everyone, prices[None], 0.5, shard.stake, rng, Budget(60.0))
        _, found = shard.prove(everyone, prices, 1e-3 * shard.stake, 100, shard.stake, Budget(60.0))
        assert bool(found.closed.all())


def test_trees_are_searched_from_cut_to_cut():
    """An equation over all blocks is met, and what is found is near to what all blocks prove."""
    problem = forest(100)
    found = dt.solve(problem, TemplatePricing(), log=False)
    assert not found.failures
    assert dt.check(problem, found.x).within()
    assert found.bound_kind == "proven"
    assert found.objective <= found.bound <= found.objective + 0.02 * abs(found.objective)


def test_blocks_that_trees_read_are_proved_to_the_end(monkeypatch):
    """As far as cuts go, beyond the boxes that planes have."""
    monkeypatch.setattr(rounds, "MOST_BOXES", 4)
    problem = forest(60)
    result = dt.solve(problem, TemplatePricing(), log=False)
    assert result.bound_kind == "proven"
    assert result.bound - result.objective < 0.01 * abs(result.objective)
    monkeypatch.setattr(proof, "TREES", 1)
    assert dt.solve(problem, TemplatePricing(), log=False).bound is None


def test_endless_inputs_are_left_alone():
    """Nothing is said where a move has no limit."""
    with torch.no_grad():
        shard = shard_of(treated(60))
        assert shard.prove(np.arange(60), np.ones(3), 1e-3, 50, 1.0, Budget(60.0)) is None


def test_all_blocks_are_proved_or_the_bound_is_an_estimate(monkeypatch):
    """A sample of fifty of two hundred blocks: within a few standard errors of what all of them prove."""
    problem = offers(200, continuous=True)
    every = dt.solve(problem, TemplatePricing(), log=False)
    assert every.bound_kind == "proven"
    assert every.bound_source == "prices"
    assert every.objective <= every.bound <= every.objective + 1e-3 * abs(every.objective)

    monkeypatch.setattr(rounds, "PROVED", 50)
    monkeypatch.setattr(rounds, "PROOF_PART", -1.0)
    sampled = dt.solve(problem, TemplatePricing(), log=False)
    assert "an estimate from a sample, not a proof" in sampled.message
    # the host's own bound is proved, and stays
    assert sampled.bound_kind == "proven"


def test_an_estimate_where_nothing_is_proved(monkeypatch, capsys, tmp_path):
    """It is called one wherever it is said, with its standard error, and calls no point optimal."""
    problem = dt.Problem(sense="max")
    rng = np.random.default_rng(0)
    n = 80
    made = problem.add_template(
        n,
        {
            "about": dt.Family(fixed=rng.uniform(-1, 1, (n, 2))),
            "amount": dt.Family(upper=1.0),
            "gain": dt.Family(lower=-np.inf, cost=rng.uniform(0.5, 2.0, n)),
        },
        coupling=[dt.FamilyRow({"amount": 1.0}, upper=0.3 * n)],
    )
    problem.add_predictor(network(3, 5), made["about", "amount"], made["gain"])
    monkeypatch.setattr(rounds, "PROVED", 40)
    monkeypatch.setattr(rounds, "PROOF_PART", -1.0)
    result = dt.solve(problem, TemplatePricing(), gap=0.5)
    assert result.status is dt.Status.FEASIBLE
    assert result.bound_kind == "estimate"
    assert result.bound == pytest.approx(result.objective, rel=1e-2)
    assert 0.0 <= result.bound_error <= 1e-3 * abs(result.objective)
    assert result.certificate is None
    assert "an estimate with standard error" in capsys.readouterr().out
    again = dt.Result.from_json(result.to_json())
    assert (again.bound_kind, again.bound_error) == (result.bound_kind, result.bound_error)
    page = result.report(tmp_path / "page.html").read_text()
    assert "standard error" in page
