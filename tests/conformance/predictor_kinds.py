"""Predictors of every kind the shared suite runs over, each with the words of its own library.

The first ones are *twins*: one small network with the same weights, written once in every library.
"""

from __future__ import annotations

import copy
import functools
import io
import os
import warnings

os.environ.setdefault("KERAS_BACKEND", "torch")

import joblib
import keras
import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from torch import nn

import dovetail as dt
from dovetail.core.description import Description
from dovetail.core.predictor import as_predictor
from dovetail.testing import PredictorCase
from dovetail.testing.predictor_suite import DOUBLE, SINGLE
from tests.conformance import nets
from tests.conftest import FULL
from tests.predictors import estimators
from tests.predictors.scikit_learn import kinds

onnxruntime.set_default_logger_severity(4)


class Kind(PredictorCase):
    """A case with the features of the suites' networks, whose layers are known unless it says otherwise."""

    layers, sigmoid = True, False

    def __init__(self, label, *, called="", features=nets.FEATURES, **fields):
        super().__init__(label, called=called, features=features, **fields)


def bytes_of(tensor):
    return tensor.detach().double().cpu().numpy().tobytes()


def numbers_of(module):
    """Weights, gradients, dtypes, flags and modes of a torch module."""
    parameters = [
        (p.dtype, p.requires_grad, bytes_of(p), p.grad is None or bytes_of(p.grad))
        for p in module.parameters()
    ]
    buffers = [(b.dtype, bytes_of(b)) for b in module.buffers()]
    return [parameters, buffers, [part.training for part in module.modules()], torch.get_default_dtype()]


def scale(module):
    for parameter in module.parameters():
        parameter.data.mul_(1.5)  # .data leaves no trace that torch could notice


class Torch(Kind):
    """A module in training mode, with gradients of its own."""

    def __init__(self, label, build, dtype=torch.float32, **facts):
        super().__init__(label, **facts)
        self.build, self.dtype = build, dtype

    def make(self, folder):
        torch.manual_seed(0)
        net = self.build()
        sum(p.sum() for p in net.parameters()).backward()
        return net

    def answer(self, owner, X):
        with torch.no_grad():
            return copy.deepcopy(owner).eval()(torch.tensor(X, dtype=self.dtype)).double().numpy()

    def state(self, owner):
        return numbers_of(owner)

    def change(self, owner):
        scale(owner)


class Skorch(Torch):
    """The module in a net that was trained for one epoch."""

    def make(self, folder):
        torch.manual_seed(0)
        return self.build()

    def answer(self, owner, X):
        return super().answer(owner.module_, X)

    def state(self, owner):
        return numbers_of(owner.module_)

    def change(self, owner):
        scale(owner.module_)


class Keras(Kind):
    """A built model on the torch backend."""

    device = "cuda:0" if torch.cuda.is_available() else "cpu"  # where Keras puts its models

    def __init__(self, label, build, **facts):
        super().__init__(label, **{"called": "Sequential", "layers": False, **facts})
        self.build = build

    def make(self, folder):
        keras.utils.set_random_seed(1)
        return self.build()

    def answer(self, owner, X):
        return owner.predict(X, verbose=0).astype(np.float64)

    def state(self, owner):
        return [numbers_of(owner), [weight.tobytes() for weight in owner.get_weights()]]

    def change(self, owner):
        owner.set_weights([1.5 * weight for weight in owner.get_weights()])


class Estimator(Kind):
    """A trained scikit-learn estimator or pipeline."""

    is_float64, close = True, DOUBLE
    sigmoid = None

    def __init__(self, label, build, **facts):
        super().__init__(label, **facts)
        self.build = build

    def make(self, folder):
        return copy.deepcopy(self.build())

    def answer(self, owner, X):
        return estimators.own_answer(owner, X)

    def state(self, owner):
        return [joblib.hash(owner)]

    def change(self, owner):
        estimators.trained_again(owner)


class LazyEstimator(Estimator):
    """One of many, with its own number of features; trained when it is first asked for."""

    def __init__(self, label):
        self.label = label

    def __getattr__(self, name):
        if name not in ("features", "outputs", "called"):
            raise AttributeError(name)
        self.features = self.points().shape[1]
        self.outputs = self.answer(self.build(), self.points()).shape[1]
        self.called = type(self.build()).__name__
        return getattr(self, name)


