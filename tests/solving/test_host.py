"""What the host proves alone, and what it must not claim."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.run import engine as engines
from dovetail.run.budget import Budget
from dovetail.solving.host import analyse_host
from tests.small import knapsack, linear_net


def with_net(mip, inputs=(0,), outputs=(1,), **options):
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net(np.ones(len(inputs))), list(inputs), list(outputs), **options)
    return problem


def test_infeasible_rows():
    mip = dt.Mip(cost=[1.0, 1.0], A=[[1.0, 0.0]], row_lower=[5.0], row_upper=[6.0], lower=0.0, upper=1.0)
    assert analyse_host(with_net(mip), Budget(10.0)).infeasible


def test_infeasible_integers():
    # 2 x = 1 has no integer solution, though the relaxation has one
    mip = dt.Mip(
        cost=[1.0, 1.0], A=[[2.0, 0.0]], row_lower=[1.0], row_upper=[1.0], lower=0.0, upper=[3.0, 9.0],
        integer=[True, False],
    )  # fmt: skip
    assert analyse_host(with_net(mip), Budget(10.0)).infeasible


def test_bounds_that_no_class_fits():
    mip = dt.Mip(cost=[1.0, 1.0], lower=[0.0, 0.2], upper=[1.0, 0.8])
    host = analyse_host(with_net(mip, output_type="classification"), Budget(10.0))
    assert host.infeasible
    assert "x[1]" in host.note


def test_a_feasible_host_says_nothing_about_the_network():
    # y = x is asked to be 5 while x <= 1: only the network makes this infeasible, so the host may not say it
    mip = dt.Mip(cost=[1.0, 1.0], lower=[0.0, 5.0], upper=[1.0, 5.0])
    host = analyse_host(with_net(mip), Budget(10.0))
    assert not host.infeasible


def test_a_free_output_in_the_objective_is_not_unbounded():
    host = analyse_host(knapsack(), Budget(10.0))
    assert not host.ray
    assert host.bound == -np.inf  # nothing bounds y without the network


def test_bounded_outputs_give_a_bound():
    mip = dt.Mip(cost=[1.0, -2.0], lower=[0.0, -3.0], upper=[1.0, 4.0])
    assert analyse_host(with_net(mip), Budget(10.0)).bound == pytest.approx(-8.0)


def test_classes_give_a_bound_even_without_bounds():
    mip = dt.Mip(cost=[0.0, -1.0], lower=[0.0, -np.inf], upper=[1.0, np.inf])
    assert analyse_host(with_net(mip, output_type="classification"), Budget(10.0)).bound == pytest.approx(
        -1.0
    )


def test_a_direction_outside_the_blocks_is_a_ray():
    mip = dt.Mip(cost=[0.0, 0.0, -1.0], lower=[0.0, -9.0, 0.0], upper=[1.0, 9.0, np.inf])
    assert analyse_host(with_net(mip), Budget(10.0)).ray


def test_a_direction_through_an_input_is_not():
    # x has no upper bound and pays to grow, but what the network says of it may limit it
    mip = dt.Mip(cost=[-1.0, 0.0], lower=[0.0, -9.0], upper=[np.inf, 9.0])
    host = analyse_host(with_net(mip), Budget(10.0))
    assert not host.ray
    assert not host.infeasible


def test_maximisation_is_judged_the_same():
    mip = dt.Mip(cost=[1.0, 2.0], lower=[0.0, -3.0], upper=[1.0, 4.0], sense="max")
    assert analyse_host(with_net(mip), Budget(10.0)).bound == pytest.approx(-9.0)


def test_no_time_proves_nothing():
    mip = dt.Mip(cost=[1.0, 1.0], A=[[1.0, 0.0]], row_lower=[5.0], row_upper=[6.0], lower=0.0, upper=1.0)
    host = analyse_host(with_net(mip), Budget(0.0))
    assert not host.infeasible
    assert host.bound == -np.inf


@pytest.fixture
def slow_lps(monkeypatch):
    """As if every LP took hours."""
    monkeypatch.setattr(engines, "PER_NONZERO", 1e4)


def test_a_host_that_takes_too_long_is_bounded_by_its_box(slow_lps):
    # the row makes x - z large, but only the rows' box bounds z at all
    mip = dt.Mip(
        cost=[0.0, 1.0, -2.0], A=[[1.0, 0.0, -1.0]], row_lower=[-3.0], row_upper=[9.0],
        lower=[0.0, -1.0, 0.0], upper=[2.0, 4.0, np.inf],
    )  # fmt: skip
    host = analyse_host(with_net(mip), Budget(10.0))
    assert (host.asked, host.proof.source, host.x) == (False, "box", None)
    assert host.bound == pytest.approx(-1.0 - 2.0 * 5.0, abs=1e-5)
    assert host.bound <= -11.0
    asked = analyse_host(with_net(mip), Budget(10.0), at_any_size=True)
    assert (asked.asked, asked.proof.source) == (True, "host")
    assert asked.x is not None


def test_where_nothing_limits_the_objective_the_host_is_asked_whatever_it_takes(slow_lps):
    mip = dt.Mip(cost=[0.0, 1.0, -1.0], lower=[0.0, -1.0, 0.0], upper=[2.0, 4.0, np.inf], A=[[1.0, 1.0, 0.0]],
                 row_lower=-9.0, row_upper=9.0)  # fmt: skip
    host = analyse_host(with_net(mip), Budget(10.0))
    assert host.asked
    assert host.ray


def test_an_output_without_bounds_is_no_reason_to_ask_a_large_host(slow_lps):
    """Its network decides how far it goes; no direction outside the block improves anything for ever."""
    mip = dt.Mip(cost=[0.0, 1.0, -1.0], lower=[0.0, -np.inf, 0.0], upper=[2.0, np.inf, 7.0],
                 A=[[1.0, 0.0, 1.0]], row_lower=-9.0, row_upper=9.0)  # fmt: skip
    host = analyse_host(with_net(mip), Budget(10.0))
    assert (host.asked, host.bound, host.ray) == (False, -np.inf, False)
