"""Keras models on the torch backend.

Such a model is a torch module and predicts like any module. But Keras computes in its own dtype whatever the
input: a copy converted to float64 still multiplies in float32. So gradients run the model's own code with
frozen float64 variables in place of its own (`stateless_call`), and every cast that the model requests goes
to float64.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import keras
import torch
from torch import Tensor

from dovetail.core.errors import PredictorError, UnsupportedError
from dovetail.predictors.keras_elsewhere import keras_parts
from dovetail.predictors.torch.frozen_copy import CastsToFloat64
from dovetail.predictors.torch.layers import TorchOperation
from dovetail.predictors.torch.module import MODE, TorchPredictor


class KerasPredictor(TorchPredictor):
    """A built Keras model (or layer) that maps (n, d) features to (n, q) outputs."""

    def __init__(self, model: Any) -> None:
        self._model: Any = cast(Any, model)
        if not model.built:
            raise PredictorError(f"{type(model).__name__} has no weights yet; run a batch through it.")
        super().__init__(model)
        self._recurrent = any(isinstance(part, keras.layers.RNN) for part in _parts(model))
        can = inspect.signature(self._model.call).parameters
        self._options = {"training": False} if "training" in can else {}

    def _parts(self) -> list[TorchOperation]:
        """The parts of the layers by their classes, if the model is a `keras.Sequential` of Dense and
        activations."""
        if not isinstance(self._model, keras.Sequential):
            raise UnsupportedError(
                f"{self.name} cannot be written out, only keras.Sequential of Dense and common activations "
                'can. method="auto" takes any model.'
            )
        return list(keras_parts(self._model))

    def _dtypes(self) -> tuple[torch.dtype, ...]:
        """The dtypes of the layers; Keras multiplies in float32 at most, even under a float64 policy."""
        named = dict.fromkeys(getattr(part, "compute_dtype", "float32") for part in _parts(self._model))
        found = (getattr(torch, name or "float32") for name in named)
        return tuple(dict.fromkeys(torch.float32 if kind == torch.float64 else kind for kind in found))

    def _entry_dtypes(self) -> list[torch.dtype]:
        return [torch.float64]

    def _run(self, batch: Tensor) -> Any:
        return self._model(batch, **self._options)

    def _frozen(self, dtype: torch.dtype | None, device: str) -> Callable[[Tensor], Any]:
        model, options = self._model, self._options
        trained = [_copied(variable, dtype, device) for variable in model.trainable_variables]
        others = [_copied(variable, dtype, device) for variable in model.non_trainable_variables]
        held = [
            (vars(part), name, value.detach().clone().to(device))
            for part in _parts(model)
            for name, value in vars(part).items()
            if isinstance(value, Tensor)
        ]

        def forward(inputs: Tensor) -> Any:
            with keras.device(device), _put_back(held):
                return model.stateless_call(trained, others, inputs, **options)[0]

        def forward_in_float64(inputs: Tensor) -> Any:
            with CastsToFloat64():
                return forward(inputs)

        return forward if dtype is None else forward_in_float64


def of_rows(model: Any, shape: tuple[int, ...]) -> Any:
    """A model that takes rows, for a layer that takes samples of that shape."""
    rows = [keras.Input((math.prod(shape),)), keras.layers.Reshape(shape)]
    try:
        return keras.Sequential([*rows, model, keras.layers.Flatten()])
    except ValueError as refused:
        wanted = getattr(model, "input_shape", (None,))[1:]
        raise PredictorError(
            f"{model.name} takes samples of shape {wanted}, and each of those given is of shape {shape}; the "
            "first axis of the variables counts the samples."
        ) from refused


def _copied(variable: Any, dtype: torch.dtype | None, device: str) -> Tensor:
    value: Tensor = variable.value.detach().clone().to(device)
    return value.to(dtype) if dtype is not None and value.is_floating_point() else value


def _parts(model: Any) -> list[Any]:
    """The model and all layers inside it, which are not all torch modules below it."""
    return list(model._flatten_layers())


@contextmanager
def _put_back(held: list[tuple[dict[str, Any], str, Tensor]]) -> Iterator[None]:
    """Inside, tensors that layers keep besides their variables (Normalization's mean) may change; afterwards
    they are restored."""
    if not held:
        yield
        return
    with MODE:
        now = [attributes.get(name) for attributes, name, _ in held]
        try:
            for attributes, name, value in held:
                attributes[name] = value
            yield
        finally:
            for (attributes, name, _), before in zip(held, now, strict=True):
                attributes[name] = before
