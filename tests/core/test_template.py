"""Templates: where columns are, values by family, and statements that are refused.

The program that templates stand for is the one that somebody would have written by hand.
"""

import numpy as np
import pytest
import torch

import dovetail as dt
from dovetail.core.probe import probe_points
from dovetail.core.template import few_blocks
from dovetail_study.problems import water
from dovetail_study.problems.training import Training
from tests.small import linear_net, random_mlp


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
        with pytest.raises(dt.ModelError, match="a number for every variable"):
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
    with pytest.raises(dt.PredictorError, match=r"variable y\[0\] is an output of"):
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
    with pytest.raises(dt.ModelError, match="the problem has no variables"):
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
    with pytest.raises(dt.PredictorError, match="inputs are variables of a template of another problem"):
        dt.Problem(dt.Mip([1.0])).add_predictor(linear_net([1.0, 2.0]), template["stock"], template["sold"])


ARRAYS = ("cost", "row_lower", "row_upper", "lower", "upper", "integer")


def assert_same(one, other):
    for name in ARRAYS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert (one.A != other.A).nnz == 0
    assert one.A.shape == other.A.shape
    assert (one.sense, one.offset) == (other.sense, other.offset)


def campaign(n=6, seed=0):
    """Discounts for n customers, stated twice: as a template beside a host, and by hand."""
    rng = np.random.default_rng(seed)
    age, price, worth = rng.uniform(0, 1, n), rng.uniform(1, 3, n), rng.uniform(1, 2, n)
    net = random_mlp(2, seed=3)
    host = dt.Mip(
        cost=[-0.5], A=[[1.0]], row_lower=0.0, row_upper=4.0, sense="max", offset=2.0, names=["money"]
    )
    problem = dt.Problem(host)
    customers = problem.add_template(
        n,
        {
            "discount": dt.Family(upper=0.3),
            "age": dt.Family(fixed=age),
            "spend": dt.Family(),
            "gift": dt.Family(upper=1.7, integer=True),
            "buys": dt.Family(lower=-50.0, upper=50.0, cost=worth),
        },
        rows=[dt.FamilyRow({"spend": 1.0, "discount": -price, "gift": -0.1}, 0.0, 0.0, name="paid")],
        coupling=[
            dt.FamilyRow({"spend": 1.0, "money": -1.0}, upper=0.5, name="budget"),
            dt.FamilyRow({"gift": np.arange(float(n))}, lower=1.0, upper=3.0, name="gifts"),
        ],
    )
    problem.add_predictor(net, customers["discount", "age"], customers["buys"], name="uplift")
    eye, none = np.eye(n), np.zeros((n, n))
    A = np.zeros((n + 3, 1 + 5 * n))
    A[0, 0], A[n + 1, 0] = 1.0, -1.0
    A[1 : n + 1, 1:] = np.hstack([-np.diag(price), none, eye, -0.1 * eye, none])
    A[n + 1, 1 + 2 * n : 1 + 3 * n] = 1.0
    A[n + 2, 1 + 3 * n : 1 + 4 * n] = np.arange(n)
    by_hand = dt.Mip(
        cost=[-0.5, *np.zeros(4 * n), *worth], A=A,
        row_lower=[0.0, *np.zeros(n), -np.inf, 1.0], row_upper=[4.0, *np.zeros(n), 0.5, 3.0],
        lower=[0.0, *np.zeros(n), *age, *np.zeros(2 * n), *np.full(n, -50.0)],
        upper=[np.inf, *np.full(n, 0.3), *age, *np.full(n, np.inf), *np.full(n, 1.7), *np.full(n, 50.0)],
        integer=np.repeat([False, True, False], [1 + 3 * n, n, n]), sense="max", offset=2.0,
    )  # fmt: skip
    other = dt.Problem(by_hand)
    at = 1 + np.arange(n)[:, None]
    other.add_predictor(net, np.hstack([at, at + n]), at + 4 * n, name="uplift")
    return problem, customers, other


def test_a_campaign_is_what_it_is_by_hand():
    problem, _, other = campaign()
    assert_same(problem.mip, other.mip)
    assert np.array_equal(problem.blocks[0].inputs, other.blocks[0].inputs)
    assert np.array_equal(problem.blocks[0].outputs, other.blocks[0].outputs)


def test_names_are_made_when_they_are_asked_for():
    mip = campaign()[0].mip
    assert [mip.column_name(j) for j in (0, 1, 7, 30)] == ["money", "discount[0]", "age[0]", "buys[5]"]
    assert [mip.row_name(i) for i in (0, 1, 6, 7, 8)] == ["row[0]", "paid[0]", "paid[5]", "budget", "gifts"]
    assert mip.resolve("test", ["gift[2]", "money"]).tolist() == [21, 0]
    assert len(set(mip.names)) == mip.n_columns
    assert len(set(mip.row_names)) == mip.n_rows


