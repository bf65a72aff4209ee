"""Neighbourhoods: which integers are free, what grows and shrinks, and when nothing is left."""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.methods import neighbourhood
from dovetail.methods.neighbourhood import Neighbourhood
from dovetail.methods.portfolio import moves_of
from dovetail_study.zoo import build
from tests.contexts import context_of


def choices(rows=6, seed=0, relu=True):
    """One of four in each row; a network sees two sums of what is chosen."""
    rng = np.random.default_rng(seed)
    n = 4 * rows
    A = np.zeros((rows + 2, n + 3))
    for row in range(rows):
        A[row, 4 * row : 4 * row + 4] = 1.0
    A[rows:, :n] = rng.normal(size=(2, n)) / rows
    A[[rows, rows + 1], [n, n + 1]] = -1.0
    side = np.repeat([1.0, 0.0], [rows, 2])
    mip = dt.Mip(
        cost=np.repeat([0.0, 1.0], [n + 2, 1]), A=A, row_lower=side, row_upper=side,
        lower=np.repeat([0.0, -5.0, -99.0], [n, 2, 1]), upper=np.repeat([1.0, 5.0, 99.0], [n, 2, 1]),
        integer=np.repeat([True, False], [n, 3]),
    )  # fmt: skip
    problem = dt.Problem(mip)
    torch.manual_seed(seed)
    layers = torch.nn.Linear(2, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1)
    net = torch.nn.Sequential(*layers).double()
    problem.add_predictor(net if relu else lambda X: X[:, :1] ** 2 + X[:, 1:], [n, n + 1], [n + 2])
    return problem


def first_point(problem):
    """The first of each row."""
    x = problem.mip.lower.clip(0.0)
    n = x.size - 3
    x[:n:4] = 1.0
    x[n : n + 2] = (problem.mip.A @ x)[-2:]
    return problem.predict(x)


@pytest.mark.parametrize("relu", [True, False])
def test_better_points_near_the_best_one(relu):
    problem = choices(relu=relu)
    context = context_of(problem)
    context.incumbent.offer(first_point(problem), "test")
    before = context.incumbent.objective
    Neighbourhood(relax=False, rounds=12).solve(context)
    assert context.incumbent.objective < before


def test_once_all_of_it_was_searched_in_vain_nothing_is_left():
    """Exact rows: the whole problem is the last neighbourhood, and its optimum the problem's."""
    problem = choices(rows=3)
    context = context_of(problem)
    context.incumbent.offer(first_point(problem), "test")
    Neighbourhood(relax=False).solve(context)
    exact = dt.solve(problem, log=False)
    assert context.incumbent.objective == pytest.approx(exact.objective, rel=1e-4)
    near, rows = moves_of(context, Neighbourhood(relax=False))
    assert not near.ready(context) or not rows.ready(context)


def test_sizes_follow_success(monkeypatch):
    problem = choices()
    context = context_of(problem)
    context.incumbent.offer(first_point(problem), "test")
    near, _ = moves_of(context, Neighbourhood(relax=False))
    near._size, sizes = 5.0, []
    for closed in (True, True, False):
        monkeypatch.setattr(type(near._form), "search", lambda *_, closed=closed: (0.0, closed))
        near.turn(context)
        sizes.append(near._size)
    assert sizes == pytest.approx([6.0, 7.2, 5.76])
    assert near._nodes == neighbourhood.FIRST_NODES * neighbourhood.MORE_NODES


def test_the_signs_of_neurons_are_moved_where_there_are_no_integers():
    problem = build("wine", 1, 0)
    context = context_of(problem)
    dt.SequentialLinear(starts=1).solve(context)
    outcome = Neighbourhood(relax=False, rounds=3).solve(context)
    assert outcome.iterations >= 1 and context.incumbent.violation.within()