class RandomEstimator(LazyEstimator):
    """Any of the common ones."""

    def __init__(self, seed):
        super().__init__(f"scikit-learn-{seed}")
        self.seed = seed

    def build(self):
        return estimators.trained(self.seed)[0]

    def points(self):
        return estimators.trained(self.seed)[1]

    @property
    def layers(self):
        return not estimators.gives_shares(self.build())


class EstimatorKind(LazyEstimator):
    """One of every kind that is written as a network."""

    def __init__(self, kind):
        super().__init__(f"scikit-learn {kind}")
        self.kind = kind

    def build(self):
        return kinds.trained(self.kind)[0]

    def points(self):
        return kinds.trained(self.kind)[1][:9]

    def answer(self, owner, X):
        return kinds.own_answer(owner, kinds.as_given(self.kind, X))

    def change(self, owner):
        kinds.train_again(self.kind, owner)

    @functools.cached_property
    def layers(self):
        return as_predictor(self.build()).describe(self.points()).layers_if_known() is not None

    @property
    def whole(self):
        return (kinds.FEATURES - 1,) if self.kind in (*kinds.CATEGORIES, *kinds.STRINGS) else ()


class Ensembled(Kind):
    """The least of three networks."""

    def make(self, folder):
        torch.manual_seed(0)
        return dt.Ensemble([nets.make("mlp", 2, torch.float64) for _ in range(3)], "min")

    def answer(self, owner, X):
        with torch.no_grad():
            said = [member.module.eval()(torch.tensor(X)).numpy() for member in owner.members]
        return np.min(said, axis=0)

    def state(self, owner):
        return [numbers_of(member.module)[:2] for member in owner.members]

    def change(self, owner):
        for member in owner.members:
            scale(member.module)


class Onnx(Kind):
    """A model in memory, read once."""

    follows, identical, sigmoid = False, False, False

    def __init__(self, label, build, dtype=np.float32, **facts):
        super().__init__(label, **facts)
        self.build, self.dtype = build, dtype

    def make(self, folder):
        return onnx.load_from_string(self.build())

    def answer(self, owner, X):
        session = onnxruntime.InferenceSession(self.content(owner), providers=["CPUExecutionProvider"])
        (place,) = session.get_inputs()
        batches = X[:, None] if place.shape[0] == 1 else [X]
        said = [session.run(None, {place.name: batch.astype(self.dtype)})[0] for batch in batches]
        return np.concatenate(said).astype(np.float64)

    def state(self, owner):
        return [self.content(owner)]

    def content(self, owner):
        return owner.SerializeToString(deterministic=True)

    def change(self, owner):
        for tensor in owner.graph.initializer:
            weights = numpy_helper.to_array(tensor)
            if weights.dtype.kind == "f":
                tensor.CopyFrom(numpy_helper.from_array(1.5 * weights, tensor.name))


class OnnxFile(Onnx):
    """The path of a model."""

    def make(self, folder):
        path = folder / self.called
        path.write_bytes(self.build())
        return str(path)

    def content(self, owner):
        with open(owner, "rb") as file:
            return file.read()

    def change(self, owner):
        model = onnx.load(owner)
        super().change(model)
        onnx.save(model, owner)


class Function(Kind):
    """A numpy function of the user's own, here a method of an object with weights."""

    is_float64, close, freezes, layers, smooth, sigmoid = True, DOUBLE, False, False, False, None

    def make(self, folder):
        return Recipe().cook

    def answer(self, owner, X):
        return owner(X)

    def state(self, owner):
        return [weights.tobytes() for weights in owner.__self__.weights]

    def change(self, owner):
        owner.__self__.weights[-1] += 1.0


class Registered(Function):
    """An object of a class that dovetail was taught: by a function, by a module, by a whole predictor."""

    def __init__(self, label, build, **facts):
        super().__init__(label, **facts)
        self.build = build

    def make(self, folder):
        dt.register_predictor(Recipe, self.build)
        return Recipe()

    def answer(self, owner, X):
        return owner.cook(X)

    def state(self, owner):
        return super().state(owner.cook)

    def change(self, owner):
        super().change(owner.cook)


# --- the twins: y = V relu(W x + b) + c --------------------------------------------------------------

TWIN, HIDDEN = 3, 6
_rng = np.random.default_rng(4)
W, b, V, c = (_rng.normal(size=shape) for shape in ((HIDDEN, TWIN), HIDDEN, (1, HIDDEN), 1))


