"""One random trained estimator of every kind that is written as a network, in the words of its users."""

from __future__ import annotations

import functools
import warnings
import zlib

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.cross_decomposition import CCA, PLSCanonical, PLSRegression
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    BayesianRidge,
    GammaRegressor,
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    RANSACRegressor,
    Ridge,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.neighbors import NearestCentroid
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

FEATURES = 3
LABELS = np.array(["oak", "ash", "fir", "elm"])


def with_product(Z):
    """A function of the user's own."""
    return np.column_stack([Z, Z[:, 0] * Z[:, 1]])


def polynomial(rng):
    low = int(rng.integers(0, 3))
    degree = [2, 3, 4, (low, low + 1), (2, 2)][int(rng.integers(5))]
    return PolynomialFeatures(
        degree, interaction_only=bool(rng.integers(2)), include_bias=bool(rng.integers(2))
    )


def small_net(rng):
    return MLPRegressor(hidden_layer_sizes=(5,), max_iter=8, random_state=int(rng.integers(99)))


def machine(rng, kernel):
    return {
        "kernel": kernel, "C": float(10 ** rng.uniform(-1, 1)), "gamma": float(rng.uniform(0.1, 0.6)),
        "coef0": float(rng.uniform(0, 1)), "degree": int(rng.integers(2, 5)),
    }  # fmt: skip


def encoded(encoder, rng, last=None):
    """The last feature is a category, the others are numbers."""
    columns = ColumnTransformer([("c", encoder, [FEATURES - 1])], remainder=StandardScaler())
    return make_pipeline(columns, last or Ridge())


def voters(rng):
    return [
        ("a", LogisticRegression()),
        ("b", DecisionTreeClassifier(max_depth=2, random_state=0)),
        ("c", make_pipeline(StandardScaler(), LogisticRegression(C=0.05))),
    ]


def gaussian_process(rng):
    kernel = [RBF([1.0, 2.0, 3.0]), Matern(2.0, nu=1.5), Matern(nu=2.5), RationalQuadratic()]
    kernel = ConstantKernel(2.0) * kernel[int(rng.integers(4))] + WhiteKernel(0.1)
    return GaussianProcessRegressor(kernel, optimizer=None, normalize_y=bool(rng.integers(2)))


