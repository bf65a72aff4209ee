"""skorch nets and Keras models, taken as the torch modules they are."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import pytest
import torch
from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier, NeuralNetRegressor
from torch import nn

import dovetail as dt
from dovetail.core.layers import evaluate
from dovetail.core.predictor import as_predictor

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

D = 4
X = np.random.default_rng(0).uniform(-1, 1, (20, D))
inf = np.inf


def tied(predictor, outputs=1, **options):
    limits = {"lower": [-1.0] * D + [-inf] * outputs, "upper": [1.0] * D + [inf] * outputs}
    problem = dt.Problem(dt.Mip(cost=[0.0] * D + [1.0] * outputs, **limits))
    return problem, problem.add_predictor(predictor, range(D), range(D, D + outputs), **options)


def assert_gradients(predictor):
    """The copy says the same, and its slope is that of a float64 function."""
    predictor.examine(X)
    forward = predictor.snapshot("cpu")
    u = torch.tensor(X, requires_grad=True)
    values = forward(u)
    assert values.dtype == torch.float64
    error = np.max(np.abs(values.detach().numpy() - predictor.predict(X)))
    assert error <= 2e-6
    (slope,) = torch.autograd.grad(values.sum(), u)
    for j in range(D):
        step = 1e-6 * torch.eye(D, dtype=torch.float64)[j]
        with torch.no_grad():
            rise = (forward(u + step) - forward(u - step)).sum(dim=1) / 2e-6
        assert torch.allclose(slope[:, j], rise, atol=1e-7)  # float32 would be off by 0.1


# --- skorch -----------------------------------------------------------------------------------------


def module(outputs=1):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(D, 6), nn.Dropout(0.5), nn.Tanh(), nn.Linear(6, outputs))


class Flat(nn.Module):
    """One logit per row, without an axis of its own."""

    def __init__(self):
        super().__init__()
        self.body = module()

    def forward(self, x):
        return self.body(x).squeeze(1)


QUIET = {"max_epochs": 1, "verbose": 0, "train_split": None}
Y32 = X[:, :1].astype(np.float32)
LABELS = (X[:, 0] > 0).astype(np.int64)


class TestSkorch:
    def test_a_regressor(self):
        net = NeuralNetRegressor(module(), **QUIET).fit(X.astype(np.float32), Y32)
        _, block = tied(net)
        assert np.array_equal(block.predictor.predict(X), net.predict(X.astype(np.float32)))
        assert not block.predictor.exact
        assert_gradients(block.predictor)
        assert len(block.predictor.layers()) == 3

    def test_a_classifier_gives_the_module_s_own_logits(self):
        net = NeuralNetBinaryClassifier(Flat(), **QUIET).fit(X.astype(np.float32), LABELS.astype(np.float32))
        _, block = tied(net, output_type="classification")
        assert block.threshold == 0.0
        assert np.array_equal(
            block.outcome(block.predictor.predict(X))[:, 0], net.predict(X.astype(np.float32))
        )

    def test_several_classes(self):
        net = NeuralNetClassifier(module(3), criterion=nn.CrossEntropyLoss, **QUIET)
        net.fit(X.astype(np.float32), np.digitize(X[:, 0], [-0.3, 0.3]))
        _, block = tied(net, 3, output_type="classification")
        said = block.outcome(block.predictor.predict(X)).argmax(axis=1)
        assert np.array_equal(said, net.predict(X.astype(np.float32)))

    def test_training_again_puts_a_new_module_in_its_place(self):
        net = NeuralNetRegressor(nn.Linear, module__in_features=D, module__out_features=1, **QUIET)
        predictor = as_predictor(net.fit(X.astype(np.float32), Y32))
        before = net.module_
        net.fit(X.astype(np.float32), 9.0 * Y32)
        assert net.module_ is not before
        assert np.array_equal(predictor.predict(X), net.predict(X.astype(np.float32)))
        assert_gradients(predictor)

    def test_one_that_holds_no_module_yet(self):
        with pytest.raises(dt.PredictorError, match="NeuralNetRegressor holds no module yet; call its fit"):
            as_predictor(NeuralNetRegressor(module()))


# --- Keras ------------------------------------------------------------------------------------------


class Scaled(keras.layers.Layer):
    """A layer of the user's own, registered nowhere."""

    def __init__(self):
        super().__init__()
        self.inner = keras.layers.Dense(3, activation="tanh")

    def call(self, x):
        return 2.0 * self.inner(x)


class Subclassed(keras.Model):
    """A model that cannot be copied through its configuration, and that trains unless it is told not to."""

    def __init__(self, sizes):
        super().__init__()
        self.body = keras.layers.Dense(len(sizes), activation="gelu")
        self.drop, self.head = keras.layers.Dropout(0.5), keras.layers.Dense(1)

    def call(self, x, training=True):
        return self.head(self.drop(self.body(x), training=training))


def sequential(*layers):
    return keras.Sequential([keras.layers.Input((D,)), *layers])


def functional():
    into = keras.Input((D,))
    hidden = keras.layers.Dense(D, activation="elu")(into)
    return keras.Model(into, keras.layers.Dense(1)(keras.layers.Add()([into, hidden]) + keras.ops.sin(into)))


def subclassed():
    model = Subclassed(np.zeros(5))
    model(X)
    return model


def normalised():
    layer = keras.layers.Normalization()
    layer.adapt(3.0 * X + 1.0)
    return sequential(layer, keras.layers.Dense(1))


