"""Mip: reads arrays, refuses what solvers would choke on, and names the culprit."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import dovetail as dt


def build(**changes):
    arguments = {
        "cost": [1.0, 2.0],
        "A": [[1.0, 1.0], [1.0, -1.0]],
        "row_lower": [0.0, -np.inf],
        "row_upper": [4.0, 3.0],
        "lower": [0.0, 0.0],
        "upper": [3.0, 1.0],
        "integer": [False, True],
        "names": ["flow", "open"],
        "row_names": ["balance", "cap"],
    }
    return dt.Mip(**{**arguments, **changes})


def test_holds_what_it_was_given():
    mip = build()
    assert (mip.n_rows, mip.n_columns) == (2, 2)
    assert mip.objective(np.array([2.0, 1.0])) == 4.0
    assert mip.column_name(1) == "open"
    assert mip.row_name(0) == "balance"


@pytest.mark.parametrize("form", [np.array, sp.csr_matrix, sp.csc_array, sp.coo_array, list])
def test_takes_dense_and_sparse(form):
    A = [[1.0, 1.0], [1.0, -1.0]]
    assert np.array_equal(build(A=form(A)).A.toarray(), A)


def test_needs_no_rows():
    mip = dt.Mip(cost=[1.0], lower=-1.0, upper=2.0)
    assert mip.n_rows == 0
    assert mip.A.shape == (0, 1)


def test_scalars_stand_for_vectors():
    mip = dt.Mip(cost=[1.0, 1.0], lower=-1.0, upper=5.0, integer=True)
    assert mip.lower.tolist() == [-1.0, -1.0]
    assert mip.integer.all()


def test_huge_limits_mean_none():
    mip = build(upper=[1e20, 1e30], row_upper=[1e21, 3.0])
    assert np.isposinf(mip.upper).all()
    assert np.isposinf(mip.row_upper[0])


def test_arrays_cannot_be_changed_behind_its_back():
    cost = np.array([1.0, 2.0])
    mip = build(cost=cost)
    cost[0] = 99.0
    assert mip.cost[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        mip.cost[0] = 5.0


def test_a_mip_is_read_only():
    mip = dt.Mip([1.0], [[2.0]], 0.0, 1.0)
    with pytest.raises(ValueError, match="read-only"):
        mip.A.data[0] = np.nan


def test_programs_made_of_each_other_share_what_is_the_same():
    mip = build()
    for other in (replace(mip, lower=-1.0), mip.minimised(), mip.loosened(), mip.relaxed()):
        assert other.A is mip.A
        assert other.names is mip.names
    assert mip.as_checked() is mip  # no row that whole points cross in tiny steps
    again = replace(mip, A=mip.A.copy())
    assert again.A is not mip.A  # a copy that somebody may have changed is looked at


def test_minimised_turns_the_sense_and_nothing_else():
    mip = build(sense="max", offset=7.0)
    turned = mip.minimised()
    x = np.array([1.5, 1.0])
    assert turned.objective(x) == -mip.objective(x)
    assert turned.sense == "min"
    assert turned.row_names == mip.row_names


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        ({"cost": [np.nan, 1.0]}, "cost is nan for flow"),
        ({"cost": [1.0, np.inf]}, "cost is inf for open"),
        ({"cost": "ab"}, "cost"),
        ({"cost": []}, "cost is empty|A has shape"),
        ({"A": [[np.nan, 1.0], [1.0, 1.0]]}, "balance, variable flow; give a finite number"),
        ({"A": [[1.0, np.inf], [1.0, 1.0]]}, "balance, variable open"),
        ({"A": [[1.0, 1.0], [1e-12, 1.0]]}, "cap, variable flow"),
        ({"A": [[1.0, 1.0], [1e16, 1.0]]}, "cap, variable flow"),
        ({"A": [[1.0, 1.0, 1.0]]}, r"\(1, 3\)"),
        ({"row_lower": [np.nan, 0.0]}, "balance"),
        ({"row_lower": [5.0, 0.0]}, "balance"),
        ({"row_upper": [1.0]}, "row_upper has 1 entry, A has 2 rows: give one per row of A"),
        (
            {"row_lower": ()},
            "row_lower is missing, but A has 2 rows: .* row_lower=-np.inf where no constraint",
        ),
        ({"row_upper": ()}, "row_upper is missing, .* row_upper=np.inf where no constraint"),
        ({"lower": [0.0, 0.0, 0.0]}, "lower has 3 entries, cost has 2: give one per variable"),
        ({"lower": [np.nan, 0.0]}, "flow"),
        ({"lower": [4.0, 0.0]}, "flow"),
        ({"lower": [np.inf, 0.0]}, "flow"),
        ({"upper": [3.0, -np.inf]}, "open"),
        ({"upper": [[3.0, 1.0]]}, "upper must be a vector"),
        ({"integer": [0, 2]}, "semi-continuous"),
        ({"integer": [True]}, "integer has shape"),
        ({"sense": "minimum"}, "sense is 'minimum'"),
        ({"offset": np.nan}, "offset"),
        ({"names": ["a", "a"]}, "'a' twice"),
        ({"names": ["a"]}, "names has 1 entry, cost has 2: give one per variable"),
        ({"row_names": ["a", "b", "c"]}, "row_names has 3 entries"),
    ],
)
def test_refuses_bad_input_by_name(change, culprit):
    with pytest.raises(dt.ModelError, match=culprit):
        build(**change)


def test_resolves_names_and_indices():
    mip = build()
    assert mip.resolve("inputs", [["open", "flow"]]).tolist() == [[1, 0]]
    assert mip.resolve("inputs", np.array([1, 0])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("references", "culprit"),
    [
        (["shut"], "no variable called 'shut'"),
        ([2], "variable 2"),
        ([-1], "variable -1"),
        ([0.0], "float64"),
        ([True], "bool"),
    ],
)
def test_refuses_columns_that_are_not_there(references, culprit):
    with pytest.raises(dt.ModelError, match=culprit):
        build().resolve("inputs", references)


def test_names_need_names():
    with pytest.raises(dt.ModelError, match="without names"):
        build(names=None).resolve("inputs", ["flow"])


class TestBoundsOfIntegers:
    def test_are_rounded_inwards(self):
        mip = dt.Mip(
            [1.0, 1.0, 1.0], lower=[0.3, -1.7, 0.3], upper=[2.9, 1.0, 2.9], integer=[True, True, False]
        )
        assert mip.lower.tolist() == [1.0, -1.0, 0.3]
        assert mip.upper.tolist() == [2.0, 1.0, 2.9]

    def test_a_hair_beside_a_whole_number_is_that_number(self):
        mip = dt.Mip([1.0], lower=[1.0 + 1e-9], upper=[3.0 - 1e-9], integer=True)
        assert (mip.lower[0], mip.upper[0]) == (1.0, 3.0)

    def test_without_a_whole_number_between_the_problem_is_infeasible(self):
        result = dt.solve(
            dt.Problem(dt.Mip([1.0, 1.0], lower=[0.3, 0], upper=[0.7, 1], integer=True)), log=False
        )
        assert result.status == "infeasible"
        assert "x[0]" in result.message


def test_violations_are_signed_and_the_same_for_a_batch():
    mip = dt.Mip(
        cost=[0.0, 0.0], A=[[1.0, 2.0], [1.0, 0.0]], row_lower=[0.0, -np.inf], row_upper=[4.0, 1.0],
        lower=[0.0, -np.inf], upper=[3.0, np.inf],
    )  # fmt: skip
    X = np.array([[1.0, 1.0], [5.0, -3.0]])
    assert mip.row_violation(X).tolist() == [[-1.0, 0.0], [1.0, 4.0]]
    assert mip.bound_violation(X).tolist() == [[-1.0, -np.inf], [2.0, -np.inf]]
    for x, rows, bounds in zip(X, mip.row_violation(X), mip.bound_violation(X), strict=True):
        assert np.array_equal(mip.row_violation(x), rows)
        assert np.array_equal(mip.bound_violation(x), bounds)
    assert dt.Mip(cost=[1.0]).row_violation(np.zeros((3, 1))).shape == (3, 0)
