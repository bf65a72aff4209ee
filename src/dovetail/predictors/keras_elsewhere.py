"""Keras models on another backend than torch: tensorflow, jax, numpy, or the Keras that came with tensorflow.

The model itself answers, by its own `predict`. A gradient cannot be followed through another library; but a
sequence of Dense layers and common activations is written once more in torch, compared with the model, and
has gradients and layers like any network. Of all others gradients are differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray
from dovetail.core.description import Description
from dovetail.core.errors import PredictorError
from dovetail.core.linear import as_linear
from dovetail.core.predictor import Predictor
from dovetail.networks.functions import LAYERS
from dovetail.networks.program import Program
from dovetail.predictors.function import CallablePredictor
from dovetail.predictors.torch.module import TorchPredictor

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    **{name: getattr(nn, function.layer) for name, function in LAYERS.items()},
    "softmax": lambda: nn.Softmax(dim=1),
}
"""Keras's own functions, by their names."""
UNCHANGED = ("InputLayer", "Dropout", "GaussianDropout", "AlphaDropout", "GaussianNoise", "Identity")
"""Keras's layers that change nothing after training."""
AGREEMENT = 1e-4
"""Largest allowed difference between a model in float32 and its copy, relative to max(1, |value|)."""
COARSE_AGREEMENT = 2e-2
"""The same for a model in half precision."""


def keras_predictor(model: Any) -> Predictor:
    """The predictor of a Keras model, on any backend."""
    if isinstance(model, nn.Module):
        from dovetail.predictors.keras_model import KerasPredictor  # imports keras, which chooses a backend

        return KerasPredictor(model)
    return KerasElsewhere(model)


class KerasElsewhere:
    """A built model of another backend that maps (n, d) features to (n, q) outputs."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.name = type(model).__name__
        if not getattr(model, "built", True):
            raise PredictorError(f"{self.name} has no weights yet; run a batch through it.")
        if not callable(getattr(model, "predict", None)):
            raise PredictorError(
                f"{self.name} is a Keras layer on another backend than torch; put it into a keras.Model, "
                "whose predict can be asked."
            )

    def predict(self, X: FloatArray) -> FloatArray:
        """The model's own answer."""
        rows = np.asarray(X, dtype=np.float64) if len(X) else np.zeros((1, X.shape[1]))
        answer = np.asarray(self._model.predict(rows, batch_size=len(rows), verbose=0))
        values = answer.astype(np.float64)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or len(values) != len(rows):
            raise PredictorError(
                f"{self.name} turns {len(rows)} samples into an array of shape {answer.shape}; "
                "it must return (n_samples, n_outputs)."
            )
        return values[: len(X)]

    def snapshot(self, device: str) -> Callable[[Tensor], Tensor]:
        """The torch copy if there is one, otherwise differences."""
        copied = self._copied()
        return self._function().snapshot(device) if copied is None else copied.snapshot(device)

    def describe(self, X: FloatArray) -> Description:
        """The description of the copy. Rounding in other libraries is not known, so nothing is claimed about
        it."""
        dtype = str(getattr(self._model, "compute_dtype", None) or "float32")
        dtype = "float32" if dtype == "float64" else dtype  # inputs may be cast on the way
        copied = self._copied()
        if copied is None:
            return Description(self.name, dtypes=(dtype,), has_float64_copy=False)
        seen = copied.describe(X)
        if seen.features in (None, X.shape[1]):
            self._require_agreement(self.predict(X), copied.predict(X), coarse="16" in dtype)

        def program(features: int) -> Program:
            return replace(copied.program(features), arithmetic=None)

        return replace(seen, name=self.name, dtypes=(dtype,), program=program)

    def _function(self) -> CallablePredictor:
        function = CallablePredictor(self.predict)
        function.use_coarse_differences()
        return function

    def _copied(self) -> TorchPredictor | None:
        """The current weights as a torch copy in float64; None unless the model is a sequence of known
        layers."""
        modules = [*_modules(self._model)]
        known = [module for module in modules if module is not None]
        return TorchPredictor(nn.Sequential(*known)) if known and len(known) == len(modules) else None

    def _require_agreement(self, truth: FloatArray, ours: FloatArray, *, coarse: bool) -> None:
        tolerance = COARSE_AGREEMENT if coarse else AGREEMENT
        if truth.shape != ours.shape or np.any(
            np.abs(truth - ours) > tolerance * np.maximum(1.0, np.abs(truth))
        ):
            raise PredictorError(
                f"{self.name} does not compute what its layers say; pass a function instead: "
                "lambda X: model.predict(X, verbose=0), whose gradient is taken by differences."
            )


def _modules(layer: Any) -> Iterator[nn.Module | None]:
    """A layer as torch modules; None for an unknown one."""
    kind = type(layer).__name__
    if not _is_unmodified(layer):
        yield None
    elif kind == "Sequential":
        for inner in layer.layers:
            yield from _modules(inner)
    elif kind == "Dense" and not (
        getattr(layer, "lora_enabled", False) or getattr(layer, "quantization_mode", None) is not None
    ):
        weight, *bias = (np.asarray(one, dtype=np.float64) for one in layer.get_weights())
        yield as_linear(weight.T, bias[0] if bias else np.zeros(weight.shape[1]))
        yield from _activation(layer)
    elif kind == "Activation":
        yield from _activation(layer)
    elif kind not in UNCHANGED:
        yield None


def _is_unmodified(layer: Any) -> bool:
    """Whether a layer is an unmodified layer of exactly a Keras class."""
    call = getattr(type(layer), "call", None)
    own = isinstance(call, FunctionType) and call.__module__.startswith(("keras.", "tf_keras."))
    return own and type(layer).__module__.startswith(("keras.", "tf_keras.")) and "call" not in vars(layer)


def _activation(layer: Any) -> Iterator[nn.Module | None]:
    function = layer.activation
    name = getattr(function, "__name__", "")
    own = getattr(function, "__module__", "").startswith(("keras.", "tf_keras."))
    if function is None or (own and name == "linear"):
        return
    yield ACTIVATIONS[name]() if own and name in ACTIVATIONS else None