def recurrent(kind):
    return sequential(keras.layers.Reshape((D, 1)), kind(5), keras.layers.Dense(1))


dense = keras.layers.Dense
MODELS = {
    "relu": lambda: sequential(dense(8, activation="relu"), dense(1)),
    "batch norm, dropout": lambda: sequential(
        dense(8, activation="tanh"), keras.layers.BatchNormalization(), keras.layers.Dropout(0.5), dense(1)
    ),
    "lstm": lambda: recurrent(keras.layers.LSTM),
    "gru": lambda: recurrent(keras.layers.GRU),
    "convolution": lambda: sequential(
        keras.layers.Reshape((D, 1)),
        keras.layers.Conv1D(3, 2, activation="swish"),
        keras.layers.Flatten(),
        keras.layers.LayerNormalization(),
        dense(1),
    ),
    "functional": functional,
    "own layer": lambda: sequential(Scaled(), dense(1)),
    "subclass": subclassed,
    "normalised": normalised,
    "lambda": lambda: sequential(keras.layers.Lambda(lambda x: x * x), dense(1)),
    "float64 policy": lambda: sequential(
        dense(3, activation="tanh", dtype="float64"), dense(1, dtype="float64")
    ),
}


@pytest.mark.parametrize("kind", MODELS)
class TestKerasModels:
    def test_the_answer_is_keras_s_own_and_gradients_are_float64(self, kind):
        keras.utils.set_random_seed(1)
        model = MODELS[kind]()
        _, block = tied(model)
        assert np.array_equal(block.predictor.predict(X), model.predict(X, verbose=0).astype(np.float64))
        assert not block.predictor.exact
        assert block.predictor.doubles
        assert_gradients(block.predictor)

    def test_the_owner_gets_it_back_as_it_was(self, kind):
        keras.utils.set_random_seed(1)
        model = MODELS[kind]()
        before = [weight.copy() for weight in model.get_weights()]
        kept = [(p.dtype, p.requires_grad) for p in model.parameters()], [p.training for p in model.modules()]
        problem, _ = tied(model)
        dt.solve(problem, dt.DualDecomposition(iterations=2), log=False)
        assert all(map(np.array_equal, before, model.get_weights()))
        assert kept == (
            [(p.dtype, p.requires_grad) for p in model.parameters()],
            [p.training for p in model.modules()],
        )


class TestKerasClasses:
    def test_a_sigmoid_is_cut_at_a_half_and_a_logit_at_zero(self):
        for activation, threshold in (("sigmoid", 0.5), (None, 0.0)):
            model = sequential(dense(6, activation="tanh"), dense(1, activation=activation))
            _, block = tied(model, output_type="classification")
            assert block.threshold == threshold
            assert block.traits.ends_in_sigmoid == (activation == "sigmoid")

    def test_a_softmax_is_one_hot(self):
        model = sequential(dense(6, activation="tanh"), dense(3, activation="softmax"))
        _, block = tied(model, 3, output_type="classification")
        said = block.outcome(block.predictor.predict(X))
        assert np.array_equal(said.argmax(axis=1), model.predict(X, verbose=0).argmax(axis=1))


class TestKerasLayers:
    def test_a_sequence_of_dense_layers_is_written_out(self):
        model = sequential(
            dense(6, activation="relu"),
            keras.layers.Dropout(0.5),
            sequential_inner(),
            keras.layers.Activation("sigmoid"),
        )
        layers = as_predictor(model).layers()
        assert np.allclose(evaluate(layers, X), model.predict(X, verbose=0), atol=1e-6)

    def test_what_cannot_be_written_is_named(self):
        with pytest.raises(dt.UnsupportedError, match="BatchNormalization"):
            as_predictor(MODELS["batch norm, dropout"]()).layers()
        with pytest.raises(dt.UnsupportedError, match="'elu'"):
            as_predictor(sequential(dense(2, activation="elu"))).layers()
        with pytest.raises(dt.UnsupportedError, match="Functional cannot be written out"):
            as_predictor(functional()).layers()

    def test_a_small_network_is_solved_with_a_proof(self):
        keras.utils.set_random_seed(2)
        model = sequential(dense(6, activation="relu"), dense(1))
        problem, _ = tied(model)
        result = dt.solve(problem, log=False, time_limit=20)
        corners = np.random.default_rng(1).uniform(-1, 1, (20_000, D))
        corners[:10_000] = np.sign(corners[:10_000])
        assert result.objective <= model.predict(corners, verbose=0).min() + 1e-5
        assert result.status == "optimal"


def sequential_inner():
    return keras.Sequential([keras.layers.Input((6,)), dense(2, use_bias=False)])


def test_training_again_is_seen():
    model = sequential(dense(3, activation="tanh"), dense(1))
    predictor = as_predictor(model)
    held = predictor.snapshot("cpu")
    before = held(torch.tensor(X))
    model.compile("sgd", "mse")
    model.fit(X, 9.0 * X[:, :1], verbose=0)
    assert torch.equal(held(torch.tensor(X)), before)
    assert_gradients(predictor)


def test_a_model_without_weights():
    with pytest.raises(dt.PredictorError, match="has no weights yet; run a batch through it"):
        as_predictor(keras.Sequential([dense(3)]))


def test_a_model_on_another_backend(monkeypatch):
    elsewhere = type("Layer", (), {"__module__": "keras.src.layers.layer", "__call__": lambda self, x: x})
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(dt.PredictorError, match="on the jax backend.*KERAS_BACKEND=torch"):
        as_predictor(elsewhere())
