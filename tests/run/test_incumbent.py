"""The incumbent: completes what can be completed, in the right order, and lets nothing else through."""

from time import sleep

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.mip.highs import HighsEngine
from dovetail.run import engine as engines
from dovetail.run.bound import Bound
from dovetail.run.budget import Budget
from dovetail.run.incumbent import Incumbent
from dovetail.run.work import Stopwatch
from tests.small import knapsack, linear_net
from tests.tanh import problem_of, tanh_net


def inner(problem):
    return Incumbent(problem, HighsEngine(), Budget(30.0), Stopwatch())


def test_rounds_integers_and_sets_outputs():
    incumbent = inner(knapsack())
    objective = incumbent.offer(np.array([0.9, 0.1, 0.2, 0.8, 123.0]), "test")
    assert incumbent.x.tolist() == [1.0, 0.0, 0.0, 1.0, -5.0]
    assert objective == -4.0
    assert incumbent.source == "test"


def test_no_value_is_minus_zero():
    """Rounding and clipping make it, and networks answer it; people take it for a mistake."""
    problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=[-1.0, -9.0], upper=9.0, integer=[True, False]))
    problem.add_predictor(lambda X: -X, [0], [1])
    incumbent = inner(problem)
    x = incumbent.admit(np.array([-0.3, 0.0]), "x")
    assert x.tolist() == [0.0, 0.0] and not np.any(np.signbit(x)) and not np.any(np.signbit(incumbent.x))


def test_keeps_the_best_in_either_sense():
    for sense, first, second in (
        ("min", [1, 0, 0, 1, 0], [0, 0, 0, 1, 0]),
        ("max", [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]),
    ):
        incumbent = inner(knapsack(sense))
        incumbent.offer(np.array(first, float), "good")
        incumbent.offer(np.array(second, float), "worse")
        assert incumbent.source == "good", sense
        assert incumbent.objective == (-4.0 if sense == "min" else 2.0)


@pytest.mark.parametrize(("sense", "first", "second"), [("min", -2.0, -4.0), ("max", -4.0, 2.0)])
def test_puts_every_gain_on_record_in_the_users_sense(sense, first, second):
    incumbent = inner(knapsack(sense))
    points = {-2.0: [0, 0, 0, 1, 0], -4.0: [1, 0, 0, 1, 0], 2.0: [0, 1, 0, 0, 0]}
    for value in (first, second, first):  # the last one is no gain
        incumbent.offer(np.array(points[value], float), f"found {value}")
    assert [(gain.value, gain.source) for gain in incumbent.incumbents] == [
        (first, f"found {first}"),
        (second, f"found {second}"),
    ]
    incumbent.raise_bound(Bound(-9.0, "prices"))
    incumbent.raise_bound(Bound(-10.0, "nobody"))
    sign = 1.0 if sense == "min" else -1.0
    assert [(gain.value, gain.source) for gain in incumbent.bounds] == [(sign * -9.0, "prices")]


def test_refuses_and_remembers_the_nearest_miss():
    incumbent = inner(knapsack())
    assert np.isnan(incumbent.offer(np.array([1.0, 1.0, 1.0, 1.0, 0.0]), "all"))
    assert np.isnan(incumbent.offer(np.array([1.0, 1.0, 1.0, 0.0, 0.0]), "three"))
    assert incumbent.x is None
    assert incumbent.nearest.rows.amount == 1.0
    assert incumbent.nearest.rows.name == "row[0]"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_refuses_what_is_not_finite(bad):
    incumbent = inner(knapsack())
    assert np.isnan(incumbent.offer(np.array([1.0, bad, 0.0, 0.0, 0.0]), "bad"))
    assert incumbent.x is None


def with_slack(integer_slack):
    """y = 2 x is to be covered by a purchase z at cost 3: z >= y; the incumbent has to choose z."""
    mip = dt.Mip(
        cost=[-1.0, 3.0, 0.0],
        A=[[0.0, 1.0, -1.0]],
        row_lower=[0.0],
        row_upper=[np.inf],
        lower=[0.0, 0.0, -np.inf],
        upper=[4.0, 50.0, np.inf],
        integer=[False, integer_slack, False],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([2.0]), [0], [2])
    return problem


def test_an_lp_chooses_the_columns_outside_the_blocks():
    incumbent = inner(with_slack(False))
    assert incumbent.offer(np.array([1.25, 0.0, 0.0]), "x") == pytest.approx(-1.25 + 3 * 2.5)
    assert incumbent.x[1] == pytest.approx(2.5)


def test_a_feasible_candidate_is_improved_where_columns_outside_carry_cost():
    incumbent = inner(with_slack(False))
    assert incumbent.offer(np.array([1.25, 40.0, 0.0]), "x") == pytest.approx(-1.25 + 3 * 2.5)


def test_a_mip_chooses_integers_outside_the_blocks_when_the_lp_cannot():
    incumbent = inner(with_slack(True))
    assert incumbent.offer(np.array([1.25, 0.0, 0.0]), "x") == pytest.approx(-1.25 + 3 * 3)
    assert incumbent.x[1] == 3.0


def test_inputs_are_never_moved():
    mip = dt.Mip(
        cost=[1.0, 0.0], A=[[1.0, 0.0]], row_lower=[1.0], row_upper=[np.inf], lower=[0, -9], upper=[2, 9]
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [0], [1])
    incumbent = inner(problem)
    assert np.isnan(incumbent.offer(np.array([0.5, 0.0]), "x"))  # only moving the input would help
    assert incumbent.x is None


