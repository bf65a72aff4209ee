"""Branching over signs of ReLUs: against an LP for every pattern of signs, over boxes, simplices, balls."""

import dataclasses
import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from dovetail.bounds.planes.network_planes import NetworkPlanes
from dovetail.branching import move_search, sign_bounds
from dovetail.branching.move_search import MoveSearch, multiplies_in_single
from dovetail.branching.sign_search import SearchOptions, SignSearch
from dovetail.networks.arithmetic import FLOAT32
from dovetail.networks.layers import program_of
from dovetail.networks.step_rounding import step_rounding
from dovetail.run.budget import Budget
from tests.branching.closed_set_instance import KINDS, Instance, optimum_of
from tests.conftest import FULL, sample
from tests.networks.rounding_routes import routes

SEEDS = range(4 if FULL else 1)


@pytest.mark.parametrize(
    ("kind", "condition"),
    sample([("box", True), ("ball", True), ("priced", True), *((kind, False) for kind in KINDS[::-1])], 4),
)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_closed_search_is_the_optimum(kind, condition, seed):
    instance = Instance(seed, kind, condition=condition)
    search = SignSearch(instance.targets(), SearchOptions(batch=16))
    assert search.run(Budget(600)) == "closed"
    for k in range(1):
        true = instance.optimum(k)
        if np.isinf(true):
            assert search.lower[k] > min(instance.most[k] - 1e-6, 1e6)
            continue
        assert search.lower[k] <= true + 1e-7
        assert search.lower[k] >= true - 1e-5
        if kind != "priced":
            assert search.best[k] == pytest.approx(true, abs=1e-5)


@pytest.mark.parametrize("numbers", sample([torch.float32, torch.float64]))
@pytest.mark.parametrize("condition", sample([True, False]))
@pytest.mark.parametrize("kind", ["box", "ball", "priced"])
def test_cells_of_moves_close_in_on_the_optimum(kind, condition, numbers):
    for seed in SEEDS:
        instance = Instance(seed, kind, inputs=3, condition=condition)
        true = instance.optimum(0)
        targets = instance.targets(100.0)
        targets = replace(targets, planes=targets.planes.of_kind(numbers))
        search = MoveSearch(targets, batch=128, tolerance=1e-3)
        ended = search.run(Budget(600), enough=lambda s: s.nodes > 10_000)
        assert search.lower[0] <= min(true, 100.0) + 1e-7
        if ended == "closed" and np.isfinite(true):
            assert search.lower[0] >= min(true, instance.most[0]) - 2e-3
        assert ended == "closed" or seed, "the first of each kind is easy"


def test_more_cells_at_once_where_there_is_memory_and_fewer_points(monkeypatch):
    """As on a GPU: a part of all that are open, and of each round only the first points are tried."""
    monkeypatch.setattr(move_search, "memory_of", lambda device: 10**9)
    monkeypatch.setattr(move_search, "SPLIT_SHARE", 0.5)
    monkeypatch.setattr(move_search, "TRIED", 3)
    true = optimum_of(3)
    search = MoveSearch(Instance(3, "priced").targets(), batch=4, tolerance=1e-3)
    taken = set()
    ended = search.run(Budget(600), enough=lambda s: taken.add(s._at_once()) or s.nodes > 10_000)
    assert max(taken) > 2
    assert ended == "closed"
    assert true - 2e-3 <= float(search.lower[0]) <= true + 1e-7


def test_where_memory_is_short_one_target_is_left_as_it_is():
    """Of two that need forty cells each, where there is room for fifty: the other one is closed."""
    one, true = Instance(3, "priced").targets(), optimum_of(3)
    search = MoveSearch(one.take(torch.tensor([0, 0])), batch=4, most_nodes=50, tolerance=1e-3)
    assert "open nodes" in search.run(Budget(600))
    assert search.left_out == 1
    left, closed = sorted(search.lower.tolist())
    assert left <= true + 1e-7
    assert true - 2e-3 <= closed <= true + 1e-7


def test_a_single_target_goes_on_where_memory_is_short():
    """Forty cells where there is room for twelve: those that close soonest come first."""
    one, true = Instance(3, "priced").targets(), optimum_of(3)
    alone = MoveSearch(one.take(torch.tensor([0])), batch=4, most_nodes=12, tolerance=1e-3)
    most = []
    assert alone.run(Budget(), enough=lambda search: most.append(len(search.frontier))) == "closed"
    assert alone.left_out == 0 and 12 < max(most) < 40
    assert true - 2e-3 <= float(alone.lower[0]) <= true + 1e-7


