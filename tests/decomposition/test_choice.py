"""The choice of one column per block, by brute force."""

import itertools

import numpy as np
import pytest

from dovetail.decomposition.choice import Choice, Columns, SharedColumns, forgiven
from dovetail.run.budget import Budget
from tests.conftest import FULL


def brute_force(columns):
    """The least cost of one column per block within the rows (no shared columns)."""
    groups = [np.flatnonzero(columns.owner == c) for c in range(columns.count)]
    every = np.array(list(itertools.product(*groups)))
    fits = np.all(columns.use[every].sum(axis=1) <= columns.limit + 1e-9, axis=1)
    return columns.cost[every].sum(axis=1)[fits].min(initial=np.inf)


def random_columns(rng):
    """Few blocks and rows; some rows are equations that some choice meets."""
    count, rows = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    size = int(rng.integers(2, 7)) * count
    owner = np.concatenate([np.arange(count), rng.integers(0, count, size - count)])
    use = np.round(rng.uniform(0, 2, (size, rows)), 1)
    some = np.array([rng.choice(np.flatnonzero(owner == c)) for c in range(count)])
    limit = use[some].sum(axis=0) + np.round(rng.uniform(-0.5, 1.0, rows), 1)
    if rng.random() < 0.3:
        use = np.hstack([use, -use[:, :1]])
        limit = np.append(limit, -use[some, 0].sum())
        limit[0] = -limit[-1]
    scale, shared = np.maximum(1.0, np.abs(limit)), SharedColumns.none(len(limit))
    return Columns(count, limit, scale, shared, owner, np.round(rng.normal(size=size), 2), use)


def chosen_of(columns, first=None):
    """A choice by the LP, swaps and the MIP, from the first column of each block unless told otherwise."""
    groups = [np.flatnonzero(columns.owner == c) for c in range(columns.count)]
    first = [group[0] for group in groups] if first is None else first
    flags = np.isin(np.arange(columns.size), first)
    highest = 100.0 * np.abs(columns.cost).max() / columns.scale
    choice = Choice(columns, flags, highest, forgiven(columns.limit))
    choice.relax(np.zeros(len(columns.limit)), Budget(10.0))
    swapped = choice.missed(), choice.value
    choice.decide(Budget(10.0), 0.0)
    assert columns.owner[choice.chosen].tolist() == list(range(columns.count))
    assert (choice.missed(), choice.value) <= swapped
    return choice


def test_the_choice_is_brute_force():
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(400 if FULL else 60):
        columns = random_columns(rng)
        truth, choice = brute_force(columns), chosen_of(columns)
        assert (choice.missed() == 0.0) == np.isfinite(truth)
        if np.isfinite(truth):
            found += 1
            assert choice.value == pytest.approx(truth, abs=1e-6)
    assert found > 20


def test_a_choice_is_never_worse_than_the_one_it_begins_with():
    rng = np.random.default_rng(1)
    for _ in range(30):
        columns = random_columns(rng)
        groups = [np.flatnonzero(columns.owner == c) for c in range(columns.count)]
        first = np.array([rng.choice(group) for group in groups])
        missed = np.maximum(columns.use[first].sum(axis=0) - columns.limit - 1e-6, 0.0).sum()
        choice = chosen_of(columns, first)
        assert missed > 0.0 or (choice.missed() == 0.0 and choice.value <= columns.cost[first].sum() + 1e-9)


def test_without_limits_every_block_takes_its_cheapest():
    rng = np.random.default_rng(2)
    for _ in range(20):
        columns = random_columns(rng)
        columns.limit[:] = 1e3
        best = sum(columns.cost[columns.owner == c].min() for c in range(columns.count))
        assert chosen_of(columns).value == pytest.approx(best)
