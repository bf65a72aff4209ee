"""Leaves in which both classes are as likely: what the owner's own `predict` says of them is the class."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import dovetail as dt

X, LABELS = np.array([[0.0], [0.0], [1.0], [1.0]]), [0, 1, 1, 1]
"""At 0 one of each."""


def boosted(library, name):
    """No split is worth it: every probability is a half."""
    kind = getattr(pytest.importorskip(library), name)
    few = {"min_child_samples": 1, "verbose": -1} if library == "lightgbm" else {"base_score": 0.5}
    return kind(n_estimators=1, **few).fit(X[:2], LABELS[:2])


MODELS = {
    "DecisionTree": lambda: DecisionTreeClassifier().fit(X, LABELS),
    "RandomForest": lambda: RandomForestClassifier(2, bootstrap=False, random_state=0).fit(X, LABELS),
    "ExtraTrees": lambda: ExtraTreesClassifier(2, random_state=0).fit(X, LABELS),
    "XGBoost": lambda: boosted("xgboost", "XGBClassifier"),
    "LightGBM": lambda: boosted("lightgbm", "LGBMClassifier"),
}


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_tie_is_the_class_that_predict_says(make, outputs):
    model = make()
    own = int(model.predict([[0.0]])[0])
    for sense in ("min", "max"):
        mip = dt.Mip(cost=[0.0] * outputs + [1.0], upper=[0.0] + [1.0] * outputs, integer=True, sense=sense)
        problem = dt.Problem(mip)
        problem.add_predictor(model, [0], [*range(1, outputs + 1)], output_type="classification")
        result = dt.solve(problem, log=False)
        assert result.objective == own  # what is proved leaves room for rounding, to either side of a tie