@pytest.mark.parametrize("seed", sample(range(1, 4)))
def test_no_point_of_a_float32_network_is_excluded(seed):
    """Its class turns where rounding says: the cheapest such points in some directions, by bisection."""
    instance = Instance(seed, "ball", (8, 8, 8), 2, condition=True)
    layers = instance.float32_layers()
    instance.shift = 0.02 - instance.sign * np.array([instance.values(instance.origin[0])])
    graph, targets = program_of(layers, 2).graph(), instance.targets(3.0)
    planes = NetworkPlanes(graph, "cpu", step_rounding(program_of(layers, 2, FLOAT32), graph))
    cast = 2.0**-24 * targets.domain.upper.abs().max() * torch.ones_like(targets.domain.give)
    targets = replace(targets, planes=planes, domain=targets.domain.wider(cast))
    search = MoveSearch(targets, batch=256, tolerance=1e-6)
    search.run(Budget(600), enough=lambda s: s.nodes > 1000)
    share = np.concatenate([np.eye(4), np.random.default_rng(seed).dirichlet(np.ones(4), 26)])
    low = np.zeros(len(share))
    high = np.minimum(instance.most, (instance.limit / share.clip(1e-9)).min(axis=1))
    for _ in range(40):
        middle = 0.5 * (low + high)
        turned = _in_class(layers, instance, middle[:, None] * share)
        low, high = np.where(turned, low, middle), np.where(turned, middle, high)
    there = _in_class(layers, instance, high[:, None] * share)
    assert there.any()
    assert search.lower[0] <= ((high[:, None] * share) @ instance.costs[0])[there].min() + 1e-12


def test_float32_planes_need_float32_products():
    before, here = torch.get_float32_matmul_precision(), torch.device("cpu")
    try:
        for setting, full in (("highest", True), ("high", False), ("medium", False)):
            torch.set_float32_matmul_precision(setting)
            assert multiplies_in_single(here) == full
    finally:
        torch.set_float32_matmul_precision(before)


def _in_class(layers, instance, moves):
    """By any route in float32."""
    X = instance.origin + moves @ instance.directions.T
    values = np.stack([vectors[-1][:, 0] for vectors in routes(layers, X)])
    return (instance.sign * values + instance.shift[0] <= 0.0).any(axis=0)


@pytest.mark.parametrize("seed", sample([1037, 1078, 1270]))
def test_cells_that_a_row_ends_are_cut_from_where_it_ends_them(seed):
    """Cut from the cell's own end, these were proved more than is true."""
    instance = Instance(seed, "ball", hidden=(3, 2), inputs=3, condition=True)
    search = MoveSearch(instance.targets(50.0), batch=256, tolerance=1e-3)
    search.run(Budget(600), enough=lambda s: s.nodes > 4000)
    assert search.lower[0] <= instance.optimum(0) + 1e-7


@pytest.mark.parametrize("seed", sample(range(4), 2))
def test_bounds_hold_at_every_moment(seed):
    """Rounds one by one; a cutoff below the optimum is what is claimed, and no more.

    However coarsely slopes and multipliers are looked for.
    """
    instance, true = Instance(seed, KINDS[seed % 4]), optimum_of(seed)
    for cutoff in (np.inf, true - 0.1):
        search = SignSearch(instance.targets(cutoff), SearchOptions(batch=4, steps=2, single=seed > 1))
        bounds = [float(search.lower[0])]
        while not search.done:
            search.run(Budget(600), enough=lambda s, seen=search.nodes: s.nodes > seen)
            bounds.append(float(search.lower[0]))
        assert max(bounds) <= min(true + 1e-7, cutoff)
        assert all(b >= a - 1e-12 for a, b in itertools.pairwise(bounds))


def test_a_cutoff_above_the_optimum_is_never_proved():
    for seed in range(4):
        instance, true = Instance(seed, KINDS[seed % 4]), optimum_of(seed)
        search = SignSearch(instance.targets(true + 1e-4), SearchOptions(batch=32))
        search.run(Budget(600))
        assert search.lower[0] <= true + 1e-7


def test_score_zero_is_no_leaf(monkeypatch):
    """The planted fault: a neuron that nothing seems to depend on is taken for one that is stable."""
    choice = sign_bounds._choice

    def faulty(nodes, weight):
        low, high = nodes.lower, nodes.upper
        score = (-weight).clamp(min=0.0) * torch.minimum(-low, high).clamp(min=0.0)
        return torch.where(score.amax(1) > 0.0, choice(nodes, weight), -1)

    monkeypatch.setattr(sign_bounds, "_choice", faulty)
    searches = [SignSearch(Instance(seed, "ball").targets(), SearchOptions(batch=8)) for seed in range(10)]
    with pytest.raises(AssertionError, match="a leaf has no neuron"):
        [search.run(Budget(600)) for search in searches]


