"""Programs of predictors that are no torch modules of their owner's: they come with the torch they run on."""

import os
import warnings

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import pytest
import torch
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetRegressor
from torch import nn

from dovetail.core.predictor import as_predictor
from dovetail.networks.arithmetic import FLOAT32, FLOAT64
from tests.networks.graph_values import values
from tests.predictors.onnx.exported import exported
from tests.predictors.torch.networks import FEATURES, network

X = np.random.default_rng(0).normal(size=(40, FEATURES))


def assert_true_program(given, arithmetic):
    predictor = as_predictor(given)
    program = predictor.describe(X[:16]).program(FEATURES)
    own = predictor.predict(X)
    assert program.arithmetic is arithmetic
    assert np.all(np.abs(program.values(X) - own) <= program.errors(arithmetic, X, X)[2])
    np.testing.assert_allclose(values(program.graph(), X), own, atol=1e-5)


@pytest.mark.parametrize("name", ["conv2d", "residual", "GELU", "softmax", "layer_norm", "lstm", "attention"])
def test_onnx(name):
    assert_true_program(exported(network(name), (FEATURES,), torch.float32), FLOAT32)


def test_scikit_learn():
    """Probabilities of three classes, taken as numbers: a softmax is no function of single values."""
    features = np.random.default_rng(1).normal(size=(200, FEATURES))
    classes = (features[:, 0] > 0).astype(int) + (features[:, 1] > 0)
    estimator = make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=(8,), max_iter=20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(features, classes)
    assert_true_program(estimator, FLOAT64)


def test_skorch():
    net = NeuralNetRegressor(nn.Sequential(nn.Linear(FEATURES, 8), nn.GELU(), nn.Linear(8, 1)))
    assert_true_program(net.initialize(), FLOAT32)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("kind", ["gelu", "lstm", "conv"])
def test_keras(kind):
    layers = keras.layers
    inner = {
        "gelu": [layers.Dense(8, activation="gelu")],
        "lstm": [layers.Reshape((3, 2)), layers.LSTM(4)],
        "conv": [layers.Reshape((6, 1)), layers.Conv1D(3, 3, activation="relu"), layers.Flatten()],
    }
    assert_true_program(keras.Sequential([layers.Input((FEATURES,)), *inner[kind], layers.Dense(1)]), FLOAT32)
