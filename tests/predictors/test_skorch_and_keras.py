"""skorch nets and Keras models, taken as the torch modules they are; Keras on other backends."""

import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import pytest
import torch
from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier, NeuralNetRegressor
from torch import nn

import dovetail as dt
from dovetail.core.predictor import as_predictor
from dovetail.networks.arithmetic import FLOAT32, FORMATS
from dovetail.networks.layers import evaluate
from tests.conformance.nets import FEATURES as D
from tests.conformance.predictor_kinds import QUIET, batch_norm, dense, functional, sequential
from tests.conftest import FULL

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

X = np.random.default_rng(0).uniform(-1, 1, (20, D))
inf = np.inf
ROOT = Path(__file__).parents[2]


def tied(predictor, outputs=1, **options):
    limits = {"lower": [-1.0] * D + [-inf] * outputs, "upper": [1.0] * D + [inf] * outputs}
    problem = dt.Problem(dt.Mip(cost=[0.0] * D + [1.0] * outputs, **limits))
    return problem, problem.add_predictor(predictor, range(D), range(D, D + outputs), **options)


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


Y32 = X[:, :1].astype(np.float32)
LABELS = (X[:, 0] > 0).astype(np.int64)


class TestSkorch:
    def test_a_regressor(self):
        net = NeuralNetRegressor(module(), **QUIET).fit(X.astype(np.float32), Y32)
        _, block = tied(net)
        assert np.array_equal(block.predictor.predict(X), net.predict(X.astype(np.float32)))
        assert len(block.description.layers()) == 3

    def test_a_classifier_gives_the_module_s_own_logits(self):
        net = NeuralNetBinaryClassifier(Flat(), **QUIET).fit(X.astype(np.float32), LABELS.astype(np.float32))
        _, block = tied(net, output_type="classification")
        assert block.threshold == 0.0
        assert np.array_equal(
            block.decode(block.predictor.predict(X))[:, 0], net.predict(X.astype(np.float32))
        )

    def test_several_classes(self):
        net = NeuralNetClassifier(module(3), criterion=nn.CrossEntropyLoss, **QUIET)
        net.fit(X.astype(np.float32), np.digitize(X[:, 0], [-0.3, 0.3]))
        _, block = tied(net, 3, output_type="classification")
        said = block.decode(block.predictor.predict(X)).argmax(axis=1)
        assert np.array_equal(said, net.predict(X.astype(np.float32)))

    def test_training_again_puts_a_new_module_in_its_place(self):
        net = NeuralNetRegressor(nn.Linear, module__in_features=D, module__out_features=1, **QUIET)
        predictor = as_predictor(net.fit(X.astype(np.float32), Y32))
        before = net.module_
        net.fit(X.astype(np.float32), 9.0 * Y32)
        assert net.module_ is not before
        assert np.array_equal(predictor.predict(X), net.predict(X.astype(np.float32)))
        copied = predictor.snapshot("cpu")(torch.tensor(X)).numpy()
        assert np.allclose(copied, predictor.predict(X), rtol=0, atol=2e-6)

    def test_one_that_holds_no_module_yet(self):
        with pytest.raises(dt.PredictorError, match="NeuralNetRegressor holds no module yet; call its fit"):
            as_predictor(NeuralNetRegressor(module()))


# --- Keras ------------------------------------------------------------------------------------------


