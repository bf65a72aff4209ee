"""What other models say of a decision, against the same computed by hand."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import dovetail as dt
from tests.tools import TOOLS

RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 3.0, (40, 2))
Y = X[:, 0] * (3.0 - X[:, 0]) - X[:, 1] + 0.3 * RNG.normal(size=40)


def solved(predictor, risk=None, **host):
    mip = dt.Mip([0.1, 0.0, 2.0], lower=[0.0, 0.0, -99.0], upper=[3.0, 3.0, 99.0], sense="max", **host)
    problem = dt.Problem(mip)
    problem.add_predictor(predictor, [0, 1], [2], risk=risk, name="yield")
    return dt.solve(problem, dt.Auto(effort=1), time_limit=20, log=False)


def value(model, x):
    return 0.1 * x[0] + 2.0 * float(np.ravel(model.predict(np.array([x[:2]])))[0])


@pytest.mark.parametrize(
    "model",
    [
        Ridge(),
        make_pipeline(StandardScaler(), Ridge()),
        RandomForestRegressor(4, max_depth=2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_refitted_models(model):
    result = solved(model.fit(X, Y))
    opinion = result.second_opinion(data=(X, Y), refits=5, seed=3, against=np.array([1.5, 1.0, 0.0]))
    assert opinion.promised == pytest.approx(result.objective)
    assert opinion.promised_gain == pytest.approx(result.objective - value(model, [1.5, 1.0]))
    assert opinion.objectives.shape == (5,) and np.ptp(opinion.objectives) > 0.0
    if not isinstance(model, RandomForestRegressor):
        rows = [np.random.default_rng([3, k]).integers(40, size=40) for k in range(5)]
        again = [clone(model).fit(X[at], Y[at]) for at in rows]
        assert opinion.objectives == pytest.approx([value(one, result.x) for one in again])
        gains = [value(one, result.x) - value(one, [1.5, 1.0]) for one in again]
        assert opinion.gains == pytest.approx(gains)
        assert opinion.kept == pytest.approx(np.mean(gains) / opinion.promised_gain)
    repeated = result.second_opinion(data=(X, Y), refits=5, seed=3)
    assert np.array_equal(repeated.objectives, opinion.objectives)
    assert repeated.gains is None and repeated.kept is None


def test_models_of_the_user_and_a_frame_and_the_page(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b"])
    result = solved(Ridge().fit(frame, Y))
    opinion = result.second_opinion([lambda X: X[:, 0], lambda X: X[:, 1]], against=result)
    assert opinion.objectives == pytest.approx([0.1 * result.x[0] + 2.0 * one for one in result.x[:2]])
    assert opinion.promised_gain == 0.0 and opinion.kept is None
    assert result.second_opinion(data=(frame, Y), refits=2).models == "2 refitted models"
    assert opinion.to_frame().shape == (2, 3)
    page = result.report(tmp_path / "page.html", second_opinion=opinion).read_text()
    assert "A second opinion" in page and "promised" in page
    assert "second opinion" not in result.report(tmp_path / "page.html").read_text()
    assert "gain over the reference" in str(opinion) and "<td>" in opinion._repr_html_()


def test_variables_that_follow_and_constraints_that_break():
    """profit = 5 yield - 1 follows; yield <= 3 is violated by one of two models."""
    mip = dt.Mip(
        [0.0, 0.0, 1.0], [[0.0, -5.0, 1.0], [0.0, 1.0, 0.0]], [-1.0, -np.inf], [-1.0, 3.0],
        [0.0, -9.0, -99.0], [2.0, 9.0, 99.0], sense="max", row_names=["profit", "limit"],
    )  # fmt: skip
    problem = dt.Problem(mip)
    problem.add_predictor(lambda X: X, [0], [1])
    result = dt.solve(problem, log=False)
    opinion = result.second_opinion([lambda X: 0.5 * X, lambda X: 2.0 * X])
    assert opinion.objectives == pytest.approx([4.0, 19.0])
    assert {name: by.tolist() for name, by in opinion.broken.items()} == {"limit": pytest.approx([0.0, 1.0])}
    assert "limit is violated by 1 of 2 models, at worst by 1" in str(opinion)


@pytest.mark.parametrize("tool", TOOLS, ids=str)
def test_every_tool(tool):
    model = tool.new()
    x, y = tool.variables(model, (1, 2), 0, 3), tool.variables(model, (1, 1), -99, 99)
    dt.add_predictor_constr(model, Ridge().fit(X, Y), x, y, risk=None)
    tool.objective(model, [(1.0, tool.at(y, (0, 0)))], "max")
    result = dt.solve(model, time_limit=20, log=False)
    opinion = result.second_opinion(data=(X, Y), refits=3)
    assert opinion.promised == pytest.approx(result.objective, abs=1e-6)
    assert np.all(np.isfinite(opinion.objectives))


def test_networks_are_refitted_by_a_function_and_risks_keep_their_measure():
    torch.manual_seed(0)
    net = nn.Linear(2, 1).double()
    result = solved(net)
    with pytest.raises(dt.PredictorError, match="refit=train"):
        result.second_opinion(data=(X, Y))
    opinion = result.second_opinion(data=(X, Y), refits=3, refit=lambda X, y: Ridge().fit(X, y))
    assert opinion.refitted and opinion.objectives.size == 3
    forest = RandomForestRegressor(4, max_depth=2, random_state=0).fit(X, Y)
    for given in (forest, [Ridge().fit(X, Y), Ridge(9.0).fit(X, Y)], dt.Ensemble([Ridge().fit(X, Y)] * 2)):
        cautious = solved(given, dt.MeanSpread(1.0, bad="low"))
        assert np.ptp(cautious.second_opinion(data=(X, Y), refits=3).objectives) > 0.0


def test_what_cannot_be_asked():
    result = solved(Ridge().fit(X, Y))
    with pytest.raises(dt.OptionError, match="either predictors"):
        result.second_opinion()
    with pytest.raises(dt.OptionError, match="no predictor is called 'cost'; there are yield"):
        result.second_opinion({"cost": [Ridge()]})
    with pytest.raises(dt.OptionError, match="a pair"):
        result.second_opinion(data=X)
    with pytest.raises(dt.OptionError, match="against has the shape"):
        result.second_opinion([lambda X: X[:, 0]], against=[1.0])
    with pytest.raises(dt.PredictorError, match="gives 2 outputs for yield, not 1"):
        result.second_opinion([lambda X: X])
    with pytest.raises(dt.DovetailError, match="read from a file"):
        dt.Result.from_json(result.to_json()).second_opinion([lambda X: X[:, 0]])
