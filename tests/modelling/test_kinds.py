"""Every kind of predictor in a model of every tool: the optimum is the one that all points show.

One kind for each tool in every run; with DOVETAIL_FULL all kinds in all tools.
"""

import functools
import itertools
import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import dovetail as dt
from dovetail.core.predictor import as_predictor
from tests.conftest import FULL
from tests.predictors.onnx import test_trees as onnx_trees
from tests.predictors.scikit_learn import kinds
from tests.predictors.trees import models
from tests.tools import TOOLS, numbers

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

FEATURES = 3
PRICE = np.array([0.3, -0.2, 0.1])
GRID = np.array([*itertools.product(range(4), repeat=FEATURES)], dtype=float)


def network(outputs=1, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(FEATURES, 5), nn.ReLU(), nn.Linear(5, outputs)).to(dtype)


def keras_model():
    import keras

    keras.utils.set_random_seed(0)
    layers = keras.layers
    return keras.Sequential([keras.Input((FEATURES,)), layers.Dense(5, activation="relu"), layers.Dense(1)])


def onnx_network(opset):
    net = network(dtype=torch.float32)
    weights = {f"w{k}": value.detach().numpy() for k, value in enumerate(net.parameters())}
    nodes = [
        helper.make_node("Gemm", ["x", "w0", "w1"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "w3"], ["y"], transB=1),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size])
        for name, size in (("x", FEATURES), ("y", 1))
    ]
    held = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def with_categories():
    from sklearn.ensemble import HistGradientBoostingRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, FEATURES))
    X[:, 2] = rng.integers(0, 4, 200)
    model = HistGradientBoostingRegressor(max_iter=4, max_depth=3, categorical_features=[2])
    return model.fit(X, X[:, 0] * (X[:, 2] == 1) + np.isin(X[:, 2], [0, 3]))


def rules():
    return dt.RuleList([([(0, ">", 1.5), (1, "<", 2)], 0.5), ([(2, "==", 2)], -1.0)], 0.2, FEATURES)


def slow(row):
    assert np.array_equal(row, np.round(row))
    return row[0] * row[1] - row[2]


OTHERS = {
    "torch": network,
    "torch, float32": lambda: network(dtype=torch.float32),
    "Keras": keras_model,
    "ONNX": lambda: onnx_network(17),
    "ONNX of opset 9": lambda: onnx_network(9),
    "ONNX TreeEnsembleRegressor": lambda: onnx_trees.regressor(np.random.default_rng(0)),
    "XGBoost, Booster": lambda: models.model("xgboost", "XGBRegressor").get_booster(),
    "LightGBM, Booster": lambda: models.model("lightgbm", "LGBMRegressor").booster_,
    "categories of trees": with_categories,
    "rule list": rules,
    "function": lambda: lambda X: np.sin(X).sum(axis=1),
    "simulator": lambda: dt.Function(slow, row_by_row=True, integer_only=True),
    "mean of networks": lambda: dt.Ensemble([network(seed=k) for k in range(3)]),
    "least of networks": lambda: dt.Ensemble([network(seed=k) for k in range(3)], "min"),
    "largest of several kinds": lambda: dt.Ensemble([network(), rules(), kinds.trained("SVR rbf")[0]], "max"),
    "spread of networks": lambda: dt.MeanSpread(1.0, bad="low").of([network(seed=k) for k in range(3)]),
    "worst fifth of networks": lambda: dt.CVaR(0.2, bad="high").of([network(seed=k) for k in range(12)]),
    "spread of a Gaussian process": lambda: dt.MeanSpread(bad="high").of(
        kinds.trained("Gaussian process")[0]
    ),
    "worst of a forest": lambda: dt.CVaR(0.3, bad="low").of(models.model("sklearn", "RandomForestRegressor")),
    "mean and log variance": lambda: dt.MeanSpread(1.0, bad="high").of(
        dt.MeanDeviation(network(2), "log variance")
    ),
    "quantiles": lambda: dt.CVaR(0.3, bad="low").of(dt.Quantiles(network(3), [0.1, 0.5, 0.9])),
    "vote": lambda: dt.Ensemble([network(seed=k) for k in range(3)], "vote"),
    **{
        f"{library}: {name}": functools.partial(models.model, library, name) for library, name in models.NAMES
    },
}
ONE_EACH = (
    "OneHotEncoder, strings",
    "KMeans",
    "rule list",
    "PolynomialFeatures, linear",
    "LightGBM, Booster",
)
"""Of the tools, in their order."""
ALL = [(tool, kind) for kind in [*kinds.KINDS, *OTHERS] for tool in TOOLS]
CASES = ALL if FULL else [*zip(TOOLS, ONE_EACH, strict=True)]


def made(kind):
    """A predictor, and whether its classes are meant."""
    if kind in OTHERS:
        return OTHERS[kind](), False
    return kinds.trained(kind)[0], kind in kinds.CLASSIFIERS


@pytest.mark.parametrize(("tool", "kind"), CASES, ids=str)
def test_every_kind_in_a_model_of_every_tool(tool, kind):
    """min price'x + worth'y over x in {0..3}^3, or {1, 2}^3 among gaps, with x0 + x1 + x2 >= 3."""
    predictor, classifies = made(kind)
    low, high = (1, 2) if kind in kinds.WITH_GAPS else (0, 3)
    points = GRID[(GRID.sum(axis=1) >= 3) & (GRID.min(axis=1) >= low) & (GRID.max(axis=1) <= high)]
    values = np.asarray(as_predictor(predictor).predict(points))
    q = values.shape[1]
    worth = np.linspace(1.0, -1.0, q) if q > 1 else np.ones(1)
    model = tool.new()
    x = tool.variables(model, (1, FEATURES), low, high, integer=True)
    y = tool.variables(model, (1, q), *((0, 1) if classifies else (-np.inf, np.inf)))
    xs, ys = ([tool.at(group, (0, k)) for k in range(size)] for group, size in ((x, FEATURES), (y, q)))
    tool.row(model, [(1.0, one) for one in xs], 3.0, np.inf)
    asked = "classification" if classifies else "regression"
    constr = dt.add_predictor_constr(model, predictor, x, y, output_type=asked)
    tool.minimise(model, [*zip(PRICE.tolist(), xs, strict=True), *zip(worth.tolist(), ys, strict=True)])
    result = dt.solve(model, time_limit=60.0, log=False)
    if classifies:
        values = (values >= _centre(predictor)) if q == 1 else np.eye(q)[values.argmax(axis=1)]
    assert result.objective == pytest.approx(float(np.min(points @ PRICE + values @ worth)), abs=1e-5)
    assert np.max(constr.get_error()) <= 1e-6
    assert numbers(constr.input_values).round(6).sum() >= 3


def _centre(predictor):
    """Of a classifier's single column: a probability, a vote, or a decision."""
    last = predictor[-1] if hasattr(predictor, "steps") else predictor
    is_share = hasattr(last, "predict_proba") or getattr(last, "voting", "") == "hard"
    return 0.5 if is_share else 0.0