class TestKerasClasses:
    def test_a_sigmoid_is_cut_at_a_half_and_a_logit_at_zero(self):
        for activation, threshold in (("sigmoid", 0.5), (None, 0.0)):
            model = sequential(dense(6, activation="tanh"), dense(1, activation=activation))
            _, block = tied(model, output_type="classification")
            assert block.threshold == threshold
            assert block.description.ends_in_sigmoid == (activation == "sigmoid")

    def test_a_softmax_is_one_hot(self):
        model = sequential(dense(6, activation="tanh"), dense(3, activation="softmax"))
        _, block = tied(model, 3, output_type="classification")
        said = block.decode(block.predictor.predict(X))
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
            as_predictor(batch_norm()).layers()
        with pytest.raises(dt.UnsupportedError, match="'elu'"):
            as_predictor(sequential(dense(2, activation="elu"))).layers()
        with pytest.raises(dt.UnsupportedError, match="Functional cannot be written out"):
            as_predictor(functional()).layers()

    def test_false_friends_are_not_taken_for_keras_own(self):
        def relu(x):
            return keras.ops.relu(x) + 1.0

        class Dropout(keras.layers.Layer):
            def call(self, x):
                return x + 1.0

        class Dense(keras.layers.Dense):
            def call(self, inputs, training=None):
                return super().call(inputs) + 1.0

        patched = dense(2)
        patched.call = lambda inputs: inputs
        hooked = sequential(dense(2))
        hooked.register_forward_hook(lambda module, args, values: values + 1.0)
        odd = [
            sequential(dense(2, activation=relu)),
            sequential(dense(2), Dropout()),
            sequential(Dense(2)),
            sequential(patched),
            hooked,
            type("Own", (keras.Sequential,), {})([keras.layers.Input((D,)), dense(2)]),
        ]
        for model in odd:
            with pytest.raises(dt.UnsupportedError, match="cannot be written out"):
                as_predictor(model).layers()

    def test_the_arithmetic_is_that_of_its_coarsest_layer(self):
        assert as_predictor(sequential(dense(2))).program(D).arithmetic is FLOAT32
        half = sequential(dense(2, dtype="float16"), dense(1))
        assert as_predictor(half).program(D).arithmetic is FORMATS["float16"]


def sequential_inner():
    return keras.Sequential([keras.layers.Input((6,)), dense(2, use_bias=False)])


def test_a_model_without_weights():
    with pytest.raises(dt.PredictorError, match="has no weights yet; run a batch through it"):
        as_predictor(keras.Sequential([dense(3)]))


ELSEWHERE = """
import os, sys
from unittest.mock import MagicMock

class Nothing(MagicMock):
    __path__, __spec__, __version__ = [], None, "0"

for name in NAMES:  # Keras's numpy backend, which can only predict, borrows a Fourier transform from jax
    sys.modules[name] = Nothing(name=name)
os.environ["KERAS_BACKEND"] = "numpy"
import keras
import numpy as np
import torch
import dovetail as dt
from dovetail.networks.layers import evaluate
from dovetail.core.predictor import as_predictor

assert keras.backend.backend() == "numpy"
dense, rng = keras.layers.Dense, np.random.default_rng(0)
X = rng.uniform(-1, 1, (20, 3))
keras.utils.set_random_seed(0)

def sequential(*layers):
    return keras.Sequential([keras.layers.Input((3,)), *layers])

dropout = keras.layers.Dropout(0.5)
known = sequential(dense(6, activation="relu"), dropout, dense(2, activation="tanh"), dense(1))
said = as_predictor(known)
assert np.array_equal(said.predict(X), known.predict(X, verbose=0).astype(float))
assert said.predict(X[:0]).shape == (0, 1)
about = said.describe(X)
assert (about.name, about.dtypes, about.has_float64_copy) == ("Sequential", ("float32",), True)
assert about.program(3).arithmetic is None
assert np.allclose(evaluate(about.layers(), X), said.predict(X), atol=1e-5)
copy = said.snapshot("cpu")
assert np.allclose(copy(torch.tensor(X)).detach().numpy(), said.predict(X), atol=1e-5)
assert said.describe(X[:, :2]).features == 3

own = sequential(keras.layers.Lambda(lambda x: x * x), dense(1))
other = as_predictor(own)
assert other.describe(X).layers is None and not other.describe(X).has_float64_copy
u = torch.tensor(X, requires_grad=True)
(slope,) = torch.autograd.grad(other.snapshot("cpu")(u).sum(), u)
assert np.allclose(slope, 2.0 * X * own.layers[-1].get_weights()[0][:, 0], atol=1e-3)

grid = np.array(np.meshgrid(*[range(-1, 2)] * 3)).reshape(3, -1).T.astype(float)
for model in (known, own):
    whole = [True, True, True, False]
    mip = dt.Mip([0.1, 0.2, 0.3, 1.0], lower=[-1, -1, -1, -9], upper=[1, 1, 1, 9], integer=whole)
    problem = dt.Problem(mip)
    problem.add_predictor(model, [0, 1, 2], [3])
    result = dt.solve(problem, log=False)
    best = np.min(grid @ [0.1, 0.2, 0.3] + model.predict(grid, verbose=0)[:, 0])
    assert abs(result.objective - best) < 1e-5, (result.objective, best)

from tests.tools import TOOLS

best = np.min(grid @ [0.1, 0.2, 0.3] + known.predict(grid, verbose=0)[:, 0])
for tool in TOOLS:
    model = tool.new()
    x = tool.variables(model, (1, 3), -1, 1, integer=True)
    y = tool.variables(model, (1, 1), -np.inf, np.inf)
    dt.add_predictor_constr(model, known, x, y)
    columns = [*(tool.at(x, (0, k)) for k in range(3)), tool.at(y, (0, 0))]
    tool.minimise(model, [*zip([0.1, 0.2, 0.3, 1.0], columns, strict=True)])
    found = dt.solve(model, log=False).objective
    assert abs(found - best) < 1e-5, (tool, found, best)

try:
    as_predictor(keras.Sequential([dense(3)]))
except dt.PredictorError as reason:
    assert "has no weights yet" in str(reason)
else:
    raise AssertionError
print("as it should be")
"""
JAX = (
    "jax", "jax.numpy", "jax.experimental", "jax.experimental.sparse", "jax.scipy", "jax.tree_util", "jax.nn",
    "jax.lax", "jax.random", "jax.sharding", "jax.export", "jax.scipy.special", "jax.image", "jax.dlpack",
    "jax.experimental.pallas", "jax.experimental.pallas.ops", "jax.experimental.pallas.ops.tpu",
    "jax.experimental.pallas.ops.tpu.splash_attention", "jax.experimental.mesh_utils", "jaxlib",
)  # fmt: skip
"""What Keras imports of jax, of which nothing is used here."""


