"""Every kind of scikit-learn's: the network says what the live estimator says, its classes are those."""

import numpy as np
import pytest
import torch
from sklearn.cluster import BisectingKMeans, KMeans
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeRegressor

import dovetail as dt
from dovetail.core.errors import UnsupportedError
from dovetail.core.predictor import as_predictor
from dovetail.networks.layers import evaluate
from tests.conftest import FULL
from tests.predictors.scikit_learn.kinds import CLASSIFIERS, KINDS, LINEAR, as_given, own_answer, trained

SEEDS = range(10) if FULL else range(1)
CLOSE = 1e-9
"""Relative to max(1, |value|): sums in another order."""

WITH_JUMPS = {
    "Binarizer", "FunctionTransformer, own", "VotingRegressor with trees", "MultiOutputRegressor of trees",
    "VotingClassifier, soft", "VotingClassifier, hard", "StackingClassifier",
    "MultiOutputClassifier of trees",
}  # fmt: skip
"""Kinds that have no bound: they jump, or can only be called."""


def apart(a, b):
    assert a.shape == b.shape
    return np.max(np.abs(a - b) / np.maximum(1.0, np.abs(b)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_network_says_what_the_estimator_says(kind):
    for seed in SEEDS:
        model, X = trained(kind, seed)
        predictor, truth = as_predictor(model), own_answer(model, as_given(kind, X))
        said = predictor.predict(X)
        if truth is not None:
            assert apart(said, truth) <= CLOSE
        u = torch.tensor(X, requires_grad=True)
        values = predictor.snapshot("cpu")(u)
        assert apart(values.detach().numpy(), said) <= CLOSE
        torch.autograd.grad(values.sum(), u)
        known = predictor.describe(X[:16])
        program, layers = known.program_if_known(X.shape[1]), known.layers_if_known()
        assert (program is None) == _jumps(kind, model)
        if program is not None:
            assert apart(program.values(X), said) <= CLOSE
        if layers is not None:
            assert apart(evaluate(layers, X), said) <= CLOSE


def _jumps(kind, model):
    return kind in WITH_JUMPS or ((isinstance(model, SVC) or kind == "NuSVC") and len(model.classes_) > 2)


@pytest.mark.parametrize("kind", sorted(LINEAR))
def test_what_is_linear_is_one_dense_layer(kind):
    model, X = trained(kind)
    (layer,) = as_predictor(model).describe(X[:16]).layers()
    assert layer.weight.shape[1] == X.shape[1]


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classes_are_those_that_predict_says(kind):
    for seed in SEEDS:
        model, X = trained(kind, seed)
        labels = model.predict(X)
        classes = np.unique(labels) if labels.dtype.kind == "i" else model.classes_
        k = as_predictor(model).predict(X).shape[1]
        problem = dt.Problem(
            dt.Mip(
                cost=np.zeros(X.shape[1] + k),
                lower=[*X.min(axis=0), *[0] * k],
                upper=[*X.max(axis=0), *[1] * k],
            )
        )
        d = X.shape[1]
        block = problem.add_predictor(model, range(d), range(d, d + k), output_type="classification")
        values = block.predictor.predict(X)
        clear = block.lead(values) > 1e-12
        outcome = block.decode(values)
        found = outcome[:, 0] if k == 1 else outcome.argmax(axis=1)
        known = np.arange(k) if labels.dtype.kind == "i" else classes
        assert np.array_equal(known[found[clear].astype(int)], labels[clear])


def test_a_tie_of_votes_goes_to_the_first_class():
    """With three classes each may win one pair; predict then says the first, decision_function another."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    model = SVC(kernel="poly", degree=3, C=50.0).fit(X, y)
    Z = rng.normal(size=(3000, 2))
    assert np.any(model.predict(Z) != model.decision_function(Z).argmax(axis=1))  # ties are there
    assert np.array_equal(as_predictor(model).predict(Z).argmax(axis=1), model.predict(Z))
    model.break_ties = True
    assert np.array_equal(as_predictor(model).predict(Z).argmax(axis=1), model.predict(Z))


class TestCategories:
    def test_a_column_between_whole_numbers_is_refused_by_name(self):
        model, X = trained("OneHotEncoder, MLP")
        mip = dt.Mip(
            cost=np.zeros(4), lower=[*X.min(axis=0), -9.0], upper=[*X.max(axis=0), 9.0], names=[*"abcy"]
        )
        with pytest.raises(
            dt.PredictorError, match="feature 2 of Pipeline accepts integers.*variable.*c.*integer"
        ):
            dt.Problem(mip).add_predictor(model, [0, 1, 2], [3])

    def test_a_category_nobody_knows_has_no_answer(self):
        X = np.column_stack([np.arange(12.0), np.arange(12) % 3])
        model = make_pipeline(
            ColumnTransformer([("c", OneHotEncoder(), [1])], remainder="passthrough"), Ridge()
        )
        predictor = as_predictor(model.fit(X, X.sum(axis=1)))
        assert np.isnan(predictor.predict(np.array([[1.0, 3.0]]))).all()
        mip = dt.Mip(cost=np.zeros(3), lower=[0, 0, -99], upper=[9, 5, 99], integer=[False, True, False])
        with pytest.raises(dt.PredictorError, match="gives nan.*bounds of its inputs"):
            dt.Problem(mip).add_predictor(model, [0, 1], [2])

    @pytest.mark.parametrize(
        ("encoder", "what"),
        [
            (OneHotEncoder(min_frequency=5), "infrequent categories"),
            (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), "handle_unknown"),
        ],
    )
    def test_what_cannot_be_exact_is_refused_by_name(self, encoder, what):
        X = np.column_stack([np.arange(12.0), [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2]])
        model = make_pipeline(ColumnTransformer([("c", encoder, [1])]), Ridge()).fit(X, X[:, 0])
        with pytest.raises(dt.PredictorError, match=f"{type(encoder).__name__} with {what}"):
            as_predictor(model)

    def test_categories_that_are_no_whole_numbers(self):
        X = np.column_stack([np.arange(12.0), 0.5 * (np.arange(12) % 3)])
        model = make_pipeline(ColumnTransformer([("c", OneHotEncoder(), [1])]), Ridge()).fit(X, X[:, 0])
        with pytest.raises(
            dt.PredictorError, match="OneHotEncoder with categories that are no whole numbers"
        ):
            as_predictor(model)


numbers = np.random.default_rng(0).normal(size=(40, 2))


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (SVR(kernel=lambda a, b: a @ b.T), "SVR with the kernel"),
        (NearestCentroid(metric="manhattan"), "NearestCentroid with the metric 'manhattan'"),
        (BisectingKMeans(3), "BisectingKMeans cannot be written"),
        (VotingClassifier([("k", KNeighborsClassifier())], voting="soft"), "VotingClassifier of KNeighbors"),
        (make_pipeline(LogisticRegression(), Ridge()), None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_others_are_refused_by_name(model, name):
    if name is None:  # scikit-learn itself refuses a step that cannot transform
        with pytest.raises(TypeError):
            model.fit(numbers, numbers[:, 0])
        return
    model.fit(numbers, (numbers[:, 0] > 0).astype(int))
    with pytest.raises(dt.PredictorError, match=name):
        as_predictor(model)


def test_a_search_over_options_is_its_best_estimator():
    search = GridSearchCV(make_pipeline(PolynomialFeatures(2), Ridge()), {"ridge__alpha": [0.1, 1.0]}, cv=2)
    with pytest.raises(dt.PredictorError, match="GridSearchCV holds no best estimator"):
        as_predictor(search)
    search.fit(numbers, numbers[:, 0] * numbers[:, 1])
    assert apart(as_predictor(search).predict(numbers)[:, 0], search.predict(numbers)) <= CLOSE
    trees = GridSearchCV(DecisionTreeRegressor(), {"max_depth": [2, 3]}, cv=2).fit(numbers, numbers[:, 0])
    assert as_predictor(trees).describe(numbers[:16]).trees is not None


def test_encoders_can_be_written_out():
    model, X = trained("OneHotEncoder, MLP")
    layers = as_predictor(model).describe(X[:16]).layers()
    assert [getattr(layer, "kind", "dense") for layer in layers] == [
        "dense",
        "relu",
        "dense",
        "relu",
        "dense",
    ]


def test_squares_are_known_to_be_no_less_than_zero():
    from dovetail.networks.arithmetic import FLOAT64

    model = PolynomialFeatures(2, include_bias=False).fit(numbers)
    program = as_predictor(model).describe(numbers[:16]).program(2)
    low, high, _ = program.errors(FLOAT64, np.array([[-1.0, -2.0]]), np.array([[1.0, 3.0]]))
    assert np.array_equal(low[0, [2, 4]], [0.0, 0.0])
    assert np.array_equal(high[0, [2, 4]], [1.0, 9.0])


def test_a_function_with_jumps_is_not_written_out():
    model, X = trained("Binarizer")
    with pytest.raises(UnsupportedError, match="jumps"):
        as_predictor(model).describe(X[:16]).program(X.shape[1])


def test_a_hard_vote_of_estimators_with_other_numbers_of_columns():
    labels = (numbers[:, 0] > 0).astype(int)
    model = VotingClassifier([("n", NearestCentroid()), ("l", LogisticRegression()), ("s", SVC())])
    model.fit(numbers, labels)
    values = as_predictor(model).snapshot("cpu")(torch.tensor(numbers)).detach().numpy()
    assert np.array_equal(values[:, 0], model.predict(numbers))


def test_one_that_does_not_find_the_nearest_is_refused():
    class Farthest(KMeans):
        def predict(self, X):
            return self.transform(X).argmax(axis=1)

    model = Farthest(3, n_init=1, random_state=0).fit(numbers)
    with pytest.raises(dt.PredictorError, match="Farthest does not find the nearest of its centres"):
        as_predictor(model).describe(numbers)


@pytest.mark.parametrize("kind", ["KMeans", "NearestCentroid"])
def test_one_column_of_centres_is_the_number_of_the_nearest(kind):
    """Also where classes are asked for: it is the number of one."""
    model, X = trained(kind)
    labels = model.predict(X)
    numbers = labels if kind == "KMeans" else np.searchsorted(model.classes_, labels)
    count = int(numbers.max()) + 1
    mip = dt.Mip(
        [0.1, -0.1, 0.2, -1.0], lower=[-1, -1, -1, 0], upper=[2, 2, 2, count], integer=[True] * 3 + [False]
    )
    for output_type in ("regression", "classification"):
        problem = dt.Problem(mip)
        block = problem.add_predictor(model, [0, 1, 2], [3], output_type=output_type)
        assert not block.classifies
        assert np.array_equal(block.predictor.predict(X)[:, 0], numbers)
        copy = block.predictor.snapshot("cpu")(torch.tensor(X, requires_grad=True))
        assert np.array_equal(copy.detach().numpy()[:, 0], numbers)
    grid = np.array(np.meshgrid(*[np.arange(-1.0, 3.0)] * 3)).reshape(3, -1).T
    best = np.min(grid @ [0.1, -0.1, 0.2] - block.predictor.predict(grid)[:, 0])
    result = dt.solve(problem, log=False, time_limit=60.0)
    assert result.objective == pytest.approx(best, abs=1e-6)
