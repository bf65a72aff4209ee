"""scikit-learn: the estimator's own answer, the same map for gradients, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVR, LinearSVC

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.networks.layers import evaluate
from tests.conftest import FULL
from tests.predictors.estimators import gives_shares, own_answer, trained

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

inf = np.inf
SEEDS = range(300) if FULL else range(10)


LAST_DIGITS = 1e-13
"""Two answers of one estimator: a frame, a copy or another batch may have its sums in another order."""


def apart(a, b):
    return np.max(np.abs(a - b) / np.maximum(1.0, np.abs(b)))


@pytest.mark.parametrize("seed", SEEDS)
class TestRandomEstimators:
    def test_scalers_are_folded_into_dense_layers(self, seed):
        model, _ = trained(seed)
        if gives_shares(model):
            with pytest.raises(dt.UnsupportedError, match="Shares"):  # shares of a sum are no layer
                as_predictor(model).layers()
            return
        kinds = [type(layer).__name__ for layer in as_predictor(model).layers()]
        assert "Dense Dense" not in " ".join(kinds)

    def test_classes_are_those_of_predict(self, seed):
        model, X = trained(seed)
        if not hasattr(model, "classes_"):
            return
        k = 1 if len(model.classes_) == 2 else len(model.classes_)
        block = tied(model, X, k)
        values = block.predictor.predict(X)
        outcome = block.decode(values)
        clear = np.abs(values[:, 0] - block.threshold) > 1e-12
        if k > 1:
            clear = np.diff(np.sort(values, axis=1)[:, -2:], axis=1)[:, 0] > 1e-12
        labels = model.classes_[outcome[:, 0].astype(int) if k == 1 else outcome.argmax(axis=1)]
        assert np.array_equal(labels[clear], model.predict(X)[clear])


def tied(model, X, outputs, **options):
    """The block of a problem whose columns are the model's features and outputs."""
    d = X.shape[1]
    lower = [*X.min(axis=0), *[-inf] * outputs]
    upper = [*X.max(axis=0), *[inf] * outputs]
    problem = dt.Problem(dt.Mip(cost=np.zeros(d + outputs), lower=lower, upper=upper))
    options = {"output_type": "classification", **options}
    return problem.add_predictor(model, range(d), range(d, d + outputs), **options)


def numbers(rows=80, features=3, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, features))


X = numbers()
TWO = (X[:, 0] + X[:, 1] > 0.2).astype(int)
THREE = np.digitize(X[:, 0] - X[:, 2], [-0.5, 0.7])


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(), MLPClassifier((5,), max_iter=30), OneVsRestClassifier(LogisticRegression())],
    ids=lambda model: type(model).__name__,
)
class TestBinaryClassifiers:
    def test_one_column_is_the_second_class_and_two_are_both(self, model):
        model = make_pipeline(StandardScaler(), model).fit(X, np.array(["no", "yes"])[TWO])
        one = tied(model, X, 1, output_type="regression").predictor
        two = tied(model, X, 2, output_type="regression").predictor
        both = model.predict_proba(X)
        assert apart(one.predict(X), both[:, 1:]) <= LAST_DIGITS
        assert apart(two.predict(X), both) <= LAST_DIGITS
        for predictor in (one, two):
            values = predictor.snapshot("cpu")(torch.tensor(X)).detach().numpy()
            assert np.allclose(values, predictor.predict(X), rtol=0, atol=1e-14)
            assert np.allclose(evaluate(predictor.layers(), X), predictor.predict(X), rtol=0, atol=1e-12)

    def test_classes_in_one_column_and_in_two(self, model):
        model.fit(X, np.array(["no", "yes"])[TWO])
        says_yes = model.predict(X) == "yes"
        one, two = tied(model, X, 1), tied(model, X, 2)
        assert one.threshold == np.nextafter(0.5, 1.0)  # a half is the first class, as `predict` has it
        assert one.description.ends_in_sigmoid
        clear = np.abs(model.predict_proba(X)[:, 1] - 0.5) > LAST_DIGITS
        assert np.array_equal(one.decode(one.predictor.predict(X))[clear, 0], says_yes[clear])
        assert np.array_equal(two.decode(two.predictor.predict(X))[clear, 1], says_yes[clear])

    def test_three_columns_are_refused_with_both_numbers(self, model):
        model.fit(X, TWO)
        with pytest.raises(dt.PredictorError, match=r"\(16, 1\) outputs, but outputs has 3 variables"):
            tied(model, X, 3)


