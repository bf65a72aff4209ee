"""Stated templates are what a search finds in the program that they stand for, or they are left to it."""

import numpy as np
import pytest

import dovetail as dt
from dovetail.decomposition.plan import template_plan
from dovetail.structure.components import components
from dovetail.structure.templates import found_templates, stated_templates, templates
from tests.contexts import context_of
from tests.structure.stated_problems import campaign, floors, net, treatments


@pytest.mark.parametrize("build", [treatments, campaign])
def test_as_found_in_the_program(build):
    problem = build()
    stated = stated_templates(problem)
    assert stated is not None and stated.as_components
    assert "mip" not in vars(problem.stated)
    parts = components(problem)
    (mine,), (found,) = stated.arrays, templates(problem, parts)
    for name in ("component", "columns", "cost", "lower", "upper", "integer", "row_lower", "row_upper"):
        assert np.array_equal(getattr(mine, name), getattr(found, name)), name
    for one, other in ((mine.private, found.private), (mine.coupling, found.coupling)):
        order, again = (np.lexsort((p.column, p.row)) for p in (one, other))
        for name in ("row", "column"):
            assert np.array_equal(getattr(one, name)[order], getattr(other, name)[again])
        assert np.array_equal(one.entry[:, order], other.entry[:, again])
    (network,), (other,) = mine.networks, found.networks
    assert np.array_equal(network.inputs, other.inputs) and np.array_equal(network.outputs, other.outputs)
    assert np.array_equal(network.data, other.data)
    sides, plan = found_templates(problem, parts).sides, template_plan(context_of(problem))
    assert plan is not None and np.array_equal(plan.sides.row, sides.row)
    assert np.allclose(plan.sides.limit, sides.limit, rtol=1e-12)
    for j in range(mine.places.shape[1]):
        assert np.array_equal(
            np.arange(problem.mip.n_columns)[mine.places.column(j, 3, 7)], found.columns[3:7, j]
        )


def test_two_templates_count_as_components_do():
    problem = dt.Problem(sense="min")
    made = [
        problem.add_template(n, {"x": dt.Family(upper=1.0), "y": dt.Family(cost=1.0)}, name=name,
                             coupling=[dt.FamilyRow({"x": 1.0}, lower=3.0)])
        for n, name in ((30, "few"), (50, "many"))
    ]  # fmt: skip
    for template in reversed(made):
        problem.add_predictor(net(1), template["x"], template["y"])
    stated, parts = stated_templates(problem), components(problem)
    assert stated is not None and [one.count for one in stated.arrays] == [50, 30]
    for one in stated.arrays:
        assert np.array_equal(parts.owner[one.columns], np.repeat(one.component[:, None], 2, axis=1))


def test_a_block_with_two_networks_and_a_floor_is_one():
    problem = floors()
    stated = stated_templates(problem)
    assert stated is not None and not stated.as_components
    (template,) = stated.arrays
    assert template.row_lower.shape == (60, 1) and len(set(stated.sides.row)) == 2
    plan = template_plan(context_of(problem))
    assert plan is not None and plan.count == 60 and not plan.as_components
    result = dt.solve(problem, gap=0.5, target=-5.0, log=False)
    assert result.x is not None and dt.check(problem, result.x).within()


def _loose(kind: str) -> dt.Problem:
    host = dt.Mip([1.0], upper=2.0, names=["price"]) if kind == "a free host" else None
    problem = dt.Problem(host) if host else dt.Problem(sense="min")
    families = {"x": dt.Family(upper=1.0), "y": dt.Family(lower=-9.0), "z": dt.Family(upper=1.0)}
    sides = np.where(np.arange(60) < 30, 1.0, 2.0) if kind == "half an equation" else 2.0
    rows = [] if kind == "a column of no row" else [dt.FamilyRow({"x": 1.0, "z": 1.0}, 1.0, sides)]
    if kind == "a row of no network":
        families["w"] = dt.Family(upper=1.0)
        rows.append(dt.FamilyRow({"w": 1.0}, upper=0.5))
    made = problem.add_template(60, families, rows=rows, coupling=[dt.FamilyRow({"x": 1.0}, upper=9.0)])
    if kind == "other columns":
        problem.add_predictor(net(1), made["x"].columns, made["y"].columns)
    elif kind != "no network":
        problem.add_predictor(net(1), made["x"], made["y"])
    if kind == "a column of another template":
        more = {"v": dt.Family(upper=1.0), "u": dt.Family(lower=-9.0)}
        more_rows = [dt.FamilyRow({"v": 1.0, 0: 1.0}, upper=9.0)]
        other = problem.add_template(60, more, coupling=more_rows, name="more")
        problem.add_predictor(net(1), other["v"], other["u"])
    return problem


@pytest.mark.parametrize(
    "kind",
    ["a free host", "half an equation", "a column of no row", "a row of no network", "other columns",
     "no network", "a column of another template"],
)  # fmt: skip
def test_what_is_left_to_the_search(kind):
    assert stated_templates(_loose(kind)) is None


def test_whole_ones_are_taken():
    assert stated_templates(_loose("")) is not None
