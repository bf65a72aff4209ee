"""Hints: each where it is true, and not where it is not."""

import numpy as np
import pytest

import dovetail as dt
from tests.small import bowl, knapsack, linear_net

INF = np.inf


def said(result, words):
    return [hint for hint in result.hints if words in hint]


def strong(least, upper=1.0, data=None):
    """A strength of at least so much, of a network that gives the sum of two shares."""
    mip = dt.Mip(
        cost=[1.0, 2.0, 0.0],
        A=[[0.0, 0.0, 1.0]],
        row_lower=least,
        row_upper=INF,
        lower=[0.0, 0.0, -INF],
        upper=[upper, upper, INF],
        names=["cement", "ash", "strength"],
        row_names=["strong"],
    )
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0, 1.0]), [0, 1], [2], data=data)
    return problem


@pytest.fixture(scope="module")
def too_strong():
    return dt.solve(strong(3.0), dt.SequentialLinear(starts=3), log=False)


@pytest.fixture(scope="module")
def strong_enough():
    return dt.solve(strong(1.5), log=False)


def test_an_easy_solve_needs_none(strong_enough):
    assert strong_enough.status == "optimal" and strong_enough.hints == ()
    assert dt.solve(knapsack(), log=False).hints == ()


# ---- no point


def test_infeasible_rows_say_what_would_have_to_give_way():
    def mass(least):
        return dt.Problem(dt.Mip([1.0, 1.0], [[1.0, 1.0]], least, INF, upper=1.0, row_names=["mass"]))

    result = dt.solve(mass(10.0), log=False)
    assert result.status == "infeasible"
    (hint,) = result.hints
    assert "the lower limit of constraint mass from 10 to 2" in hint
    assert dt.solve(mass(2.0), log=False).status == "optimal"


def test_bounds_without_a_whole_number_are_named():
    mip = dt.Mip(cost=[1.0, 0.0], lower=[0.2, 0.0], upper=[0.8, 1.0], names=["c", "u"])
    problem = dt.Problem(mip)
    problem.add_predictor(linear_net([1.0]), [1], [0], output_type="classification", threshold=0.0)
    result = dt.solve(problem, log=False)
    assert result.status == "infeasible"
    assert result.hints == ("the bounds of c hold neither class 0 nor class 1: widen them",)


def test_no_solution_says_what_the_nearest_candidate_needs(too_strong):
    assert too_strong.status == "no_solution"
    (hint,) = said(
        too_strong, "the nearest candidate would pass with the lower limit of constraint strong from 3 to "
    )
    needed = float(hint.rsplit(" ", 1)[1])
    assert needed <= 2.0  # no more than the network can give
    assert dt.solve(strong(needed), dt.SequentialLinear(starts=3), log=False).x is not None


def test_an_output_out_of_reach_is_proved_and_has_its_hint():
    result = dt.solve(strong(3.0), log=False)
    assert result.status == "infeasible"
    assert said(result, "would pass with")


def test_no_solution_of_one_method_names_the_one_that_tries_several(too_strong, strong_enough):
    assert said(too_strong, 'method="auto"')
    assert not said(dt.solve(strong(3.0), log=False), 'method="auto"')
    assert not said(strong_enough, 'method="auto"')


def test_a_class_that_is_not_certain_is_no_matter_of_limits():
    mip = dt.Mip(cost=[0.0, 1.0], A=[[0.0, 1.0]], row_lower=1.0, row_upper=1.0, upper=1.0)
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: X - 2.0, [0], [1], output_type="classification", threshold=0.0)
    result = dt.solve(problem, dt.SequentialLinear(starts=2), log=False)
    assert result.status == "no_solution"
    for hint in said(result, "would pass with"):
        assert "row[0] from 1 to 0" in hint  # its class is 0, for certain: then it may be said


# ---- time


def test_a_real_solve_without_time():
    result = dt.solve(bowl(), time_limit=0.0, log=False)
    assert result.stop_reason == "time" and bool(said(result, "time_limit=")) == (result.x is None)


# ---- a small gap


# ---- inputs that nothing limits


@pytest.fixture(scope="module")
def unlimited():
    return dt.solve(strong(1.5, upper=INF), dt.SequentialLinear(starts=3), log=False)


def test_inputs_without_a_limit(unlimited, strong_enough):
    (hint,) = said(unlimited, "bounds for")
    assert "cement (above), 1.5 here" in hint and "ash (above), 0 here" in hint and "data=" in hint
    assert not said(strong_enough, "bounds for")


def test_what_is_within_the_training_data_is_limited_enough():
    seen = np.array([[0.0, 0.0], [5.0, 5.0]])
    result = dt.solve(strong(1.5, upper=INF, data=seen), dt.SequentialLinear(starts=3), log=False)
    assert result.x is not None and result.hints == ()


def test_what_is_nearly_inside_is_noted_all_the_same(capsys, tmp_path):
    seen = np.array([[0.01, 0.01], [5.0, 5.0]])
    result = dt.solve(strong(0.5, data=seen))
    assert result.extrapolations and result.hints == ()
    told = " ".join(capsys.readouterr().out.split())
    assert "outside the training data by at most 1 % of the range" in told
    page = result.report(tmp_path / "page.html").read_text()
    assert "outside the training data, by no more than 1 % of its range" in page


def test_what_left_the_training_data():
    seen = np.array([[0.0, 0.0], [0.5, 0.5]])
    result = dt.solve(strong(1.5, data=seen), log=False)
    (hint,) = result.hints
    assert ("training data" in hint and "2 inputs are outside" in hint) or "1 input is outside" in hint
    assert str(result.extrapolations[0]) not in hint  # which the log's checks and the page have already
    assert not said(dt.solve(strong(0.5, data=seen), log=False), "training data")


def test_bounds_come_before_a_longer_time():
    mip = dt.Mip([1.0, 0.0], upper=[INF, INF], lower=[0.0, -INF], integer=[True, False], sense="max")
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: np.sin(X), [0], [1])
    result = dt.solve(problem, time_limit=0.3, log=False)
    assert result.hints[0].startswith("bounds for ")


def test_the_log_warns_before_the_search(capsys):
    dt.solve(strong(1.5, upper=INF), dt.SequentialLinear(starts=1))
    said = capsys.readouterr().out
    assert "warning     unbounded inputs: cement (above), ash (above)" in said
    assert said.index("warning") < said.index("legend")
    dt.solve(strong(1.5), dt.SequentialLinear(starts=1))
    assert "warning" not in capsys.readouterr().out


# ---- as data


def test_hints_survive_a_file(too_strong):
    assert too_strong.hints
    assert dt.Result.from_json(too_strong.to_json()).hints == too_strong.hints
