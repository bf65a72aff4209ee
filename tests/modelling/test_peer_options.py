"""Keywords of the peers."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier

import dovetail as dt
from tests.modelling.tiny import in_gurobi, times


def test_probabilities_are_asked_of_what_has_them():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = in_gurobi()
    x, y = model.addMVar(3, ub=1), model.addMVar(1, lb=-99)
    three = LogisticRegression().fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    for estimator, outputs in (
        (RidgeClassifier().fit(X, X[:, 0] > 0), y),
        (three, None),
        (times(1, 1, 1), y),
    ):
        with pytest.raises(dt.PredictorError, match="no probability of one class"):
            dt.add_predictor_constr(model, estimator, x, outputs, output_type="probability_1")
    model.update()
    assert model.NumVars == 4
    dt.add_predictor_constr(
        model, LogisticRegression().fit(X, X[:, 0] > 0), x, y, output_type="probability_1"
    )


@pytest.mark.parametrize(
    ("integer", "options", "told"),
    [(False, {}, True), (True, {}, False), (False, {"output_type": "classification"}, False),
     (False, {"output_type": "probability_1"}, False)],
)  # fmt: skip
def test_classes_in_continuous_columns_are_asked_about(integer, options, told):
    """0.9 <= p means nothing of a class: whoever did not say what the outputs are is told."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    estimator = LogisticRegression().fit(X, X[:, 0] > 0)
    mip = dt.Mip([0.0, 0.0, 1.0], lower=[-1, -1, 0], upper=1.0, integer=[False, False, integer])
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        dt.add_predictor_constr(dt.Problem(mip), estimator, [0, 1], [2], **options)
    said = [str(each.message) for each in heard]
    assert any("LogisticRegression gives classes, 0 or 1" in text for text in said) == told
    assert all("probability_1" in text for text in said)
