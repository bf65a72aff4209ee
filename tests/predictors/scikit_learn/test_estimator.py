"""What an estimator is known to be: scikit-learn's own classes with nothing of theirs replaced."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.networks.arithmetic import FLOAT32, FLOAT64
from dovetail.networks.layers import evaluate

X = np.random.default_rng(0).normal(size=(40, 3))


def known(foreign):
    """What a bound may rest on, where it is known by its layers."""
    program = as_predictor(foreign).describe(X).program_if_known(3)
    return program if program is not None and program.provenance == "layers" else None


def trained(cls=MLPRegressor, **options):
    y = X[:, 0] > 0 if issubclass(cls, MLPClassifier) else X @ [1.0, 2.0, -1.0]
    return cls(hidden_layer_sizes=(4,), max_iter=5, random_state=0, **options).fit(X, y)


@pytest.mark.filterwarnings("ignore:.*converge")
class TestKnown:
    def test_its_own_estimators_are_known(self):
        model = make_pipeline(StandardScaler(), trained())
        program = known(make_pipeline(*[step for _, step in model.fit(X, X[:, 0]).steps]))
        assert program.arithmetic is FLOAT64
        assert program.values(X)[:, 0] == pytest.approx(model.predict(X), abs=1e-12)
        assert len(program.operations) > len(as_predictor(model).layers())  # one operation after the other

    def test_a_subclass_is_not(self):
        class Clamped(MLPRegressor):
            def predict(self, X):
                return np.maximum(super().predict(X), -100.0)

        assert known(trained(Clamped)) is None
        inside = make_pipeline(StandardScaler().fit(X), trained(Clamped))
        with pytest.raises(dt.UnsupportedError, match="class of its own"):
            as_predictor(inside).layers()

    @pytest.mark.parametrize("where", ["instance", "class"])
    def test_one_with_a_method_replaced_is_not(self, where, monkeypatch):
        model = trained()
        predictor, plain = as_predictor(model), MLPRegressor.predict
        if where == "instance":
            model.predict = lambda X: np.maximum(plain(model, X), -100.0)
        else:
            monkeypatch.setattr(MLPRegressor, "predict", lambda self, X: np.maximum(plain(self, X), -100.0))
        with pytest.raises(dt.UnsupportedError, match="predict of MLPRegressor was replaced"):
            predictor.layers()
        assert known(predictor) is None

    def test_float32_weights_are_seen(self):
        model = MLPRegressor(hidden_layer_sizes=(4,), max_iter=5, random_state=0)
        model.fit(X.astype(np.float32), X[:, 0].astype(np.float32))
        assert known(model).arithmetic is FLOAT32
        assert known(LinearRegression().fit(X, X[:, 0])).arithmetic is FLOAT64


def test_features_are_counted_where_the_first_step_passes_them_on():
    """Then neither the pipeline nor what it is inside of says how many there are."""
    y = X @ [1.0, 2.0, -1.0]

    def passing(alpha):
        return make_pipeline("passthrough", Ridge(alpha))

    pairs = [("a", passing(1.0)), ("b", passing(2.0))]
    models = [
        TransformedTargetRegressor(passing(1.0), transformer=StandardScaler()).fit(X, y),
        VotingRegressor(pairs).fit(X, y),
        StackingRegressor(pairs, final_estimator=Ridge()).fit(X, y),
        MultiOutputRegressor(passing(1.0)).fit(X, np.column_stack([y, X[:, 0]])),
        make_pipeline("passthrough", VotingRegressor(pairs)).fit(X, y),
    ]
    for model in models:
        assert not hasattr(model, "n_features_in_")
        predictor = as_predictor(model)
        assert predictor.describe(X).features == 3
        assert evaluate(predictor.layers(), X) == pytest.approx(
            model.predict(X).reshape(len(X), -1), abs=1e-9
        )