def test_bounds_on_outputs_count():
    mip = dt.Mip(cost=[1.0, 0.0], lower=[0.0, -1.0], upper=[2.0, 1.0])
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [0], [1])
    incumbent = inner(problem)
    assert np.isnan(incumbent.offer(np.array([1.5, 0.0]), "x"))
    assert incumbent.offer(np.array([0.75, 0.0]), "x") == 0.75


def test_proved_when_the_bound_is_met():
    incumbent = inner(knapsack())
    incumbent.offer(np.array([1.0, 0.0, 0.0, 1.0, 0.0]), "x")
    assert not incumbent.proved
    incumbent.raise_bound(Bound(-4.0))
    assert incumbent.proved


def test_an_engine_in_trouble_costs_a_candidate_not_the_solve():
    class Broken:
        name = "broken"

        def load(self, *arguments, **options):
            return self

        def solve(self, *arguments, **options):
            raise dt.EngineError("no")

    incumbent = Incumbent(with_slack(False), Broken(), Budget(30.0), Stopwatch())
    assert np.isnan(incumbent.offer(np.array([1.25, 0.0, 0.0]), "x"))
    assert incumbent.offer(np.array([0.0, 0.0, 0.0]), "x") == 0.0


@pytest.mark.parametrize("gap", [1e-4, 0.0])
def test_a_small_objective_proves_nothing(gap):
    """|objective| is about 1e-8: what is 1e-9 away is a hair, not a gap."""
    p = problem_of([0.0, -1e-8], lower=[0.0, -2.0], upper=[1.0, 2.0])
    p.add_predictor(tanh_net(), [0], [1])
    result = dt.solve(p, dt.Auto(exact=False), gap=gap, log=False)
    assert result.value(1) == pytest.approx(
        tanh_net()(torch.ones(1, 1, dtype=torch.float64)).item(), abs=1e-1
    )


def test_a_point_that_passes_is_made_cheaper_only_where_there_is_time(monkeypatch):
    # x reads nothing and costs 1; the row lets it go down to 2
    mip = dt.Mip(
        cost=[0.0, 0.0, 1.0], A=[[0.0, 0.0, 1.0]], row_lower=2.0, row_upper=9.0, upper=[1.0, 9.0, 9.0]
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [0], [1])
    assert inner(problem).offer(np.array([0.0, 0.0, 5.0]), "test") == pytest.approx(2.0)
    monkeypatch.setattr(engines, "PER_NONZERO", 1e4)
    hasty = inner(problem)
    assert hasty.offer(np.array([0.0, 0.0, 5.0]), "test") == 5.0
    # one that misses a row is repaired all the same
    assert hasty.offer(np.array([0.0, 0.0, 0.0]), "test") == pytest.approx(2.0)


@pytest.mark.parametrize(("target", "met"), [(None, False), (-4.0, True), (-3.9, True), (-4.1, False)])
def test_a_target_is_met_from_the_right_side(target, met):
    incumbent = Incumbent(knapsack(), HighsEngine(), Budget(30.0), Stopwatch(), target=target)
    assert not incumbent.on_target
    incumbent.offer(np.array([1.0, 0.0, 0.0, 1.0, 0.0]), "x")
    assert incumbent.objective == -4.0
    assert incumbent.on_target == met


def test_the_nearest_candidate_is_kept():
    incumbent = inner(knapsack())
    assert incumbent.nearest_x is None
    for chosen in ([1, 1, 1, 1, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]):
        incumbent.offer(np.array(chosen, dtype=float), "x")
    assert incumbent.nearest_x[:4].tolist() == [1.0, 1.0, 1.0, 0.0]
    assert dt.check(knapsack(), incumbent.nearest_x).rows.amount == incumbent.nearest.rows.amount == 1.0


def test_a_bound_of_the_rows_alone_is_told_apart():
    incumbent = inner(knapsack())
    assert not incumbent.rows_only
    incumbent.raise_bound(Bound(-9.0, "host"))
    assert incumbent.rows_only
    incumbent.raise_bound(Bound(-8.0, "exact"))
    assert not incumbent.rows_only
    alone = inner(dt.Problem(dt.Mip(cost=[1.0])))
    alone.raise_bound(Bound(0.0, "host"))
    assert not alone.rows_only  # without networks the rows are all there is


def test_whoever_listens_hears_of_changes_and_of_nothing_else():
    incumbent, heard = inner(knapsack()), []
    incumbent.on_change = lambda: heard.append(incumbent.objective)
    point = np.array([1.0, 0.0, 0.0, 1.0, 0.0])
    incumbent.offer(point, "x")
    incumbent.offer(point, "x")  # is known already
    incumbent.raise_bound(Bound(-9.0))
    incumbent.raise_bound(Bound(-10.0))  # says less
    assert heard == [-4.0, -4.0]


def test_time_is_kept_back_for_the_last_check_of_a_slow_predictor():
    def slow(X):
        sleep(0.2)
        return X.sum(axis=1, keepdims=True)

    problem = dt.Problem(dt.Mip(cost=[0.0, 0.0, 1.0], lower=0.0, upper=9.0))
    problem.add_predictor(slow, [0, 1], [2])
    budget = Budget(100.0)
    incumbent = Incumbent(problem, HighsEngine(), budget, Stopwatch())
    incumbent.offer(np.array([1.0, 2.0, 0.0]), "x")
    assert budget.seconds + budget.left < 99.9