REGRESSORS = {
    "Gaussian process": gaussian_process,
    "Gaussian process, pipeline": lambda r: make_pipeline(StandardScaler(), gaussian_process(r)),
    "PolynomialFeatures, linear": lambda r: make_pipeline(polynomial(r), LinearRegression()),
    "PolynomialFeatures, MLP": lambda r: make_pipeline(StandardScaler(), PolynomialFeatures(2), small_net(r)),
    "PLSRegression": lambda r: PLSRegression(int(r.integers(1, 4))),
    "ColumnTransformer, numbers": lambda r: make_pipeline(
        ColumnTransformer(
            [("s", StandardScaler(), [2, 0]), ("d", "drop", [1])],
            remainder=["drop", "passthrough", MinMaxScaler()][int(r.integers(3))],
            transformer_weights={"s": 2.0},
        ),
        Ridge(),
    ),
    "ColumnTransformer, polynomials": lambda r: make_pipeline(
        ColumnTransformer([("p", polynomial(r), [0, 2])], remainder="passthrough"), Ridge()
    ),
    "FeatureUnion": lambda r: make_pipeline(
        FeatureUnion([("s", StandardScaler()), ("p", PCA(2))], transformer_weights={"p": 0.5}), Ridge()
    ),
    "Normalizer": lambda r: make_pipeline(Normalizer(["l1", "l2", "max"][int(r.integers(3))]), Ridge()),
    "Binarizer": lambda r: make_pipeline(Binarizer(threshold=float(r.normal())), Ridge()),
    "FunctionTransformer, numpy's": lambda r: make_pipeline(FunctionTransformer(np.tanh), Ridge()),
    "FunctionTransformer, own": lambda r: make_pipeline(FunctionTransformer(with_product), Ridge()),
    "FunctionTransformer, nothing": lambda r: make_pipeline(FunctionTransformer(), Ridge()),
    "PCA": lambda r: make_pipeline(PCA(2, whiten=bool(r.integers(2))), Ridge()),
    "TruncatedSVD": lambda r: make_pipeline(TruncatedSVD(2), Ridge()),
    "SelectKBest": lambda r: make_pipeline(SelectKBest(f_regression, k=2), Ridge()),
    "SimpleImputer": lambda r: make_pipeline(SimpleImputer(), Ridge()),
    "SVR linear": lambda r: SVR(**machine(r, "linear")),
    "SVR rbf": lambda r: SVR(**machine(r, "rbf")),
    "SVR poly": lambda r: SVR(**machine(r, "poly")),
    "SVR sigmoid": lambda r: SVR(**machine(r, "sigmoid")),
    "NuSVR": lambda r: NuSVR(gamma=0.3),
    "OneClassSVM": lambda r: OneClassSVM(gamma=0.3, nu=0.2),
    "BayesianRidge": lambda r: BayesianRidge(),
    "HuberRegressor": lambda r: HuberRegressor(),
    "SGDRegressor": lambda r: SGDRegressor(random_state=0),
    "RANSACRegressor": lambda r: RANSACRegressor(random_state=0),
    "VotingRegressor": lambda r: VotingRegressor(
        [("a", Ridge()), ("b", SVR())], weights=[1, 3] if r.integers(2) else None
    ),
    "VotingRegressor with trees": lambda r: VotingRegressor(
        [("a", Ridge()), ("b", DecisionTreeRegressor(max_depth=3, random_state=0))]
    ),
    "StackingRegressor": lambda r: StackingRegressor(
        [("a", Ridge()), ("b", SVR())], LinearRegression(), cv=2, passthrough=bool(r.integers(2))
    ),
    "BaggingRegressor": lambda r: BaggingRegressor(Ridge(), 3, max_features=2, random_state=0),
}
POSITIVE = {
    "PoissonRegressor": lambda r: PoissonRegressor(),
    "GammaRegressor": lambda r: GammaRegressor(),
    "TweedieRegressor": lambda r: TweedieRegressor(power=[0, 1, 1.5][int(r.integers(3))]),
    "TransformedTargetRegressor": lambda r: TransformedTargetRegressor(
        make_pipeline(PolynomialFeatures(2), Ridge()), func=np.log1p, inverse_func=np.expm1
    ),
}
SEVERAL = {
    "PLSCanonical": lambda r: PLSCanonical(2),
    "CCA": lambda r: CCA(2),
    "MultiOutputRegressor": lambda r: MultiOutputRegressor(SVR(gamma=0.3)),
    "MultiOutputRegressor of trees": lambda r: MultiOutputRegressor(
        GradientBoostingRegressor(n_estimators=3, random_state=0)
    ),
    "RegressorChain": lambda r: RegressorChain(Ridge(), order=[1, 0]),
}
CLASSIFIERS = {
    "SVC linear": lambda r: SVC(**machine(r, "linear")),
    "SVC rbf": lambda r: SVC(**machine(r, "rbf"), break_ties=bool(r.integers(2))),
    "SVC poly": lambda r: SVC(**machine(r, "poly"), break_ties=True),
    "NuSVC": lambda r: NuSVC(nu=0.2, decision_function_shape=["ovo", "ovr"][int(r.integers(2))]),
    "LinearSVC": lambda r: LinearSVC(max_iter=50),
    "SGDClassifier": lambda r: SGDClassifier(loss=["hinge", "log_loss"][int(r.integers(2))], random_state=0),
    "LinearDiscriminantAnalysis": lambda r: LinearDiscriminantAnalysis(),
    "QuadraticDiscriminantAnalysis": lambda r: QuadraticDiscriminantAnalysis(),
    "VotingClassifier, soft": lambda r: VotingClassifier(voters(r), voting="soft", weights=[1, 2, 2]),
    "VotingClassifier, hard": lambda r: VotingClassifier(voters(r), weights=[[1, 2, 2], None][r.integers(2)]),
    "StackingClassifier": lambda r: StackingClassifier(
        [("a", LogisticRegression()), ("b", RandomForestClassifier(2, max_depth=2, random_state=0))], cv=2
    ),
    "BaggingClassifier": lambda r: BaggingClassifier(LogisticRegression(), 2, random_state=0),
    "NearestCentroid": lambda r: NearestCentroid(priors=["uniform", "empirical"][int(r.integers(2))]),
    "KMeans": lambda r: make_pipeline(StandardScaler(), KMeans(3, n_init=1, random_state=0)),
    "MiniBatchKMeans": lambda r: MiniBatchKMeans(3, n_init=1, random_state=0),
}
LABELLED = {
    "MultiOutputClassifier": lambda r: MultiOutputClassifier(LogisticRegression()),
    "MultiOutputClassifier of trees": lambda r: MultiOutputClassifier(
        DecisionTreeClassifier(max_depth=2, random_state=0)
    ),
}
CATEGORIES = {
    "OneHotEncoder": lambda r: encoded(
        OneHotEncoder(
            drop=[None, "first", "if_binary"][int(r.integers(3))],
            handle_unknown=["error", "ignore"][int(r.integers(2))],
            sparse_output=bool(r.integers(2)),
        ),
        r,
    ),
    "OneHotEncoder, MLP": lambda r: encoded(OneHotEncoder(), r, small_net(r)),
    "OrdinalEncoder": lambda r: encoded(OrdinalEncoder(), r),
    "OrdinalEncoder, gaps": lambda r: encoded(OrdinalEncoder(), r),
}
STRINGS = {"OneHotEncoder, strings": lambda r: encoded(OneHotEncoder(), r)}
FAMILIES = [REGRESSORS, POSITIVE, SEVERAL, CLASSIFIERS, LABELLED, CATEGORIES, STRINGS]
KINDS = [kind for family in FAMILIES for kind in family]
LINEAR = {
    "PLSRegression", "PLSCanonical", "CCA", "ColumnTransformer, numbers", "FeatureUnion", "PCA",
    "TruncatedSVD", "SelectKBest", "SimpleImputer", "FunctionTransformer, nothing", "SVR linear",
    "BayesianRidge", "HuberRegressor", "SGDRegressor", "RANSACRegressor", "BaggingRegressor",
}  # fmt: skip
"""What is one dense layer, whatever its options."""
BY_CLASSES_ALONE = {"KMeans", "MiniBatchKMeans", "NearestCentroid"}
"""What has no method that gives numbers."""
WITH_GAPS = {"OrdinalEncoder, gaps"}
"""What has no answer at some whole numbers between others."""
SAMPLED = (
    "PolynomialFeatures, linear", "ColumnTransformer, polynomials", "Normalizer", "Binarizer", "SVR rbf",
    "SVC rbf", "KMeans", "VotingClassifier, hard", "StackingClassifier", "MultiOutputClassifier of trees",
    "RegressorChain", "OneHotEncoder, strings",
)  # fmt: skip
"""Those that are solved in every run of the tests; all are in a full one."""


