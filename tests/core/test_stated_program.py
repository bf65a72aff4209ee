"""Programs as they are stated: nothing is made before it is asked for, labels are not taken twice."""

import numpy as np
import pytest

import dovetail as dt

SMALL = {"load": dt.Family(upper=2.0)}


def test_the_program_is_made_once():
    problem = dt.Problem(sense="min")
    problem.add_template(2, SMALL)
    assert problem.mip is problem.mip
    assert "mip" not in problem.add_template(2, SMALL, name="more").__dict__
    assert problem.mip.n_columns == 4


def test_columns_may_follow_a_template():
    problem = dt.Problem(dt.Mip([1.0], names=["price"]))
    problem.add_template(2, SMALL)
    more = problem.add_columns(np.zeros(1), np.ones(1), np.array([False]), ["late"])
    assert more.tolist() == [3]
    later = problem.add_template(1, SMALL, name="others")
    assert later["load"].columns.tolist() == [[4]]
    assert list(problem.mip.names) == ["price", "load[0]", "load[1]", "late", "others.load[0]"]
    assert problem.mip.upper.tolist() == [np.inf, 2.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("host", "families", "rows", "culprit"),
    [
        (dt.Mip([1.0], names=["load"]), SMALL, (), "family 'load'"),
        (dt.Mip([1.0], names=["load[0]"]), SMALL, (), "family 'load'"),
        (dt.Mip([1.0]), {"x": dt.Family()}, (), "family 'x'"),
        (dt.Mip([1.0], A=[[1.0]], row_lower=0.0, row_upper=1.0), SMALL, ("row",), "row 'row'"),
        (
            dt.Mip([1.0], A=[[1.0]], row_lower=0.0, row_upper=1.0, row_names=["top"]),
            SMALL,
            ("top",),
            "row 'top'",
        ),
    ],
)
def test_labels_that_are_taken(host, families, rows, culprit):
    problem = dt.Problem(host)
    with pytest.raises(dt.ModelError, match=f"{culprit}: there is already"):
        problem.add_template(
            2, families, rows=[dt.FamilyRow(dict.fromkeys(families, 1.0), name=name) for name in rows]
        )
    assert problem.mip is host


def test_two_templates_of_the_same_families_need_names():
    problem = dt.Problem(sense="min")
    problem.add_template(2, SMALL)
    with pytest.raises(dt.ModelError, match="family 'load': there is already"):
        problem.add_template(2, SMALL)
    problem.add_template(2, SMALL, name="b")
    with pytest.raises(dt.ModelError, match=r"family 'b\.load': there is already"):
        problem.add_template(2, SMALL, name="b")