@pytest.mark.skipif(not FULL, reason="volume: another process, with another backend")
def test_a_model_on_another_backend(tmp_path):
    """In a process of its own: Keras has one backend for all of it. In a model of every tool, too."""
    program = tmp_path / "elsewhere.py"
    program.write_text(ELSEWHERE.replace("NAMES", repr(JAX)))
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, program],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert "as it should be" in done.stdout, done.stderr


def kerass(name, **members):
    """An object of a class that looks like one of Keras's, and is no torch module."""
    call = FunctionType((lambda self, x: x).__code__, {"__name__": "keras.src.layers"}, "call")
    base = type("Layer", (), {"__module__": "keras.src.layers.layer", "call": call})
    made = type(name, (base,), {"__module__": "keras.src.layers"})()
    vars(made).update(members)
    return made


def test_a_sequence_of_another_backend_is_copied_and_others_are_functions():
    rng = np.random.default_rng(0)
    first, last = [rng.normal(size=(3, 5)), rng.normal(size=5)], [rng.normal(size=(5, 1))]

    def predict(rows, **options):
        return (np.maximum(rows @ first[0] + first[1], 0.0) @ last[0]).astype(np.float32)

    layers = [
        kerass("Dense", get_weights=lambda: first, activation=keras.activations.relu),
        kerass("Dropout"),
        kerass("Dense", get_weights=lambda: last, activation=keras.activations.linear),
    ]
    model, rows = kerass("Sequential", layers=layers, predict=predict), X[:, :3]
    predictor = as_predictor(model)
    about = predictor.describe(rows)
    assert (about.dtypes, about.has_float64_copy) == (("float32",), True)
    assert about.program(3).arithmetic is None
    assert np.array_equal(predictor.predict(rows), predict(rows).astype(float))
    assert np.allclose(evaluate(about.layers(), rows), predictor.predict(rows), atol=1e-5)
    layers.append(kerass("Lambda"))
    about = predictor.describe(rows)
    assert about.layers is None
    assert not about.has_float64_copy
    u = torch.tensor(rows, requires_grad=True)
    (slope,) = torch.autograd.grad(predictor.snapshot("cpu")(u).sum(), u)
    exact = ((rows @ first[0] + first[1] > 0) * last[0][:, 0]) @ first[0].T
    assert np.median(np.abs(slope.numpy() - exact)) < 1e-3
    layers.pop()
    layers[2].activation = keras.activations.tanh  # which is not what predict does
    with pytest.raises(dt.PredictorError, match="does not compute the function of its layers"):
        predictor.describe(rows)


def test_a_layer_on_another_backend_has_no_predict():
    elsewhere = type("Layer", (), {"__module__": "keras.src.layers.layer", "__call__": lambda self, x: x})
    with pytest.raises(dt.PredictorError, match="a Keras layer on another backend than torch"):
        as_predictor(elsewhere())
