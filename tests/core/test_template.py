"""Templates: where columns are, values by family, and statements that are refused."""

import numpy as np
import pytest

import dovetail as dt
from tests.small import linear_net


def shops(problem=None, **said):
    given = {"stock": dt.Family(upper=5.0, width=2), "sold": dt.Family(lower=-9.0)}
    return (problem or dt.Problem(sense="min")).add_template(3, said.pop("families", given), **said)


def test_columns_are_family_by_family_behind_what_was_there():
    template = shops(dt.Problem(dt.Mip([1.0, 2.0])))
    assert template["stock"].columns.tolist() == [[2, 3], [4, 5], [6, 7]]
    assert template["sold", "stock"].columns.tolist() == [[8, 2, 3], [9, 4, 5], [10, 6, 7]]
    assert template["sold", "stock"].shape == (3, 3)
    assert np.asarray(template["sold"]).tolist() == [[8], [9], [10]]
    assert np.arange(11.0)[template["sold"]].tolist() == [[8.0], [9.0], [10.0]]


def test_it_says_what_it_is():
    template = shops(name="shops")
    assert repr(template) == "<Template 'shops': 3 blocks of stock (2), sold (1)>"
    assert repr(template["stock"]) == "<FamilyColumns: stock (3, 2)>"


def test_values_by_family_are_views():
    template, x = shops(dt.Problem(dt.Mip([1.0]))), np.arange(10.0)
    values = template.values(x)
    assert values["stock"].tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert values["sold"].tolist() == [[7.0], [8.0], [9.0]]
    assert np.shares_memory(values["stock"], x)
    for wrong in (np.arange(9.0), np.ones((2, 10)), None):
        with pytest.raises(dt.ModelError, match="a number for every column"):
            template.values(wrong)


def test_some_blocks_alone():
    template = shops(families={"a": dt.Family(upper=np.arange(3.0), cost=2.0), "b": dt.Family(width=2)})
    some = template.only(np.array([2, 0, 2, 0]))
    assert some.families["a"].upper.ravel().tolist() == [2.0, 0.0, 2.0, 0.0]
    assert some["b"].columns.tolist() == [[4, 5], [6, 7], [8, 9], [10, 11]]


def test_a_network_over_families_writes_nothing_out(monkeypatch):
    problem = dt.Problem(sense="min")
    template = shops(problem)
    monkeypatch.setattr("dovetail.core.stated_program.expanded", None)
    first = problem.add_predictor(linear_net([1.0, 2.0]), template["stock"], template["sold"], name="sales")
    assert first.inputs.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert problem.families_of(first)[0].families == ("stock",)
    assert problem.renewed() is problem
    with pytest.raises(dt.PredictorError, match="sales"):
        problem.add_predictor(linear_net([1.0]), template["sold"], template["stock"], name="sales")


def test_two_networks_in_each_block():
    problem = dt.Problem(sense="min")
    template = problem.add_template(2, {name: dt.Family(lower=-9.0, upper=9.0) for name in "xyz"})
    problem.add_predictor(linear_net([2.0]), template["x"], template["y"])
    problem.add_predictor(linear_net([1.0, 1.0]), template["x", "y"], template["z"])
    x = problem.predict(np.array([1.0, 3.0, 0.0, 0.0, 0.0, 0.0]))
    assert template.values(x)["z"].ravel().tolist() == [3.0, 9.0]
    with pytest.raises(dt.PredictorError, match=r"column y\[0\] is an output of"):
        problem.add_predictor(linear_net([1.0]), template["x"], template["y"])
    with pytest.raises(dt.PredictorError, match="cycle"):
        problem.add_predictor(linear_net([1.0]), template["z"], template["x"])


def test_a_network_trained_again_is_described_again():
    problem, net = dt.Problem(sense="min"), linear_net([1.0, 2.0]).double()
    template = shops(problem)
    problem.add_predictor(net, template["stock"], template["sold"])
    net.float()
    again = problem.renewed()
    assert again is not problem
    assert again.templates == problem.templates
    assert again.blocks[0].inputs is problem.blocks[0].inputs
    assert not again.blocks[0].description.is_float64
    assert again.families_of(again.blocks[0]) is not None


