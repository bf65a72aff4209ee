"""Categories by name."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from dovetail.core.errors import PredictorError
from dovetail.core.predictor import as_predictor
from dovetail.modelling.predictor_constr import Attachment, input_entries
from dovetail.models.own import OwnModel
from dovetail.predictors import categories_of

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


def test_names_stand_for_their_places():
    given = np.array([["c", 1.0], ["a", 2.0], [0.0, 3.0]], dtype=object)
    attached = Attachment("b", None, given, None, "regression", None, 0.0, None, {0: ("a", "b", "c")})
    model = OwnModel(None)
    assert input_entries(model, attached).tolist() == [[2.0, 1.0], [0.0, 2.0], [0.0, 3.0]]
    given[1, 0] = "d"
    with pytest.raises(PredictorError, match="'d' as feature 0.*it knows a, b, c"):
        input_entries(model, attached)
