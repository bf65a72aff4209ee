"""Rule lists: the first rule that holds counts, on every threshold and beside it."""

import itertools

import numpy as np
import pytest

import dovetail as dt
from dovetail.predictors.trees.predictor import probe_rows

LIST = dt.RuleList(
    [
        ([("age", ">", 3.0), ("dose", "<=", 1.5)], [5.0, 1.0]),
        ([("kind", "==", 2), ("age", "<", 1)], [2.0, 0.0]),
        ([("kind", "!=", 0), ("dose", ">=", 1.5), ("age", "<=", 4)], [7.0, -3.0]),
    ],
    otherwise=[0.0, 0.5],
    features=["age", "dose", "kind"],
)


def by_hand(age, dose, kind):
    if age > 3.0 and dose <= 1.5:
        return [5.0, 1.0]
    if kind == 2 and age < 1:
        return [2.0, 0.0]
    if kind != 0 and dose >= 1.5 and age <= 4:
        return [7.0, -3.0]
    return [0.0, 0.5]


def test_the_first_rule_that_holds_counts():
    ensemble = LIST.trees()
    grid = np.array(
        [*itertools.product([0, 0.9, 1, 3, 3.1, 4, 5], [1, 1.5, 2], [-1, 0, 1, 2, 3])], dtype=float
    )
    rows = np.concatenate([grid, *probe_rows(ensemble, np.random.default_rng(0))])
    truth = np.array([by_hand(*row) for row in rows])
    assert np.array_equal(LIST.predict(rows), truth)
    assert np.array_equal(ensemble.values(rows), truth)
    assert len(np.unique(truth, axis=0)) == 4


def test_a_list_is_solved_and_proved():
    mip = dt.Mip(
        [-1.0, -2.0, 0.3, 1.0, 1.0],
        lower=[0.0, 0.0, 0.0, -9.0, -9.0],
        upper=[5.0, 3.0, 3.0, 9.0, 9.0],
        integer=[False, False, True, False, False],
        sense="max",
    )
    problem = dt.Problem(mip)
    block = problem.add_predictor(LIST, [0, 1, 2], [3, 4])
    assert block.description.feature_names == ("age", "dose", "kind")
    result = dt.solve(problem, log=False, time_limit=60.0)
    assert result.status == "optimal"
    # the first rule, just above 3 years, no dose, the third kind: -3 + 0.9 + 6
    assert result.objective == pytest.approx(3.9, abs=1e-5)


def test_lists_without_rules_or_conditions():
    X = np.zeros((2, 1))
    assert dt.RuleList([], 4.0, 1).predict(X).tolist() == [[4.0], [4.0]]
    always = dt.RuleList([([], 3.0), ([(0, ">", 1)], 5.0)], 4.0, features=1)
    assert always.trees().values(X).tolist() == always.predict(X).tolist() == [[3.0], [3.0]]
    late = dt.RuleList([([(0, ">", 1)], 5.0), ([], 3.0)], 4.0, features=1)
    assert late.trees().values(np.array([[0.0], [2.0]]))[:, 0].tolist() == [3.0, 5.0]


@pytest.mark.parametrize(
    ("rules", "otherwise", "words"),
    [
        ([([("agee", ">", 3)], 1.0)], 0.0, "no feature is called 'agee'.*age"),
        ([([("age", "=>", 3)], 1.0)], 0.0, "give \\(feature, comparison, number\\)"),
        ([([(2, ">", 3)], 1.0)], 0.0, "no condition of 2 features"),
        ([([(0, ">", np.nan)], 1.0)], 0.0, "no condition"),
        ([([(0, ">", 3)], [1.0, 2.0])], 0.0, "1 and 2 numbers"),
        ([([(0, ">", 3)], "high")], 0.0, "a value is 'high'"),
        (["age > 3"], 0.0, "rule 0 is 'age > 3'"),
    ],
)
def test_what_is_no_rule_is_refused(rules, otherwise, words):
    with pytest.raises(dt.PredictorError, match=words):
        dt.RuleList(rules, otherwise, ["age", "dose"])


def test_a_wrong_number_of_features_is_named():
    problem = dt.Problem(dt.Mip([0.0] * 4, lower=-1.0, upper=1.0))
    with pytest.raises(dt.PredictorError, match="takes 3 features"):
        problem.add_predictor(LIST, [0, 1], [2, 3])