def test_removed_predictors_leave_their_families():
    problem = dt.Problem(sense="min")
    template = shops(problem)
    block = problem.add_predictor(linear_net([1.0, 2.0]), template["stock"], template["sold"])
    problem.remove_predictor(block.name)
    assert problem.families_of(block) is None
    problem.add_predictor(linear_net([1.0, 2.0]), template["stock"], template["sold"])


def test_the_drop_in_verb_takes_families_too():
    problem = dt.Problem(sense="min")
    template = shops(problem)
    constr = dt.add_predictor_constr(problem, linear_net([1.0, 2.0]), template["stock"], template["sold"])
    result = dt.solve(problem, log=False)
    assert np.array_equal(constr.output_values, result.value(template["sold"]))


def test_some_columns_of_a_family_may_have_a_network_of_their_own():
    """By index, as any other columns; they are no whole families then."""
    problem = dt.Problem(sense="min")
    template = shops(problem)
    block = problem.add_predictor(
        linear_net([1.0, 2.0]), template["stock"].columns[:1], template["sold"].columns[:1]
    )
    assert problem.families_of(block) is None
    assert block.samples == 1


@pytest.mark.parametrize(
    ("said", "culprit"),
    [
        ({"families": {}}, "families is {}"),
        ({"families": [dt.Family()]}, "families is"),
        ({"families": {"a[0]": dt.Family()}}, r"a family is called 'a\[0\]'"),
        ({"families": {"": dt.Family()}}, "a family is called ''"),
        ({"families": {3: dt.Family()}}, "a family is called 3"),
        ({"families": {"a": dt.Family(upper=np.ones(2))}}, "upper of family a has shape"),
        ({"name": "shops", "families": {"a": dt.Family(cost=np.nan)}}, "cost of family shops.a is nan"),
        ({"name": 3}, "name is 3"),
        ({"rows": 3}, "rows is 3"),
        ({"rows": [3]}, r"rows\[0\] is 3"),
        ({"rows": [dt.FamilyRow(3)]}, r"rows\[0\] is"),
        ({"rows": [dt.FamilyRow({"shelf": 1.0})]}, "row row0 names no family of the template .stock, sold."),
        (
            {"coupling": [dt.FamilyRow({"sold": 1.0, "shelf": 1.0})]},
            "row coupling0 names 'shelf', which is no",
        ),
        ({"coupling": [dt.FamilyRow({"sold": 1.0, 0: 1.0})]}, "row coupling0 names 0, which is no"),
        ({"coupling": [dt.FamilyRow({"sold": 1.0}, name="a[b]")]}, r"coupling\[0\] is called 'a\[b\]'"),
        ({"rows": [dt.FamilyRow({"sold": 1.0}, name="a")] * 2}, "two rows are called 'a'"),
    ],
)
def test_statements_that_are_refused(said, culprit):
    problem = dt.Problem(sense="min")
    with pytest.raises(dt.ModelError, match=culprit):
        shops(problem, **said)
    assert problem.templates == ()
    with pytest.raises(dt.ModelError, match="the problem has no columns"):
        problem.mip  # noqa: B018


def test_counts_and_senses_that_cannot_be():
    with pytest.raises(dt.OptionError, match="count .* is 0"):
        dt.Problem(sense="min").add_template(0, {"a": dt.Family()})
    with pytest.raises(dt.OptionError, match="sense is 'most'"):
        dt.Problem(sense="most")
    with pytest.raises(dt.ModelError, match="a Mip has its own"):
        dt.Problem(dt.Mip([1.0]), sense="max")


def test_families_that_are_not_there_or_of_others():
    template = shops()
    with pytest.raises(dt.ModelError, match="there is no family 'shelf'; there are stock, sold"):
        template["shelf"]
    with pytest.raises(dt.ModelError, match="name a family"):
        template[()]
    with pytest.raises(dt.PredictorError, match="inputs are columns of a template of another problem"):
        dt.Problem(dt.Mip([1.0])).add_predictor(linear_net([1.0, 2.0]), template["stock"], template["sold"])
