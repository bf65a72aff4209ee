"""Small predictors of one made-up table, trained once each.

Features: price in [0, 1], effort in [0, 1], age (a fact). Targets are smooth, and two classes.
"""

from functools import cache

import numpy as np
import pandas as pd
import torch

rng = np.random.default_rng(0)
FRAME = pd.DataFrame(rng.uniform(size=(80, 3)), columns=["price", "effort", "age"])
X = FRAME.to_numpy()
Y = X[:, 0] * (1.0 - X[:, 0]) * 4.0 + 0.5 * X[:, 1] - 0.2 * X[:, 2]
LABEL = (Y > 0.9).astype(int)


def limits(n):
    """Of n samples: price and effort are decisions, and age is a fact of each."""
    lower, upper = np.zeros((n, 3)), np.ones((n, 3))
    lower[:, 2] = upper[:, 2] = np.linspace(0.2, 0.8, n)
    return lower, upper


@cache
def fitted(kind, frame=False, **options):
    """An estimator of scikit-learn, XGBoost or LightGBM by its class's name."""
    made = _estimator(kind)(**options)
    return made.fit(FRAME if frame else X, LABEL if "Classifier" in kind or "Logistic" in kind else Y)


@cache
def pipeline():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), mlp("MLPRegressor", fit=False)).fit(FRAME, Y)


@cache
def by_region():
    """Demand by region and price, the regions by name."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    slope = {"east": 1.0, "north": 1.5, "west": 2.0}
    frame = pd.DataFrame({"region": [*slope] * 20, "price": X[:60, 0], "peak": LABEL[:60]})
    features = make_column_transformer(
        (OneHotEncoder(drop="first"), ["region"]), (StandardScaler(), ["price"]), ("passthrough", ["peak"])
    )
    return make_pipeline(features, LinearRegression()).fit(frame, 3 - frame.price * frame.region.map(slope))


def mlp(kind, fit=True):
    options = {"hidden_layer_sizes": (5,), "max_iter": 40, "random_state": 0}
    return fitted(kind, **options) if fit else _estimator(kind)(**options)


def _estimator(kind):
    import lightgbm
    import xgboost
    from sklearn import ensemble, linear_model, neural_network, tree

    places = (linear_model, neural_network, tree, ensemble, xgboost, lightgbm)
    return next(getattr(place, kind) for place in places if hasattr(place, kind))


@cache
def network(outputs=1, inputs=3):
    """A float32 Sequential."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(inputs, 6), torch.nn.ReLU(), torch.nn.Linear(6, outputs))


@cache
def keras_network():
    import keras

    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(5, "relu"), keras.layers.Dense(1)])


@cache
def onnx_network():
    from onnx import helper, numpy_helper

    weights = [numpy_helper.from_array(w.detach().numpy(), name) for name, w in network().named_parameters()]
    dense = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 1}  # all said, and names: OMLT asks for them
    nodes = [
        helper.make_node("Gemm", ["x", "0.weight", "0.bias"], ["a"], "first", **dense),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("Gemm", ["b", "2.weight", "2.bias"], ["y"], "second", **dense),
    ]
    floats = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "net", [floats("x", 1, [None, 3])], [floats("y", 1, [None, 1])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