def twin(X):
    """What all the twins compute, in float64."""
    return np.maximum(np.asarray(X) @ W.T + b, 0.0) @ V.T + c


class Recipe:
    """A class dovetail knows nothing of."""

    def __init__(self):
        self.weights = [W.copy(), b.copy(), V.copy(), c.copy()]
        self.net = module_of(*map(torch.from_numpy, self.weights))  # shares their memory

    def cook(self, X):
        W, b, V, c = self.weights
        return np.maximum(X @ W.T + b, 0.0) @ V.T + c


class Whole:
    """A full predictor of the user's own for a recipe."""

    def __init__(self, recipe):
        self.recipe = recipe

    def predict(self, X):
        return self.recipe.cook(X)

    def snapshot(self, device):
        W, b, V, c = (torch.tensor(weights, device=device) for weights in self.recipe.weights)
        return lambda u: torch.relu(u @ W.T + b) @ V.T + c

    def describe(self, X):
        return Description("whole")


def module_of(W, b, V, c):
    """A module that holds these tensors."""
    first, last = nn.Linear(TWIN, HIDDEN), nn.Linear(HIDDEN, 1)
    first.weight, first.bias, last.weight, last.bias = map(nn.Parameter, (W, b, V, c))
    return nn.Sequential(first, nn.ReLU(), last)


def twin_module(dtype):
    return module_of(*(torch.tensor(weights, dtype=dtype) for weights in (W, b, V, c)))