@functools.cache
def trained(kind, seed=0):
    """An estimator of a kind, and 60 points; for categories, the last feature is one."""
    rng = np.random.default_rng([seed, zlib.crc32(kind.encode())])
    X = rng.normal(size=(60, FEATURES)) * rng.uniform(0.5, 2.0, FEATURES) + rng.normal(size=FEATURES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _fitted(kind, rng, X)


def train_again(kind, model):
    """Give a trained estimator other targets; one that has none, fewer rows."""
    rng = np.random.default_rng([0, zlib.crc32(kind.encode())])
    X = rng.normal(size=(60, FEATURES)) * rng.uniform(0.5, 2.0, FEATURES) + rng.normal(size=FEATURES)
    data = _data(kind, rng, X)
    rows = slice(40) if kind == "OneClassSVM" else slice(None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data[0][rows], np.roll(data[1], 7, axis=0)[rows])


def _fitted(kind, rng, X):
    given, targets, points = _data(kind, rng, X)
    return _family(kind)[kind](rng).fit(given, targets), points


def _family(kind):
    return next(family for family in FAMILIES if kind in family)


def _data(kind, rng, X):
    """What a kind is trained on, its targets, and where it is asked."""
    slope, points = rng.normal(size=(FEATURES, 2)), 1.5 * rng.permutation(X)
    Y = np.sin(X @ slope) + 0.1 * X[:, :2]
    family = _family(kind)
    if family in (CATEGORIES, STRINGS):
        numbers = np.array([1, 2, 5, 9] if kind == "OrdinalEncoder, gaps" else [0, 1, 2, 3], dtype=float)
        chosen, asked = rng.permutation(np.arange(len(X)) % 4), rng.permutation(np.arange(len(X)) % 4)
        X[:, -1], points[:, -1] = numbers[chosen], numbers[asked] if family is CATEGORIES else asked
        if family is STRINGS:
            X = X.astype(object)
            X[:, -1] = LABELS[chosen]
        return X, Y[:, 0] + chosen, points
    if family is CLASSIFIERS:
        ranks = np.argsort(np.argsort(Y[:, 0] + 0.3 * rng.normal(size=len(Y))))
        return X, LABELS[ranks * int(rng.integers(2, 5)) // len(X)], points
    if family is LABELLED:
        return X, (np.median(Y, axis=0) < Y).astype(int), points
    if family is SEVERAL:
        return X, Y, points
    return X, np.exp(Y[:, 0]) if family is POSITIVE else Y[:, 0], points


def own_answer(model, X):
    """What the library says: probabilities or decisions, votes as classes, centres as scores."""
    last = model[-1] if hasattr(model, "steps") else model
    if type(last).__name__ in ("KMeans", "MiniBatchKMeans", "NearestCentroid"):
        return None  # it has no such method: classes are compared
    by_votes = isinstance(last, (SVC, NuSVC)) and len(last.classes_) > 2 and not last.break_ties
    if by_votes or getattr(last, "voting", "") == "hard":
        values = (model.predict(X)[:, None] == last.classes_).astype(float)
        return values[:, 1:] if values.shape[1] == 2 else values
    if isinstance(last, MultiOutputClassifier):
        return np.column_stack([values[:, 1] for values in model.predict_proba(X)])
    if hasattr(model, "predict_proba") and not isinstance(last, (SVC, NuSVC)):
        values = model.predict_proba(X)
        return values[:, 1:] if values.shape[1] == 2 else values
    values = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    return values[:, None] if values.ndim == 1 else values


def as_given(kind, X):
    """Rows as the estimator's owner has them: with labels where the estimator reads labels."""
    if kind not in STRINGS:
        return X
    named = X.astype(object)
    named[:, -1] = np.sort(LABELS)[X[:, -1].astype(int)]
    return named