def test_records_divide_all_signs_among_them():
    instance = Instance(1, "ball")
    search = SignSearch(instance.targets(), SearchOptions(batch=8, record_bytes=10**6))
    search.run(Budget(600))
    signs, bounds = search.divided.sign, search.divided.bound
    for pattern in itertools.product((-1, 1), repeat=signs.shape[1]):
        fits = ((signs == 0) | (signs == torch.tensor(pattern))).all(1)
        assert fits.sum() == 1
    assert bounds.min() >= search.lower[0] - 1e-12
    small = SignSearch(instance.targets(), SearchOptions(batch=8, record_bytes=10))
    small.run(Budget(600))
    assert small.divided is None


@pytest.mark.parametrize("seed", sample(range(8), 4))
def test_parts_of_one_search_are_a_beginning_at_other_costs(seed):
    """However far the first one came; the optimum is by an LP for every pattern of signs."""
    instance, options = Instance(seed, KINDS[seed % 4]), SearchOptions(batch=4, record_bytes=10**7)
    first = SignSearch(instance.targets(), options)
    first.run(Budget(600), lambda search: search.nodes > 10 * (seed % 3))
    instance.costs = instance.costs[:, ::-1].copy()
    true = instance.optimum(0)
    again = SignSearch(instance.targets(), options, divided=first.divided)
    assert again.lower[0] == -np.inf or len(first.divided) == 1
    assert again.run(Budget(600)) == "closed"
    assert true - 1e-5 <= again.lower[0] <= true + 1e-7


@pytest.mark.parametrize("condition", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_leaves_are_as_good_many_at_a_time_as_each_by_an_lp_of_its_own(kind, condition):
    instance = Instance(5, kind, count=3, condition=condition)
    rule = sign_bounds.Bounding(instance.targets(), steps=2)
    nodes = rule.bounded(rule.roots(), torch.full((3,), torch.inf, dtype=torch.float64)).nodes
    leaves = nodes.take(nodes.choice < 0)
    while bool((nodes.choice >= 0).any()):
        parts = rule.children(nodes.take(nodes.choice >= 0))
        nodes = rule.bounded(parts, torch.full((len(parts),), torch.inf, dtype=torch.float64)).nodes
        leaves = leaves.joined(nodes.take((nodes.choice < 0) & (nodes.bound < torch.inf)))
    settled, true = rule.settled(leaves), [instance.optimum(k) for k in range(3)]
    found, points = settled.nodes, settled.moves
    close = 0
    for k in range(len(leaves)):
        one, target = torch.tensor([k]), int(found.target[k])
        patterns = np.split((leaves.lower[k] >= 0.0).numpy().astype(float), [4])
        exact = instance._piece(target, patterns)
        assert found.bound[k] <= exact + 1e-6 * (1.0 + abs(exact))
        close += exact == np.inf or bool(found.bound[k] >= exact - 1e-5 * (1.0 + abs(exact)))
        assert instance.targets().take(found.target[one]).reached(points[one])[0] >= true[target] - 1e-6
    assert len(leaves) > 5
    assert close >= 0.9 * len(leaves)


@pytest.mark.parametrize("kind", KINDS)
def test_children_begin_where_their_node_ended(kind):
    """Without a step of their own they prove as much: the multiplier makes up for the slope."""
    instance = Instance(3, kind, hidden=(9, 9), count=3)
    rule = sign_bounds.Bounding(instance.targets(), steps=6)
    endless = torch.full((3,), torch.inf, dtype=torch.float64)
    nodes = rule.bounded(rule.roots(), endless).nodes
    weight = rule._ascent.run(nodes, endless, 0).weight
    pulled = 0
    for neuron in range(weight.shape[1]):
        chosen = dataclasses.replace(
            nodes, choice=torch.full_like(nodes.choice, neuron), arriving=weight[:, neuron]
        )
        mine = torch.nonzero((nodes.lower[:, neuron] < 0.0) & (nodes.upper[:, neuron] > 0.0)).ravel()
        children = chosen.take(mine).children()
        pulled += int(torch.count_nonzero(children.multiplier))
        unknown = dataclasses.replace(children, bound=torch.full_like(children.bound, -torch.inf))
        found = rule.bounded(unknown, endless[:1].expand(len(children)), steps=0).nodes
        assert torch.all(found.bound >= nodes.bound[mine].repeat(2) - 1e-9)
    assert pulled > 0