@pytest.mark.parametrize("model", [LinearSVC(), RidgeClassifier()], ids=lambda model: type(model).__name__)
def test_classifiers_without_probabilities_decide_at_zero(model):
    model.fit(X, TWO)
    block = tied(model, X, 1)
    assert block.threshold == 0.0
    assert np.array_equal(block.decode(block.predictor.predict(X))[:, 0], model.predict(X))
    with pytest.raises(dt.PredictorError, match="outputs has 2 variables"):
        tied(model, X, 2)


def test_several_labels_at_once_are_numbers_and_no_class():
    labels = np.column_stack([TWO, X[:, 2] > 0]).astype(int)
    for model in (MLPClassifier((5,), max_iter=30), OneVsRestClassifier(LogisticRegression())):
        model.fit(X, labels)
        block = tied(model, X, 2, output_type="regression")
        assert apart(block.predictor.predict(X), model.predict_proba(X)) <= LAST_DIGITS
        values = block.predictor.snapshot("cpu")(torch.tensor(X)).detach().numpy()
        assert np.allclose(values, model.predict_proba(X), rtol=0, atol=1e-14)
        with pytest.raises(dt.PredictorError, match=f"{type(model).__name__} was trained on several labels"):
            tied(model, X, 2)


@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_mean=False, with_std=False),
        MinMaxScaler(),
        MinMaxScaler((-2, 3), clip=True),
        MaxAbsScaler(),
        RobustScaler(),
        RobustScaler(with_centering=False, with_scaling=False),
        Pipeline([("a", StandardScaler()), ("b", "passthrough")]),
    ],
    ids=str,
)
def test_scalers_alone_and_their_way_back(scaler):
    wide = 3.0 * numbers(seed=1) + [1.0, 1e3, 0.0]
    scaler.fit(wide)
    predictor = as_predictor(scaler)
    outside = 2.0 * wide
    assert apart(predictor.predict(outside), scaler.transform(outside)) <= LAST_DIGITS
    values = predictor.snapshot("cpu")(torch.tensor(outside)).detach().numpy()
    assert apart(values, scaler.transform(outside)) < 1e-12
    if isinstance(scaler, Pipeline):
        return
    assert apart(evaluate(predictor.layers(), outside), scaler.transform(outside)) < 1e-12
    model = TransformedTargetRegressor(LinearRegression(), transformer=scaler, check_inverse=False)
    model.fit(X, wide)
    predictor = as_predictor(model)
    assert apart(predictor.predict(X), model.predict(X)) <= LAST_DIGITS
    assert apart(predictor.snapshot("cpu")(torch.tensor(X)).detach().numpy(), model.predict(X)) < 1e-12


def test_a_clipped_scaler_far_away_is_exact():
    model = MinMaxScaler(clip=True).fit(X)
    far = np.array([[1e12, -1e12, 0.0]])
    assert np.array_equal(as_predictor(model).snapshot("cpu")(torch.tensor(far))[0, :2].detach(), [1.0, 0.0])


def test_close_numbers_far_from_zero_keep_their_digits():
    near = 1e8 + 1e-3 * X
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(near, X[:, 0])
    values = as_predictor(model).snapshot("cpu")(torch.tensor(near)).detach().numpy()
    assert apart(values[:, 0], model.predict(near)) < 1e-12


@pytest.mark.parametrize(("there", "back"), [(np.log, np.exp), (np.log1p, np.expm1), (np.sqrt, np.square)])
def test_a_target_on_another_scale(there, back):
    model = TransformedTargetRegressor(LinearRegression(), func=there, inverse_func=back)
    model.fit(X, np.exp(X[:, 0]))
    predictor = as_predictor(model)
    assert apart(predictor.predict(X)[:, 0], model.predict(X)) <= LAST_DIGITS
    assert apart(predictor.snapshot("cpu")(torch.tensor(X)).detach().numpy()[:, 0], model.predict(X)) < 1e-12


