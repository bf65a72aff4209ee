"""Result: reads by name and index, survives JSON, and shows itself safely.

Values by name: one column's, and a family's by index.
"""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dovetail as dt
from dovetail.run.result import Values
from tests.small import bowl, knapsack
from tests.tanh import tanh_problem


@pytest.fixture(scope="module")
def solved():
    return dt.solve(knapsack(), log=False)


def test_value_keeps_the_shape(solved):
    assert solved.value("a") == 1.0
    assert solved.value(4) == -5.0
    assert solved.value([["a", "b"], ["c", "d"]]).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert solved.value(np.array([[0], [3]])).tolist() == [[1.0], [1.0]]


def test_value_refuses_unknown_names_and_missing_points(solved):
    with pytest.raises(dt.ModelError, match="'z'"):
        solved.value("z")
    with pytest.raises(dt.DovetailError, match="no solution"):
        replace(solved, x=None).value("a")
    with pytest.raises(dt.ModelError, match="without names"):
        replace(solved, names=None).value("a")


def test_gap_is_relative_to_the_objective(solved):
    assert replace(solved, objective=-4.0, bound=-5.0).gap == 0.25
    assert replace(solved, objective=0.0, bound=0.0).gap == 0.0
    assert replace(solved, objective=0.0, bound=-5e-10).gap == 0.0  # as near as an optimum's bound may be
    assert replace(solved, bound=None).gap is None


def test_a_bound_of_rows_alone_has_no_gap_to_speak_of():
    found = dt.solve(bowl(), dt.SequentialLinear(starts=1), log=False)
    rows = replace(
        found, status=dt.Status.FEASIBLE, objective=-8.0, bound=-9.0, bound_source="host", message=""
    )
    assert rows.rows_only and "MIP only" in rows._repr_html_() and "gap" not in rows._repr_html_()
    assert not replace(rows, bound_source="boxes").rows_only
    assert not replace(rows, status=dt.Status.OPTIMAL).rows_only
    alone = replace(rows, facts=replace(rows.facts, blocks=()))
    assert not alone.rows_only and "gap" in alone._repr_html_()


def test_json_brings_everything_back():
    result = dt.solve(bowl(), dt.DualDecomposition(iterations=4), log=False)
    again = dt.Result.from_json(result.to_json())
    assert again.to_json() == result.to_json()
    assert np.array_equal(again.x, result.x)
    assert again.violation == result.violation
    assert again.trace.rows == result.trace.rows
    assert np.array_equal(again.multipliers.inputs["bowl"], result.multipliers.inputs["bowl"])
    assert again.status is result.status


def test_json_is_strict_json_even_with_nan_and_infinity(solved):
    row = dt.solve(bowl(), dt.DualDecomposition(iterations=1), log=False).trace[0]
    odd = replace(solved, trace=dt.Trace([replace(row, objective=math.nan, incumbent=math.inf)]))

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    json.loads(odd.to_json(), parse_constant=refuse)
    back = dt.Result.from_json(odd.to_json()).trace[0]
    assert math.isnan(back.objective)
    assert back.incumbent == math.inf


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 9}', '{"format": 1, "status": "fine"}'])
def test_json_that_is_no_result_is_refused(text):
    with pytest.raises(dt.OptionError):
        dt.Result.from_json(text)


def test_trace_becomes_a_frame():
    result = dt.solve(bowl(), dt.DualDecomposition(iterations=3), log=False)
    frame = result.trace.to_frame()
    assert len(frame) == len(result.trace)
    assert {"objective", "rho", "primal", "dual[bowl.inputs]", "mip_seconds"} <= set(frame.columns)


def test_json_brings_back_gains_facts_and_settings():
    result = dt.solve(bowl(), dt.DualDecomposition(iterations=4), log=False)
    again = dt.Result.from_json(result.to_json())
    assert again.trace == result.trace
    assert result.trace.incumbents[-1].value == result.objective
    assert again.settings == result.settings
    assert np.array_equal(again.facts.upper, result.facts.upper)


