"""Keras models on another backend than torch: tensorflow, jax, numpy, or the Keras that came with tensorflow.

The model answers by its own `predict`. A gradient cannot be followed through another library; but a sequence
of Dense layers and common activations is written once more in torch, compared with the model, and has
gradients and layers like any network. Gradients of all other models are differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dovetail.core.arrays import FloatArray
from dovetail.core.description import Description
from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.core.linear import as_linear
from dovetail.networks.functions import LAYERS
from dovetail.networks.layers import ACTIVATIONS, SOFTMAX
from dovetail.networks.program import Program
from dovetail.predictors.function import CallablePredictor
from dovetail.predictors.torch.layers import TorchOperation, changed
from dovetail.predictors.torch.module import TorchPredictor

UNCHANGED = ("InputLayer", "Dropout", "GaussianDropout", "AlphaDropout", "GaussianNoise", "Identity")
"""Keras's layers that change nothing after training."""
AGREEMENT = 1e-4
"""Largest allowed difference between a model in float32 and its copy, relative to max(1, |value|)."""
COARSE_AGREEMENT = 2e-2
"""The same for a model in half precision."""


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
        """The description of the copy. The rounding of other libraries is unknown, so no bound of it is
        claimed."""
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
        try:
            modules = [_module(part) for part in keras_parts(self._model)]
        except UnsupportedError:
            return None
        return TorchPredictor(nn.Sequential(*modules)) if modules else None

    def _require_agreement(self, truth: FloatArray, ours: FloatArray, *, coarse: bool) -> None:
        tolerance = COARSE_AGREEMENT if coarse else AGREEMENT
        if truth.shape != ours.shape or np.any(
            np.abs(truth - ours) > tolerance * np.maximum(1.0, np.abs(truth))
        ):
            raise PredictorError(
                f"{self.name} does not compute the function of its layers; pass a function instead: "
                "lambda X: model.predict(X, verbose=0), whose gradient is taken by differences."
            )


def _module(part: TorchOperation) -> nn.Module:
    if part.weight is None:
        return nn.Softmax(dim=1) if part.kind == SOFTMAX else getattr(nn, LAYERS[part.kind].layer)()
    weight = part.weight.double().numpy()
    return as_linear(weight, np.zeros(len(weight)) if part.bias is None else part.bias.double().numpy())


def keras_parts(layer: Any) -> Iterator[TorchOperation]:
    """The operations of a layer after training, on any backend; only for Keras's own unmodified classes."""
    kind, call = type(layer).__name__, getattr(type(layer), "call", None)
    named = f"Keras layer {kind} ({getattr(layer, 'name', '')!r}) cannot be written out"
    reason = changed(layer) if isinstance(layer, nn.Module) else ""
    if not reason and ("call" in vars(layer) or not (_is_keras(type(layer)) and _is_keras(call))):
        reason = "its code was replaced"
    if reason:
        raise UnsupportedError(f"{named}: {reason}, so its function is not known.")
    if kind == "Sequential":
        for inner in layer.layers:
            yield from keras_parts(inner)
    elif kind == "Dense" and not (
        getattr(layer, "lora_enabled", False) or getattr(layer, "quantization_mode", None)
    ):
        yield TorchOperation("dense", *_weights(layer))
    elif kind != "Activation" and kind not in UNCHANGED:
        raise UnsupportedError(
            f"{named}; only Dense and common activations can, of Keras's own classes. "
            'method="auto" takes any model.'
        )
    if kind in ("Dense", "Activation"):
        yield from _activation(layer)


def _weights(layer: Any) -> list[Any]:
    """Weight and bias of a dense layer: the very tensors on the torch backend."""
    if isinstance(layer, nn.Module):
        given: Any = layer
        return [given.kernel.value.t(), None if given.bias is None else given.bias.value]
    weight, *bias = (torch.tensor(np.asarray(one)) for one in layer.get_weights())
    return [weight.t(), *bias]


def _is_keras(code: Any) -> bool:
    """Whether a class or a function belongs to Keras itself."""
    kinds = (type, FunctionType)
    return isinstance(code, kinds) and code.__module__.startswith(("keras.", "tf_keras."))


def _activation(layer: Any) -> Iterator[TorchOperation]:
    """The activation, if it is one of Keras's own functions and not another of the same name."""
    function = layer.activation
    name = getattr(function, "__name__", type(function).__name__)
    if function is None or (_is_keras(function) and name == "linear"):
        return
    if not _is_keras(function) or name not in ACTIVATIONS:
        raise UnsupportedError(
            f"the activation {name!r} of Keras layer {layer.name!r} cannot be written out; Keras's own "
            f'{", ".join(ACTIVATIONS)} can. method="auto" takes any model.'
        )
    yield TorchOperation(name)