def test_it_is_solved_as_it_is_by_hand_and_read_again():
    problem, customers, other = campaign(3)
    result = dt.solve(problem, log=False)
    assert result.status == "optimal"
    truth = dt.solve(other, log=False)
    assert result.objective == pytest.approx(truth.objective, rel=1e-6)
    assert dt.check(problem, result.x).within()
    assert dt.check(other, result.x).within()
    discount = result.value(customers["discount"])
    assert np.array_equal(discount, customers.values(result)["discount"])
    assert discount.shape == (3, 1)
    assert result.value("discount[2]") == discount[2, 0]
    again = dt.Result.from_json(result.to_json())
    assert np.array_equal(again.value(customers["buys"]), result.value(customers["buys"]))
    assert again.value("money") == result.value("money")
    third = dt.solve(problem, start=result, time_limit=1, log=False)
    assert third.objective == pytest.approx(result.objective, rel=1e-6)


@pytest.mark.parametrize(
    "method",
    [dt.DualDecomposition(iterations=3), dt.SequentialLinear(starts=1), dt.SingleStepGradient(iterations=3)],
    ids=lambda method: method.name,
)
def test_other_methods_take_it(method):
    problem, _, other = campaign(3)
    found = [dt.solve(each, method, time_limit=60, log=False) for each in (problem, other)]
    assert found[0].status == found[1].status
    if found[0].x is not None:
        assert dt.check(other, found[0].x).within()


def test_water_as_a_template_is_water():
    """Families of nine columns, rows for each of them, eighteen budgets."""
    samples = np.random.default_rng(0).normal(size=(7, 9))
    net = torch.nn.Linear(9, 1)
    by_hand = water.formulate(samples, net, Training(0.5, 0.5, 0.5, 1)).problem
    problem = dt.Problem(sense="max")
    bottles = problem.add_template(
        7,
        {
            "potable": dt.Family(upper=1.0, cost=1.0, integer=True),
            "x": dt.Family(lower=-np.inf, width=9),
            "up": dt.Family(width=9),
            "down": dt.Family(width=9),
        },
        rows=[dt.FamilyRow({"x": 1.0, "up": -1.0, "down": 1.0}, samples, samples, name="treatment")],
        coupling=[dt.FamilyRow({side: 1.0}, upper=2.0, name=f"budget_{side}") for side in ("up", "down")],
    )
    problem.add_predictor(
        net, bottles["x"], bottles["potable"], output_type="classification", threshold=0.0, name="potability"
    )
    assert_same(problem.mip, by_hand.mip)
    assert problem.mip.column_name(7 + 9 + 1) == "x[1,1]"
    assert problem.mip.row_name(7 * 9 + 9 + 2) == "budget_down[2]"
    assert np.array_equal(problem.blocks[0].inputs, by_hand.blocks[0].inputs)


def test_wide_families_added_up_and_beside_single_columns():
    problem = dt.Problem(dt.Mip([0.0], names=["cap"]))
    problem.add_template(
        2,
        {"choice": dt.Family(upper=1.0, width=3, integer=True), "on": dt.Family(upper=1.0)},
        rows=[
            dt.FamilyRow({"choice": np.array([[1.0, 2.0, 3.0]]), "on": -1.0}, upper=[5.0, 6.0], summed=True),
            dt.FamilyRow({"choice": 1.0, "on": np.array([[-1.0, -2.0, -4.0]])}, upper=0.0),
        ],
        coupling=[
            dt.FamilyRow({"choice": 1.0, "cap": -1.0}, upper=4.0, summed=True),
            dt.FamilyRow({"choice": 1.0, "cap": [0.0, 7.0, 8.0]}, upper=[1.0, 2.0, 3.0]),
        ],
    )
    by_hand = [
        [0, 1, 2, 3, 0, 0, 0, -1, 0],
        [0, 0, 0, 0, 1, 2, 3, 0, -1],
        [0, 1, 0, 0, 0, 0, 0, -1, 0],
        [0, 0, 1, 0, 0, 0, 0, -2, 0],
        [0, 0, 0, 1, 0, 0, 0, -4, 0],
        [0, 0, 0, 0, 1, 0, 0, 0, -1],
        [0, 0, 0, 0, 0, 1, 0, 0, -2],
        [0, 0, 0, 0, 0, 0, 1, 0, -4],
        [-1, 1, 1, 1, 1, 1, 1, 0, 0],
        [0, 1, 0, 0, 1, 0, 0, 0, 0],
        [7, 0, 1, 0, 0, 1, 0, 0, 0],
        [8, 0, 0, 1, 0, 0, 1, 0, 0],
    ]
    assert problem.mip.A.toarray().tolist() == by_hand
    assert problem.mip.row_upper.tolist() == [5, 6, *[0] * 6, 4, 1, 2, 3]


def test_a_predictor_is_probed_where_it_would_be():
    """The few blocks it is looked at with give the very points that the whole program would."""
    _, customers, other = campaign(40)
    mip, (inputs, outputs) = few_blocks(customers["discount", "age"], customers["buys"])
    assert inputs.shape == (16, 2)
    assert outputs.shape == (16, 1)
    assert np.array_equal(probe_points(mip, inputs), probe_points(other.mip, other.blocks[0].inputs))


def test_without_rows():
    problem = dt.Problem(sense="min")
    template = problem.add_template(2, {"a": dt.Family(upper=1.0, cost=-1.0), "b": dt.Family(upper=9.0)})
    problem.add_predictor(linear_net([3.0]), template["a"], template["b"])
    assert problem.mip.A.shape == (0, 4)
    assert dt.solve(problem, log=False).objective == -2.0