@pytest.mark.parametrize("columns", [7, -1, 1.0, [True, False], slice(1)])
def test_values_of_columns_that_are_not_there(columns):
    p, _ = tanh_problem()
    result = dt.solve(p, dt.DualDecomposition(iterations=1), log=False)
    with pytest.raises(dt.ModelError, match="value()"):
        result.value(columns)
    assert result.value(np.array([0, 1], dtype=object)).shape == (2,)


def test_it_shows_the_decision(solved):
    assert repr(solved).startswith("<Result: optimal (proved), objective ")
    assert repr(solved).endswith("; a = 1, d = 1, y = -5, 2 at 0>")
    assert "the decision" in solved._repr_html_() and "<th>y</th><td>-5</td>" in solved._repr_html_()
    nothing = replace(solved, x=None, objective=None, violation=None)
    assert "no solution" in repr(nothing) and "the decision" not in nothing._repr_html_()
    evil = replace(solved, names=("<b>", "b\n", "c", "d", "y"))
    assert "<b>" not in evil._repr_html_() and "\n" not in repr(evil)


def test_an_unbounded_problem_has_a_point_and_no_objective():
    problem = dt.Problem(dt.Mip(cost=[0.0, 0.0, -1.0], upper=[3.0, 9.0, math.inf]))
    problem.add_predictor(lambda X: X**2, [0], [1])
    result = dt.solve(problem, log=False)
    assert result.status == "unbounded" and result.x is not None
    assert repr(result).startswith("<Result: unbounded (proved), without limit, 0 iterations of auto")
    assert "no solution" not in repr(result) + result._repr_html_()


def test_one_iteration_is_not_several(solved):
    assert " 1 iteration of " in repr(replace(solved, iterations=1))


def test_values_keep_the_keys_they_were_asked_by(solved):
    assert solved.value({"first": "a", "all": ["a", "y"]})["first"] == 1.0
    assert solved.value({("p", 1): "a", ("p", 2): "d"}) == {("p", 1): 1.0, ("p", 2): 1.0}


NAMES = ["x[0,a]", "x[1,a]", "y_3", "y_4", "cost", "z[2]"]
VALUES = Values(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 0.0]), NAMES)


def test_columns_and_families():
    assert VALUES["cost"] == 5.0 and VALUES["x[1,a]"] == 2.0
    assert VALUES["x"] == {(0, "a"): 1.0, (1, "a"): 2.0}
    assert VALUES["y"] == {3: 3.0, 4: 4.0} and VALUES.families["z"] == {2: 0.0}
    assert list(VALUES) == NAMES and len(VALUES) == 6
    assert "x" in VALUES and "cost" in VALUES and "w" not in VALUES
    assert dict(VALUES)["y_3"] == 3.0


def test_a_column_comes_before_a_family_of_its_name():
    values = Values(np.array([1.0, 2.0]), ["x", "x[0]"])
    assert values["x"] == 1.0 and values.families["x"] == {0: 2.0}


def test_names_that_are_not_there():
    with pytest.raises(KeyError, match="no variable and no family called 'costs'; did you mean 'cost'"):
        VALUES["costs"]
    assert VALUES.get("w") is None


def test_columns_without_names():
    values = Values(np.array([0.0, 2.5]), None)
    assert values["x[1]"] == 2.5 and values["x"] == {0: 0.0, 1: 2.5}


def test_shown_in_short():
    assert repr(VALUES) == "<Values: x[0,a] = 1, x[1,a] = 2, y_3 = 3, y_4 = 4, cost = 5, 1 at 0>"
    assert VALUES.in_short(2) == "x[0,a] = 1, x[1,a] = 2, 3 more, 1 at 0"
    assert "\n" not in repr(Values(np.ones(1), ["a\n\x1b[31m" + "b" * 100]))


def test_of_a_result_and_of_one_from_a_file():
    mip = dt.Mip([1.0, 1.0], lower=[2.0, 3.0], names=["a[0]", "b"])
    result = dt.solve(dt.Problem(mip), log=False)
    for read in (result, dt.Result.from_json(result.to_json())):
        assert read.values["a"] == {0: 2.0} and read.value({"p": "b", "q": "a[0]"}) == {"p": 3.0, "q": 2.0}
        assert read.value(pd.Series(["b"], index=["k"])).loc["k"] == 3.0
