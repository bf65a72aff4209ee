"""Features in the order of the training data."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import dovetail as dt
from dovetail.core.names import is_another_order, require_feature_order

TRAINED = ("heat", "flow")


@pytest.mark.parametrize(
    "given",
    [
        ("flow", "heat"),
        ("flow[3]", "heat[3]"),
        ("setting[flow,a]", "setting[heat,a]"),
        ("flow_oven", "heat_oven"),
    ],
)
def test_another_order_is_refused(given):
    assert is_another_order(given, TRAINED)
    assert not is_another_order(given[::-1], TRAINED)
    with pytest.raises(dt.PredictorError, match="b: inputs has the columns .* was trained on heat, flow"):
        require_feature_order("b", "inputs", given, TRAINED)


@pytest.mark.parametrize(
    "given",
    [
        ("a", "b"),
        ("flow", "other"),
        ("heat[1]", "heat[0]"),
        ("flow", "heat", "more"),
        ("pair[flow,heat]", "heat"),
    ],
)
def test_names_that_do_not_say_an_order(given):
    assert not is_another_order(given, TRAINED)


def test_numbers_are_indices_not_features():
    assert not is_another_order(("x[1]", "x[0]"), ("0", "1"))


def plant():
    """yield = heat + 2 flow, trained on a frame, and a problem whose columns have the same names."""
    frame = pd.DataFrame(np.random.default_rng(0).uniform(size=(9, 2)), columns=list(TRAINED))
    model = LinearRegression().fit(frame, frame["heat"] + 2.0 * frame["flow"])
    return dt.Problem(dt.Mip([0.0, 0.0, 1.0], upper=[1.0, 1.0, 9.0], names=[*TRAINED, "out"])), model, frame


def test_columns_and_data_of_a_problem():
    problem, model, frame = plant()
    with pytest.raises(dt.PredictorError, match="inputs has the columns flow, heat"):
        problem.add_predictor(model, ["flow", "heat"], ["out"])
    with pytest.raises(dt.PredictorError, match="data has the columns flow, heat"):
        problem.add_predictor(model, ["heat", "flow"], ["out"], data=frame[["flow", "heat"]])
    assert problem.blocks == ()
    problem.add_predictor(model, ["heat", "flow"], ["out"], data=frame)
    assert problem.blocks[0].training_range.names == TRAINED


def test_variables_of_a_tool():
    pyo = pytest.importorskip("pyomo.environ")
    _, model, _ = plant()
    host = pyo.ConcreteModel()
    host.setting, host.out = pyo.Var(["flow", "heat"], bounds=(0, 1)), pyo.Var(bounds=(0, 9))
    host.cost = pyo.Objective(expr=host.out)
    with pytest.raises(dt.PredictorError, match=r"setting\[flow\], setting\[heat\]"):
        dt.add_predictor_constr(host, model, host.setting, [host.out])
    dt.add_predictor_constr(host, model, [host.setting["heat"], host.setting["flow"]], [host.out])