def test_a_target_without_a_transformer_and_one_with_a_strange_one():
    plain = TransformedTargetRegressor(LinearRegression()).fit(X, X[:, 0])
    assert apart(as_predictor(plain).predict(X)[:, 0], plain.predict(X)) <= LAST_DIGITS
    strange = TransformedTargetRegressor(LinearRegression(), func=np.arctan, inverse_func=np.tan)
    with pytest.raises(dt.PredictorError, match="FunctionTransformer.*predictor=estimator.predict"):
        as_predictor(strange.fit(X, np.tanh(X[:, 0])))


def test_a_poisson_network_ends_in_exp():
    model = MLPRegressor(loss="poisson", hidden_layer_sizes=(4,), max_iter=20).fit(X, np.exp(X[:, 0]))
    predictor = as_predictor(model)
    assert apart(predictor.predict(X)[:, 0], model.predict(X)) <= LAST_DIGITS
    assert apart(predictor.snapshot("cpu")(torch.tensor(X)).detach().numpy()[:, 0], model.predict(X)) < 1e-12


def test_trained_in_float32_it_answers_float64_in_float64():
    model = MLPRegressor(hidden_layer_sizes=(5,), max_iter=20).fit(
        X.astype(np.float32), X[:, 0].astype(np.float32)
    )
    assert model.coefs_[0].dtype == np.float32
    predictor = as_predictor(model)
    is_float64 = predictor.describe(X).is_float64
    assert is_float64 == (model.predict(X).dtype == np.float64)
    tolerance = 1e-10 if is_float64 else 1e-5
    values = predictor.snapshot("cpu")(torch.tensor(X)).detach().numpy()
    assert apart(values[:, 0], model.predict(X)) < tolerance


def test_one_that_answers_in_float32_says_so():
    class Short(LinearRegression):
        def predict(self, X):
            return super().predict(X).astype(np.float32)

    block = tied(Short().fit(X, X[:, 0]), X, 1, output_type="regression")
    assert not block.description.is_float64
    values = block.predictor.snapshot("cpu")(torch.tensor(X)).detach().numpy()
    assert apart(values, block.predictor.predict(X)) < 1e-5


def test_an_overridden_predict_is_seen():
    class Other(LinearRegression):
        def predict(self, X):
            return np.abs(super().predict(X))

    with pytest.raises(dt.PredictorError, match="Other does not compute what dovetail makes of its coeff"):
        tied(Other().fit(X, X[:, 0]), X, 1, output_type="regression")


@pytest.mark.parametrize("pandas_is_loaded", [True, False])
def test_names_of_features_warn_nobody(pandas_is_loaded, monkeypatch):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    models = [
        LinearRegression().fit(frame, X[:, 0]),
        make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, TWO),
        make_pipeline(StandardScaler(), LinearRegression())
        .set_output(transform="pandas")
        .fit(frame, X[:, 0]),
    ]
    truth = [own_answer(model, frame) for model in models]
    if not pandas_is_loaded:
        monkeypatch.delitem(__import__("sys").modules, "pandas")
        models.pop()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model, expected in zip(models, truth, strict=False):
            block = tied(model, X, 1, output_type="regression")
            assert apart(block.predictor.predict(X), expected) <= LAST_DIGITS


def test_training_again_is_seen():
    model = LinearRegression().fit(X, X[:, 0])
    predictor = as_predictor(model)
    held = predictor.snapshot("cpu")
    before = held(torch.tensor(X))
    model.fit(X, 5.0 * X[:, 1])
    assert torch.equal(held(torch.tensor(X)), before)  # a copy is a copy
    assert apart(predictor.predict(X)[:, 0], model.predict(X)) <= LAST_DIGITS
    assert apart(predictor.snapshot("cpu")(torch.tensor(X)).detach().numpy(), predictor.predict(X)) < 1e-12


def test_the_owner_gets_it_back_as_it_was():
    model = make_pipeline(StandardScaler(copy=False), MLPRegressor(hidden_layer_sizes=(4,), max_iter=20)).fit(
        X.copy(), X[:, 0]
    )
    before = [weight.copy() for weight in model[-1].coefs_]
    rows = X.copy()
    block = tied(model, rows, 1, output_type="regression")
    block.predictor.predict(rows)
    assert np.array_equal(rows, X)  # though its scaler works in place
    assert all(map(np.array_equal, before, model[-1].coefs_))


