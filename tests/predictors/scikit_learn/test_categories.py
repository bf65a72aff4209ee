"""Categories by name."""

import warnings

import highspy
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import dovetail as dt
from dovetail.core.errors import PredictorError
from dovetail.core.extrapolation import extrapolations
from dovetail.core.predictor import as_predictor
from dovetail.modelling.predictor_constr import Attachment, input_entries
from dovetail.modelling.snapshot import take_snapshot
from dovetail.models.own import OwnModel
from dovetail.predictors import categories_of
from dovetail.run.budget import Budget
from dovetail.structure.networks import block_graph

X = pd.DataFrame({"name": ["b", "a", "c"], "size": [1.0, 2.0, 0.5], "year": [3, 5, 3]})


def test_they_are_found_at_the_front():
    encoders = make_column_transformer(
        (StandardScaler(), [1]), (OneHotEncoder(), [0]), (OrdinalEncoder(), [2])
    )
    estimator = make_pipeline(encoders, LinearRegression()).fit(X, [1.0, 2.0, 3.0])
    assert categories_of(estimator) == {0: ("a", "b", "c")}  # those of the last feature are numbers
    assert categories_of(OneHotEncoder()) == categories_of(StandardScaler()) == {}
    assert categories_of(len) == {}


def test_they_are_found_in_the_best_of_a_search():
    frame, target = pd.concat([X] * 4, ignore_index=True), np.arange(12.0)
    estimator = make_pipeline(make_column_transformer((OneHotEncoder(), [0])), LinearRegression())
    search = GridSearchCV(estimator, {"linearregression__fit_intercept": [True, False]}, cv=2)
    assert categories_of(search) == {}
    assert categories_of(search.fit(frame, target)) == {0: ("a", "b", "c")}


def test_an_encoder_s_own_order_counts():
    encoder = OrdinalEncoder(categories=[["small", "large", "huge"]]).fit([["huge"], ["small"], ["large"]])
    assert categories_of(encoder) == {0: ("small", "large", "huge")}
    assert as_predictor(encoder).predict(np.array([[0.0], [1.0], [2.0]])).tolist() == [[0.0], [1.0], [2.0]]


def test_training_data_of_a_problem_may_have_text():
    estimator = make_pipeline(make_column_transformer((OneHotEncoder(), [0])), LinearRegression())
    problem = dt.Problem(dt.Mip([0.0, 0.0, 0.0, 1.0], upper=[2.0, 9.0, 9.0, 9.0], integer=[1, 0, 0, 0]))
    block = problem.add_predictor(estimator.fit(X, [1.0, 2.0, 3.0]), [0, 1, 2], [3], data=X)
    assert block.training_range.lower.tolist() == [-np.inf, 0.5, 3.0]
    found = extrapolations(problem, np.array([1.0, 0.0, 4.0, 2.0]))
    assert [where.feature for where in found] == ["size"]


def test_names_stand_for_their_places():
    given = np.array([["c", 1.0], ["a", 2.0], [0.0, 3.0]], dtype=object)
    attached = Attachment("b", None, given, None, "regression", None, 0.0, None, {0: ("a", "b", "c")})
    model = OwnModel(None)
    assert input_entries(model, attached).tolist() == [[2.0, 1.0], [0.0, 2.0], [0.0, 3.0]]
    given[1, 0] = "d"
    with pytest.raises(PredictorError, match="'d' as feature 0.*it knows a, b, c"):
        input_entries(model, attached)


@pytest.mark.parametrize("wrapped", [None, "product", "mean"])
@pytest.mark.parametrize("note", ["drop", "encoded"])
def test_text_in_a_frame_wherever_a_pipeline_takes_it(wrapped, note):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "note": rng.choice(["x", "y"], 90),
            "price": rng.uniform(1.0, 5.0, 90),
            "kind": rng.choice(["b", "a"], 90),
        }
    )
    columns = make_column_transformer(
        (OneHotEncoder(), ["kind"] if note == "drop" else ["kind", "note"]), (StandardScaler(), ["price"])
    )
    pipeline = make_pipeline(columns, LinearRegression())
    pipeline.fit(frame, 50.0 - 5.0 * frame.price + 9.0 * (frame.kind == "a") + (frame.note == "y"))
    predictor = {
        None: pipeline, "product": dt.Product(pipeline, input="price"), "mean": dt.Ensemble([pipeline] * 2)
    }[wrapped]  # fmt: skip
    model = highspy.Highs()
    model.silent()
    price, made = model.addVariable(2.0, 2.0), model.addVariable(-999.0, 999.0)
    given = pd.DataFrame({"note": ["y"], "price": [price], "kind": ["a"]})
    constr = dt.add_predictor_constr(model, predictor, given, [made], data=frame)
    result = dt.solve(model, time_limit=60, log=False)
    truth = pipeline.predict(pd.DataFrame({"note": ["y"], "price": [2.0], "kind": ["a"]}))[0]
    assert result.value(made) == pytest.approx(2.0 * truth if wrapped == "product" else truth)
    assert constr.input_values.values.tolist() == [["y", 2.0, "a"]] and not result.extrapolations


def priced():
    """A plan with a category by name: what it may cost, a discount, the sales, and the pipeline's frame."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"kind": rng.choice(["dairy", "bread"], 200), "discount": rng.uniform(0.0, 4.0, 200)}
    )
    encoders = make_column_transformer((OneHotEncoder(), ["kind"]), (StandardScaler(), ["discount"]))
    network = MLPRegressor(hidden_layer_sizes=(8,), max_iter=50, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = make_pipeline(encoders, network).fit(
            frame, np.sin(frame.discount) + (frame.kind == "dairy")
        )
    model = highspy.Highs()
    model.silent()
    discount, sales = model.addVariable(0.0, 4.0), model.addVariable(-99.0, 99.0)
    given = pd.DataFrame({"kind": ["dairy"], "discount": [discount]})
    return frame, pipeline, model, given, sales


def test_training_data_may_have_names():
    frame, pipeline, model, given, sales = priced()
    dt.add_predictor_constr(model, pipeline, given, [sales], data=frame)
    limits = take_snapshot(model, Budget()).problem.blocks[0].training_range
    assert limits.names == ("kind", "discount")
    assert (limits.lower[0], limits.upper[0]) == (0.0, 1.0) and limits.upper[1] == frame.discount.max()
    frame.loc[3, "kind"] = "soap"
    with pytest.raises(PredictorError, match="'soap'.*or leave data= out"):
        dt.add_predictor_constr(model, pipeline, given, [model.addVariable()], name="other", data=frame)


def test_a_fixed_category_has_a_graph_within_the_tolerance_of_the_check():
    """The predictor rounds a category, the graph does not."""
    _, pipeline, model, given, sales = priced()
    dt.add_predictor_constr(model, pipeline, given, [sales])
    problem = take_snapshot(model, Budget()).problem
    loose = problem.derived(problem.mip.loosened(), problem.blocks)
    assert all(block_graph(p, p.blocks[0]) for p in (problem, loose))
