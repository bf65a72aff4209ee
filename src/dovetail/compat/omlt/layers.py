"""The layers that a network definition of OMLT's is put together from by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.core.linear import as_linear

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "softplus": nn.Softplus,
}


class InputLayer:
    """What goes into the network."""

    def __init__(self, size: Sequence[int]) -> None:
        self.input_size = self.output_size = list(size)

    def eval_single_layer(self, x: Any) -> FloatArray:
        """What it gives, which is what it gets."""
        return np.asarray(x, dtype=np.float64)


class DenseLayer:
    """activation(weights'x + biases), the weights (n_inputs, n_outputs)."""

    def __init__(
        self,
        input_size: Sequence[int],
        output_size: Sequence[int],
        weights: Any,
        biases: Any,
        *,
        activation: str | None = None,
        input_index_mapper: Any = None,
    ) -> None:
        if input_index_mapper is not None:
            raise UnsupportedError(
                "a DenseLayer with an input_index_mapper is not taken; give the network as an ONNX model "
                "(load_onnx_neural_network)."
            )
        self.input_size, self.output_size = list(input_size), list(output_size)
        self.weights, self.biases = np.asarray(weights, dtype=np.float64), np.asarray(biases)
        self.activation = activation or "linear"

    def eval_single_layer(self, x: Any) -> FloatArray:
        """What it makes of one sample, in the shape of its outputs."""
        row = torch.tensor(np.reshape(x, (1, -1)), dtype=torch.float64)
        with torch.no_grad():
            values = nn.Sequential(*self.modules())(row).numpy()
        return np.asarray(values.reshape(self.output_size))

    def modules(self) -> list[nn.Module]:
        """The layer as torch has it."""
        linear = as_linear(self.weights.T, self.biases.astype(np.float64))
        if self.activation == "linear":
            return [linear]
        if self.activation not in ACTIVATIONS:
            raise UnsupportedError(
                f"the activation {self.activation!r} is not taken, only linear, {', '.join(ACTIVATIONS)}; "
                "give the network as an ONNX model (load_onnx_neural_network)."
            )
        return [linear, ACTIVATIONS[self.activation]()]
