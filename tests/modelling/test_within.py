"""`within=` in models of every tool: with frames, fixed numbers and categories."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import dovetail as dt
from tests.tools import TOOLS, Highs

SEEN = pd.DataFrame({"heat": [0.0, 4.0, 0.0, 1.0, 3.0], "flow": [0.0, 0.0, 4.0, 1.0, 1.0]})
LINE = LinearRegression().fit(SEEN, 2.0 * SEEN["heat"] + SEEN["flow"])
PLAIN = LinearRegression().fit(SEEN.to_numpy(), 2.0 * SEEN["heat"] + SEEN["flow"])
BEST = {"box": 12.0, "hull": 8.0}


@pytest.fixture(params=TOOLS, ids=str)
def kit(request):
    return request.param


def model_of(kit, samples=1):
    model = kit.new()
    x = kit.variables(model, (samples, 2), -9.0, 9.0)
    y = kit.variables(model, (samples, 1), -99.0, 99.0)
    return model, x, y


def solve(model):
    return dt.solve(model, dt.Auto(effort=2), log=False)


@pytest.mark.parametrize("domain", BEST)
def test_the_decision_stays_inside_in_every_tool(kit, domain):
    model, x, y = model_of(kit, samples=2)
    constr = dt.add_predictor_constr(model, LINE, x, y, data=SEEN, within=domain, name="yield")
    kit.objective(model, [(1.0, kit.at(y, (i, 0))) for i in range(2)], "max")
    result = solve(model)
    assert result.objective == pytest.approx(2.0 * BEST[domain], abs=1e-4)
    assert dt.check(model, result.x).within() and not result.extrapolations
    assert any(name.startswith(f"yield within {domain}") for name in result.constraint_table.names)
    constr.remove()
    dt.add_predictor_constr(model, LINE, x, y)
    assert solve(model).objective == pytest.approx(2.0 * 27.0, abs=1e-4)


@pytest.mark.parametrize(
    "within", [dt.Near(distance=0.3), dt.Score(IsolationForest(n_estimators=5, random_state=0))]
)
def test_scores_are_predictors_in_every_tool(kit, within):
    if isinstance(within, dt.Score):
        within._predictor.fit(SEEN)
    model, x, y = model_of(kit)
    dt.add_predictor_constr(model, LINE, x, y, data=SEEN, within=within)
    kit.objective(model, [(1.0, kit.at(y, (0, 0)))], "max")
    result = solve(model)
    assert result.status in ("optimal", "feasible")
    assert dt.check(model, result.x).within()
    found = np.asarray(
        result.value(x) if not isinstance(result.value(x), dict) else [*result.value(x).values()]
    )
    point = found.reshape(1, 2)
    if isinstance(within, dt.Near):
        apart = np.linalg.norm((point - SEEN.to_numpy()) / SEEN.to_numpy().std(axis=0), axis=1)
        assert apart.min() <= 0.3 + 1e-6
    else:
        forest = within._predictor
        frame = pd.DataFrame(point, columns=SEEN.columns)
        assert forest.score_samples(frame)[0] >= np.quantile(forest.score_samples(SEEN), 0.05) - 1e-9


def test_two_predictors_and_fixed_numbers(kit):
    model, x, y = model_of(kit, samples=2)
    first = [[kit.at(x, (0, 0)), 3.0]]
    second = [[0.5, kit.at(x, (1, 1))]]
    for k, (inputs, name) in enumerate(((first, "one"), (second, "two"))):
        outputs = [[kit.at(y, (k, 0))]]
        dt.add_predictor_constr(model, PLAIN, inputs, outputs, data=SEEN, within="hull", name=name)
    kit.objective(model, [(1.0, kit.at(y, (i, 0))) for i in range(2)], "max")
    assert solve(model).objective == pytest.approx((2.0 * 1.0 + 3.0) + (2.0 * 0.5 + 3.5), abs=1e-4)


def test_a_fixed_number_outside_is_a_conflict():
    problem = dt.Problem(dt.Mip([0.0, 1.0], lower=-9.0, upper=9.0, names=["heat", "y"]))
    dt.add_predictor_constr(problem, PLAIN, [["heat", 7.0]], ["y"], data=SEEN, within="box", name="yield")
    result = solve(problem)
    assert result.status == "infeasible" and "yield within box" in str(result.conflict)


@pytest.mark.parametrize("within", ["box", "hull", dt.Near(distance=0.1)], ids=["box", "hull", "near"])
def test_categories_in_frames(within):
    """Their codes have a range and no distance; ages are limited by those of the data."""
    wood = ["oak", "ash", "oak", "fir", "ash", "fir"]
    seen = pd.DataFrame({"wood": wood, "age": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    encoder = make_column_transformer((OneHotEncoder(), ["wood"]), remainder="passthrough")
    line = make_pipeline(encoder, LinearRegression()).fit(seen, seen["age"])
    kit = Highs()
    model = kit.new()
    kind, age = kit.add(model, "kind", 0.0, 2.0, integer=True), kit.add(model, "age", -99.0, 99.0)
    y = kit.add(model, "y", -999.0, 999.0)
    dt.add_predictor_constr(
        model, line, pd.DataFrame({"wood": [kind], "age": [age]}), y, data=seen, within=within
    )
    kit.objective(model, [(1.0, y)], "max")
    room = 0.0 if isinstance(within, str) else 0.1 * seen["age"].std(ddof=0)
    assert solve(model).value(age) == pytest.approx(6.0 + room, abs=1e-4)