def twin_onnx(opset=20):
    """Before opset 12 with a dropout whose share is an attribute, in a file of that time."""
    old = opset < 12
    nodes = [
        helper.make_node("Gemm", ["x", "W", "b"], ["h"], transB=1),
        *([helper.make_node("Dropout", ["h"], ["d"], ratio=0.5)] if old else []),
        helper.make_node("Relu", ["d" if old else "h"], ["r"]),
        helper.make_node("Gemm", ["r", "V", "c"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "twin",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", TWIN])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 1])],
        [numpy_helper.from_array(w.astype(np.float32), n) for n, w in zip("WbVc", (W, b, V, c), strict=True)],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=4 if old else 10).SerializeToString()


def twin_estimator(W=W, b=b):
    some = np.random.default_rng(0).normal(size=(8, TWIN))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one epoch is not enough, and of no interest here
        model = MLPRegressor(hidden_layer_sizes=(HIDDEN,), max_iter=1, random_state=0).fit(some, some[:, 0])
    model.coefs_, model.intercepts_ = [W.T.copy(), V.T.copy()], [b.copy(), c.copy()]
    return model


def twin_pipeline():
    mean, spread = np.array([1.0, -2.0, 0.5]), np.array([2.0, 0.25, 3.0])
    scaler = StandardScaler().fit(mean + spread * np.array([[1.0], [-1.0]]))
    return Pipeline([("scale", scaler), ("net", twin_estimator(W * spread, b + W @ mean))])


def twin_skorch():
    return NeuralNetRegressor(twin_module(torch.float32)).initialize()


def twin_keras():
    model = sequential(dense(HIDDEN, activation="relu"), dense(1), features=TWIN)
    model.set_weights([W.T, b, V.T, c])
    return model


def twins():
    shared = {"features": TWIN, "smooth": False}
    return [
        Torch("torch-twin", lambda: twin_module(torch.float32), called="Sequential", **shared),
        Torch(
            "torch-twin-float64",
            lambda: twin_module(torch.float64),
            torch.float64,
            called="Sequential",
            is_float64=True,
            close=DOUBLE,
            **shared,
        ),
        Function("function-twin", called="cook", **shared),
        Registered("registered-function-twin", lambda recipe: recipe.cook, called="cook", **shared),
        Registered(
            "registered-module-twin",
            lambda recipe: recipe.net,
            called="Sequential",
            identical=False,
            freezes=True,
            layers=True,
            sigmoid=False,
            **shared,
        ),
        Registered("registered-predictor-twin", Whole, called="whole", freezes=True, **shared),
        Onnx("onnx-twin", twin_onnx, called="twin", **shared),
        OnnxFile("onnx-file-twin-opset-9", lambda: twin_onnx(9), called="twin.onnx", **shared),
        Estimator(
            "scikit-learn-twin",
            functools.cache(twin_estimator),
            called="MLPRegressor",
            sigmoid=False,
            **shared,
        ),
        Estimator("scikit-learn-pipeline-twin", functools.cache(twin_pipeline), called="Pipeline", **shared),
        Skorch("skorch-twin", twin_skorch, called="NeuralNetRegressor of Sequential", **shared),
        Keras("keras-twin", twin_keras, layers=True, **shared),
    ]


# --- others, library by library ----------------------------------------------------------------------


def torch_kinds():
    for kind in nets.KINDS:
        for dtype in (torch.float32, torch.float64):
            if kind == "own-first-state" and dtype == torch.float64:
                continue  # it cannot run at all
            yield Torch(
                f"{kind}-{str(dtype).removeprefix('torch.')}",
                functools.partial(nets.make, kind, 2, dtype),
                dtype,
                called=type(nets.make(kind)).__name__,
                outputs=2,
                is_float64=dtype == torch.float64,
                close=DOUBLE if dtype == torch.float64 else SINGLE,
                smooth=kind in nets.SMOOTH,
                layers=kind == "mlp",
            )
    for kind, (make, entry, close) in nets.DTYPES.items():
        net = make()
        yield Torch(
            kind, make, entry, called=type(net).__name__, features=nets.FEATURES, close=close, smooth=True,
            layers=isinstance(net, nn.Sequential),
        )  # fmt: skip


@functools.cache
def exported(kind, dtype, batch):
    """A network of `nets` as torch's exporter writes it, for one sample or for any number."""
    content, net = io.BytesIO(), nets.make(kind, 2, dtype).eval()
    options = {"dynamic_axes": {"x": {0: "n"}, "y": {0: "n"}}} if batch != 1 else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sample = torch.zeros(batch, nets.FEATURES, dtype=dtype)
        names = {"input_names": ["x"], "output_names": ["y"]}
        torch.onnx.export(net, (sample,), content, dynamo=False, **names, **options)
    return content.getvalue()


def onnx_kinds():
    for kind, dtype, batch in (
        ("mlp", torch.float32, 2), ("mlp", torch.float64, 2), ("mlp", torch.float32, 1),
        ("lstm", torch.float32, 2), ("attention", torch.float32, 1), ("gelu-layernorm", torch.float32, 2),
    ):  # fmt: skip
        is_float64 = dtype == torch.float64
        yield Onnx(
            f"onnx-{kind}-{str(dtype).removeprefix('torch.')}-{'one' if batch == 1 else 'any'}",
            functools.partial(exported, kind, dtype, batch),
            np.float64 if is_float64 else np.float32,
            called="main_graph",
            outputs=2,
            is_float64=is_float64,
            close=DOUBLE if is_float64 else SINGLE,
            smooth=kind in nets.SMOOTH,
            layers=kind == "mlp",
        )


QUIET = {"max_epochs": 1, "verbose": 0, "train_split": None}


def trained_skorch(net, targets):
    X = np.random.default_rng(0).uniform(-1, 1, (20, nets.FEATURES)).astype(np.float32)
    return net.fit(X, targets(X))


def skorch_kinds():
    yield Skorch(
        "skorch-regressor",
        lambda: trained_skorch(
            NeuralNetRegressor(nets.make("dropout-batchnorm"), **QUIET), lambda X: X[:, :1]
        ),
        called="NeuralNetRegressor of Sequential",
        smooth=True,
        layers=False,
    )
    yield Skorch(
        "skorch-classifier",
        lambda: trained_skorch(
            NeuralNetClassifier(nets.make("mlp", 3), criterion=nn.CrossEntropyLoss, **QUIET),
            lambda X: np.digitize(X[:, 0], [-0.3, 0.3]),
        ),
        called="NeuralNetClassifier of Sequential",
        outputs=3,
        smooth=False,
    )


dense = keras.layers.Dense


class Scaled(keras.layers.Layer):
    """A layer of the user's own, registered nowhere."""

    def __init__(self):
        super().__init__()
        self.inner = dense(3, activation="tanh")

    def call(self, x):
        return 2.0 * self.inner(x)


class Subclassed(keras.Model):
    """A model that cannot be copied through its configuration, and that trains unless it is told not to."""

    def __init__(self, sizes):
        super().__init__()
        self.body = dense(len(sizes), activation="gelu")
        self.drop, self.head = keras.layers.Dropout(0.5), dense(1)

    def call(self, x, training=True):
        return self.head(self.drop(self.body(x), training=training))


def sequential(*layers, features=nets.FEATURES):
    return keras.Sequential([keras.layers.Input((features,)), *layers])


def functional():
    into = keras.Input((nets.FEATURES,))
    hidden = dense(nets.FEATURES, activation="elu")(into)
    return keras.Model(into, dense(1)(keras.layers.Add()([into, hidden]) + keras.ops.sin(into)))


def subclassed():
    model = Subclassed(np.zeros(5))
    model(np.zeros((2, nets.FEATURES)))
    return model


def normalised():
    layer = keras.layers.Normalization()
    layer.adapt(1.0 + 3.0 * np.random.default_rng(0).uniform(-1, 1, (20, nets.FEATURES)))
    return sequential(layer, dense(1))


def recurrent(kind):
    return sequential(keras.layers.Reshape((nets.FEATURES, 1)), kind(5), dense(1))


def batch_norm():
    drop, norm = keras.layers.Dropout(0.5), keras.layers.BatchNormalization()
    return sequential(dense(8, activation="tanh"), norm, drop, dense(1))


def convolution():
    return sequential(
        keras.layers.Reshape((nets.FEATURES, 1)),
        keras.layers.Conv1D(3, 2, activation="swish"),
        keras.layers.Flatten(),
        keras.layers.LayerNormalization(),
        dense(1),
    )


def keras_kinds():
    yield Keras("keras-batch-norm-dropout", batch_norm, smooth=True)
    yield Keras("keras-lstm", lambda: recurrent(keras.layers.LSTM), smooth=True)
    yield Keras("keras-gru", lambda: recurrent(keras.layers.GRU), smooth=True)
    yield Keras("keras-convolution", convolution, smooth=True)
    yield Keras("keras-functional", functional, called="Functional")
    yield Keras("keras-own-layer", lambda: sequential(Scaled(), dense(1)), smooth=True)
    yield Keras("keras-subclass", subclassed, called="Subclassed", smooth=True)
    yield Keras("keras-normalised", normalised, smooth=True)
    squares = keras.layers.Lambda(lambda x: x * x)
    yield Keras("keras-lambda", lambda: sequential(squares, dense(1)), smooth=True)
    half = {"dtype": "float16", "activation": "tanh"}
    yield Keras("keras-float16", lambda: sequential(dense(8, **half), dense(1)), layers=True, close=5e-3)
    own = {"dtype": "float64"}
    yield Keras(
        "keras-float64-policy",
        lambda: sequential(dense(3, activation="tanh", **own), dense(1, **own)),
        layers=True,
        smooth=True,
    )


TWINS = twins()
ENSEMBLE = Ensembled(
    "ensemble",
    called="min of Sequential",
    outputs=2,
    is_float64=True,
    close=DOUBLE,
    layers=False,
    smooth=False,
)
VARIANTS = {
    "attention-float64", "conv1d-float64", "dropout-batchnorm-float64", "gelu-layernorm-float64",
    "lstm-float64", "residual-float64", "float16", "float16-lstm", "skorch-regressor", "residual-float32",
    "onnx-attention-float32-one", "onnx-mlp-float32-one", "onnx-mlp-float64-any",
    "keras-batch-norm-dropout", "keras-float64-policy", "keras-gru", "keras-normalised", "keras-own-layer",
    "keras-lambda", "keras-float16", "keras-convolution",
}  # fmt: skip
"""Kinds that differ in little from others: only at full volume."""
KINDS = [
    kind
    for kind in (*TWINS, ENSEMBLE, *torch_kinds(), *onnx_kinds(), *skorch_kinds(), *keras_kinds())
    if FULL or str(kind) not in VARIANTS
]
SAMPLED = (
    "PolynomialFeatures, linear", "ColumnTransformer, numbers", "SVC rbf", "FunctionTransformer, own",
    "OneHotEncoder, strings",
)  # fmt: skip
ESTIMATORS = [
    EstimatorKind(kind)
    for kind in (kinds.KINDS if FULL else SAMPLED)
    if kind not in kinds.BY_CLASSES_ALONE | kinds.WITH_GAPS
]
RANDOM = [RandomEstimator(seed) for seed in (range(300) if FULL else (4,))]
