"""Starts: points of the host, in a fixed order, the same for the same seed."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import dovetail as dt
from dovetail.linearised.scaled_problem import ScaledProblem
from dovetail.linearised.starts import EARLY, Starts
from tests.contexts import breach, by_scipy, context_of
from tests.small import linear_net, random_mlp


def host_with_network(seed=0, **changes):
    """x (3) inputs, a spare column, an output without bounds."""
    rng = np.random.default_rng(seed)
    mip = dt.Mip(
        cost=[*rng.normal(size=4), 1.0],
        A=[[1.0, 1.0, 1.0, 1.0, 0.0], [1.0, -1.0, 0.0, -1.0, 0.0]],
        row_lower=[-1.0, -np.inf],
        row_upper=[2.0, 1.0],
        lower=[-1.0, -1.0, -1.0, 0.0, -np.inf],
        upper=[1.0, 1.0, 1.0, 5.0, np.inf],
        integer=[True, False, False, False, False],
    )
    problem = dt.Problem(replace(mip, **changes))
    problem.add_predictor(random_mlp(3, seed=1), [0, 1, 2], [4])
    return problem


def starts_of(problem, seed=0, start=None):
    context = context_of(problem, seed=seed, start=start)
    return context, Starts(context, ScaledProblem.of(context))


def test_every_start_is_a_point_of_the_relaxed_host():
    problem = host_with_network()
    _, starts = starts_of(problem)
    taken = list(itertools.islice(starts, 12))
    assert [kind for _, kind in taken[:2]] == ["cheapest", "least-activity"]
    assert {kind for _, kind in taken[2:]} == {"random"}
    for z, _ in taken:
        assert breach(problem.mip.relaxed(), z) <= 1e-6
    different = {np.round(z[:3], 6).tobytes() for z, _ in taken[2:]}
    assert len(different) == 10


def test_the_cheapest_is_what_scipy_says():
    problem = host_with_network()
    _, starts = starts_of(problem)
    z = starts.cheapest()
    cost = problem.mip.cost.copy()
    cost[4] = 0.0  # an output without bounds says nothing here
    truth, _ = by_scipy(replace(problem.mip.relaxed(), cost=cost))
    assert cost @ z == pytest.approx(truth, abs=1e-7)


def test_the_cheapest_counts_an_output_that_has_bounds():
    limits = {"lower": [-1.0, -1.0, -1.0, 0.0, -4.0], "upper": [1.0, 1.0, 1.0, 5.0, 4.0]}
    _, starts = starts_of(host_with_network(**limits))
    assert starts.cheapest()[4] == pytest.approx(-4.0)


def test_the_least_active_one_does_least():
    problem = host_with_network()
    _, starts = starts_of(problem)
    truth, _ = by_scipy(replace(problem.mip.relaxed(), cost=[0.0, 0.0, 0.0, 1.0, 0.0]))
    assert starts.least_activity()[3] == pytest.approx(truth, abs=1e-7)
    assert starts.least_activity() is starts.least_activity()


def test_a_given_start_comes_first_and_within_bounds():
    problem = host_with_network()
    given = np.array([5.0, 0.5, -7.0, 0.0, 3.0])
    _, starts = starts_of(problem, start=given)
    z, kind = next(iter(starts))
    assert kind == "start"
    assert z == pytest.approx([1.0, 0.5, -1.0, 0.0, 3.0])


def test_half_of_the_later_ones_are_near_the_incumbent():
    problem = host_with_network()
    context, starts = starts_of(problem)
    assert context.incumbent.admit(np.zeros(5), "test") is not None
    kinds = [kind for _, kind in itertools.islice(starts, EARLY + 8)]
    assert set(kinds[: EARLY - 1]) == {"cheapest", "least-activity", "random"}
    assert kinds[EARLY:].count("near") == 4


def test_the_same_seed_gives_the_same_starts():
    def taken(seed):
        _, starts = starts_of(host_with_network(), seed=seed)
        return [z for z, _ in itertools.islice(starts, 6)]

    one, two, other = taken(1), taken(1), taken(2)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_an_infeasible_host_has_no_starts():
    mip = dt.Mip(
        cost=[0.0, 1.0],
        A=[[1.0, 0.0]],
        row_lower=[5.0],
        row_upper=[6.0],
        lower=[-1.0, -9.0],
        upper=[1.0, 9.0],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [0], [1])
    _, starts = starts_of(problem)
    assert list(starts) == []


def test_inputs_without_bounds_have_starts_all_the_same():
    """A random direction may be unbounded there; the supply must not dry up because of it."""
    mip = dt.Mip(cost=[1.0, 1.0, 0.0], lower=[-np.inf, 0.0, -np.inf], upper=[np.inf, 1.0, np.inf])
    problem = dt.Problem(mip)
    problem.add_predictor(random_mlp(2, seed=3), [0, 1], [2])
    _, starts = starts_of(problem)
    assert len(list(itertools.islice(starts, 5))) == 5


def test_starts_end_with_the_time():
    problem = host_with_network()
    context, starts = starts_of(problem)
    supply = iter(starts)
    next(supply)
    from dovetail.run.budget import StopReason

    context.budget.stop(StopReason.CALLBACK)
    assert len(list(supply)) <= 2
