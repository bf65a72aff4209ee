"""The layers that a network definition of OMLT's is put together from by hand.

Between layers goes a row of numbers, in the order of their indices: so an `IndexMapper`, which gives one and
the same numbers another shape, changes nothing. Each layer gives them the shape that it wants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import OptionError, UnsupportedError
from dovetail.core.linear import as_linear

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "linear": nn.Identity,
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "softplus": nn.Softplus,
}

Size = Sequence[int]


class IndexMapper:
    """One layer's outputs in the shape that the next wants them in: the same numbers in the same order."""

    def __init__(self, input_size: Size, output_size: Size) -> None:
        self.input_size, self.output_size = list(input_size), list(output_size)

    def __call__(self, index: Any) -> tuple[int, ...]:
        """Where an input of the next layer is among the outputs of the one before."""
        flat = np.ravel_multi_index(index, self.output_size)
        return tuple(int(place) for place in np.unravel_index(flat, self.input_size))


class Layer:
    """What all layers have: the sizes of what goes in and comes out, and an activation."""

    def __init__(
        self,
        input_size: Size,
        output_size: Size,
        *,
        activation: str | None = None,
        input_index_mapper: IndexMapper | None = None,
    ) -> None:
        self.input_size, self.output_size = list(input_size), list(output_size)
        self.activation = activation or "linear"
        self.input_index_mapper = input_index_mapper or IndexMapper(input_size, input_size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(input_size={self.input_size}, output_size={self.output_size})"

    @property
    def input_indexes(self) -> list[tuple[int, ...]]:
        """Of its inputs, in its own shape."""
        return [*np.ndindex(*self.input_size)]

    @property
    def output_indexes(self) -> list[tuple[int, ...]]:
        """Of its outputs."""
        return [*np.ndindex(*self.output_size)]

    @property
    def input_indexes_with_input_layer_indexes(self) -> Iterator[tuple[Any, Any]]:
        """Each index of its inputs, and what the layer before calls it."""
        return ((index, self.input_index_mapper(index)) for index in self.input_indexes)

    def eval_single_layer(self, x: Any) -> FloatArray:
        """What it makes of one sample, in the shape of its outputs."""
        given = np.asarray(x, dtype=np.float64)
        if given.size != int(np.prod(self.input_size)):
            raise OptionError(f"{self!r} got {given.size} numbers, of shape {given.shape}.")
        with torch.no_grad():
            values = nn.Sequential(*self.modules())(torch.tensor(given.reshape(1, -1)))
        return np.asarray(values.numpy().reshape(self.output_size))

    def modules(self) -> list[nn.Module]:
        """The layer as torch has it: rows in, rows out."""
        return [*self.before_activation(), *self.activation_modules()]

    def before_activation(self) -> list[nn.Module]:
        """What it does but for its activation."""
        return []

    def activation_modules(self) -> list[nn.Module]:
        """The activation, if it is one."""
        if self.activation not in ACTIVATIONS:
            raise UnsupportedError(
                f"the activation {self.activation!r} is not taken, only {', '.join(ACTIVATIONS)}; give the "
                "network as an ONNX model (load_onnx_neural_network)."
            )
        return [] if self.activation == "linear" else [ACTIVATIONS[self.activation]()]


class InputLayer(Layer):
    """What goes into the network."""

    def __init__(self, size: Size) -> None:
        super().__init__(size, size)


class DenseLayer(Layer):
    """activation(x weights + biases), the weights (n_inputs, n_outputs); of several axes along the last."""

    def __init__(
        self,
        input_size: Size,
        output_size: Size,
        weights: Any,
        biases: Any,
        *,
        activation: str | None = None,
        input_index_mapper: IndexMapper | None = None,
    ) -> None:
        super().__init__(
            input_size, output_size, activation=activation, input_index_mapper=input_index_mapper
        )
        self.weights = np.asarray(weights, dtype=np.float64)
        self.biases = np.asarray(biases, dtype=np.float64)

    def before_activation(self) -> list[nn.Module]:
        """A linear layer, the same for each row where the inputs have several; biases may differ by row."""
        shared = self.biases.size == self.weights.shape[1]
        linear = as_linear(self.weights.T, self.biases.ravel() if shared else np.zeros(self.weights.shape[1]))
        rows = int(np.prod(self.input_size)) // linear.in_features
        over_rows: list[nn.Module] = (
            [linear] if rows == 1 else [nn.Unflatten(1, (rows, -1)), linear, nn.Flatten()]
        )
        if shared:
            return over_rows
        offsets = np.broadcast_to(self.biases, self.output_size).ravel()
        return [*over_rows, as_linear(np.eye(offsets.size), offsets)]