class TestRefusals:
    @pytest.mark.parametrize(
        "model",
        [
            MLPRegressor(),
            LogisticRegression(),
            StandardScaler(),
            make_pipeline(StandardScaler(), LinearRegression()),
            Pipeline([("a", StandardScaler()), ("b", LinearRegression().fit(X, TWO))]),
            TransformedTargetRegressor(LinearRegression()),
            OneVsRestClassifier(LogisticRegression()),
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_what_is_not_trained(self, model):
        with pytest.raises(
            dt.PredictorError, match=f"{type(model).__name__} is not trained yet; call its fit"
        ):
            as_predictor(model)

    @pytest.mark.parametrize(
        ("model", "name"),
        [
            (KNeighborsRegressor().fit(X, X[:, 0]), "KNeighborsRegressor"),
            (make_pipeline(KBinsDiscretizer(2), LinearRegression()).fit(X, X[:, 0]), "KBinsDiscretizer"),
            (OneVsRestClassifier(SVR()).fit(X, THREE), "OneVsRestClassifier of SVR"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_what_cannot_be_written(self, model, name):
        with pytest.raises(dt.PredictorError, match=f"^{name} cannot be written as a network"):
            as_predictor(model)
        with pytest.raises(dt.PredictorError, match="predictor=estimator.predict.*register_predictor"):
            as_predictor(model)

    def test_the_way_out_of_it_works(self):
        forest = RandomForestRegressor(3).fit(X, X[:, 0])
        block = tied(forest.predict, X, 1, output_type="regression")
        assert apart(block.predictor.predict(X)[:, 0], forest.predict(X)) <= LAST_DIGITS

    def test_the_wrong_number_of_features(self):
        model = LinearRegression().fit(X, X[:, 0])
        with pytest.raises(dt.PredictorError, match="inputs has 2 variables.*takes 3 features"):
            tied(model, X[:, :2], 1, output_type="regression")

    def test_coefficients_that_are_no_numbers(self):
        model = LinearRegression().fit(X, X[:, 0])
        model.coef_[1] = np.nan
        with pytest.raises(dt.PredictorError, match="LinearRegression holds NaN"):
            as_predictor(model)

    def test_an_empty_pipeline(self):
        with pytest.raises(dt.PredictorError, match="no step but 'passthrough'"):
            as_predictor(Pipeline([("a", "passthrough")]).fit(X))


def test_sparse_coefficients():
    model = LogisticRegression(C=0.05, l1_ratio=1.0, solver="saga", max_iter=500).fit(X, TWO).sparsify()
    assert apart(as_predictor(model).predict(X), model.predict_proba(X)[:, 1:]) <= LAST_DIGITS
    values = as_predictor(model).snapshot("cpu")(torch.tensor(X)).detach().numpy()
    assert apart(values, model.predict_proba(X)[:, 1:]) < 1e-12


# --- solved -----------------------------------------------------------------------------------------


def grid(levels):
    return np.array(np.meshgrid(*levels, indexing="ij")).reshape(len(levels), -1).T


def test_a_multi_class_pipeline_is_solved_to_the_best_of_all_points():
    model = make_pipeline(MinMaxScaler(), LogisticRegression(C=20.0)).fit(X, THREE)
    # the cheapest point that is of class 2, among tenths
    d, k = 3, 3
    cost = [1.0, 0.3, -0.5] + [0.0] * k
    rows = np.hstack([0.1 * np.eye(d), np.zeros((d, k)), -np.eye(d)])
    mip = dt.Mip(
        cost=cost + [0.0] * d,
        A=rows,
        row_lower=0.0,
        row_upper=0.0,
        lower=[-20.0] * d + [0, 0, 1] + [-inf] * d,
        upper=[20.0] * d + [1] * k + [inf] * d,
        integer=[True] * d + [False] * (k + d),
    )
    problem = dt.Problem(mip)
    problem.add_predictor(model, [6, 7, 8], [3, 4, 5], output_type="classification")
    result = dt.solve(problem, log=False)
    points = grid([np.arange(-20.0, 21.0)] * 3)
    points = points[model.predict(0.1 * points) == 2]
    assert result.status in ("optimal", "feasible")
    assert result.objective == pytest.approx(np.min(points @ cost[:3]), abs=1e-6)
    assert model.predict(result.x[6:9][None])[0] == 2
