"""The layers that a network definition of OMLT's is put together from by hand.

Between layers numbers are in a row, in the order of their indices, so an `IndexMapper`, which only reshapes
them, changes nothing. Each layer reshapes them for itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
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
    """The outputs of one layer in the shape that the next requires, in the same order."""

    def __init__(self, input_size: Size, output_size: Size) -> None:
        self.input_size, self.output_size = list(input_size), list(output_size)


class Layer:
    """The common part of all layers: the sizes of inputs and outputs, and an activation."""

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
        self.input_index_mapper = input_index_mapper

    def __repr__(self) -> str:
        return f"{type(self).__name__}(input_size={self.input_size}, output_size={self.output_size})"

    def eval_single_layer(self, x: Any) -> FloatArray:
        """The result for one sample, in the shape of the outputs."""
        given = np.asarray(x, dtype=np.float64)
        if given.size != int(np.prod(self.input_size)):
            raise OptionError(f"{self!r} got {given.size} numbers, of shape {given.shape}.")
        with torch.no_grad():
            values = nn.Sequential(*self.modules())(torch.tensor(given.reshape(1, -1)))
        return np.asarray(values.numpy().reshape(self.output_size))

    def modules(self) -> list[nn.Module]:
        """The layer as a torch module: rows in, rows out."""
        return [*self.before_activation(), *self.activation_modules()]

    def before_activation(self) -> list[nn.Module]:
        """The result without its activation."""
        return []

    def activation_modules(self) -> list[nn.Module]:
        """The activation, if there is one."""
        if self.activation not in ACTIVATIONS:
            raise UnsupportedError(
                f"the activation {self.activation!r} is not supported, "
                f"only {', '.join(ACTIVATIONS)}; give the "
                "network as an ONNX model (load_onnx_neural_network)."
            )
        return [] if self.activation == "linear" else [ACTIVATIONS[self.activation]()]


class InputLayer(Layer):
    """The network's input."""

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
        **common: Any,
    ) -> None:
        super().__init__(input_size, output_size, **common)
        self.weights = np.asarray(weights, dtype=np.float64)
        self.biases = np.asarray(biases, dtype=np.float64)

    def before_activation(self) -> list[nn.Module]:
        """A linear layer, the same for each row if the inputs have several; biases may differ by row."""
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


def steps(size: Size, shape: Size, strides: Size, *, partial: bool = False) -> list[int]:
    """The number of rows and columns of a kernel's result; with `partial`, the kernel may extend beyond the
    end."""
    room = (whole - part for whole, part in zip(size[1:], shape, strict=True))
    counts = zip(room, strides, strict=True)
    return [(-(-left // stride) if partial else left // stride) + 1 for left, stride in counts]


class Layer2D(Layer, ABC):
    """A kernel that moves over a picture by `strides`, from its first row and column on."""

    kernel_shape: tuple[int, ...]
    """The kernel's rows and columns."""

    def __init__(self, input_size: Size, output_size: Size, strides: Size, **common: Any) -> None:
        super().__init__(input_size, output_size, **common)
        self.strides = list(strides)

    def before_activation(self) -> list[nn.Module]:
        """The kernel over a picture, and rows again."""
        return [nn.Unflatten(1, tuple(self.input_size)), self.kernel_module(), nn.Flatten()]

    @abstractmethod
    def kernel_module(self) -> nn.Module:
        """The kernel in torch's layout."""

    def require(self, depth: int, found: list[int]) -> None:
        """Raises an `OptionError` if the number of outputs does not fit the kernel."""
        if self.output_size != [depth, *found]:
            raise OptionError(
                f"{self!r}: a kernel of {tuple(self.kernel_shape)} with strides {self.strides} gives "
                f"{[depth, *found]}."
            )


class ConvLayer2D(Layer2D):
    """Sums over a kernel of shape (depth out, depth in, rows, columns); OMLT's own have no biases."""

    def __init__(
        self,
        input_size: Size,
        output_size: Size,
        strides: Size,
        kernel: Any,
        *,
        biases: Any = None,
        **common: Any,
    ) -> None:
        super().__init__(input_size, output_size, strides, **common)
        self.kernel = np.asarray(kernel, dtype=np.float64)
        self.biases = np.zeros(len(self.kernel)) if biases is None else np.asarray(biases, dtype=np.float64)
        self.kernel_shape = self.kernel.shape[2:]

    def kernel_module(self) -> nn.Module:
        """A convolution; created on the meta device first, so that no random numbers are drawn."""
        out, into, *shape = self.kernel.shape
        self.require(out, steps(self.input_size, self.kernel_shape, self.strides))
        strides = (self.strides[0], self.strides[1])
        made = nn.Conv2d(into, out, (shape[0], shape[1]), strides, device="meta")
        made.weight = nn.Parameter(torch.tensor(self.kernel))
        made.bias = nn.Parameter(torch.tensor(self.biases))
        return made


class PoolingLayer2D(Layer2D):
    """The largest number under the kernel; a kernel beyond the end uses the numbers that are there."""

    def __init__(
        self,
        input_size: Size,
        output_size: Size,
        strides: Size,
        pool_func_name: str,
        kernel_shape: Size,
        kernel_depth: int,
        **common: Any,
    ) -> None:
        super().__init__(input_size, output_size, strides, **common)
        if pool_func_name != "max":
            raise UnsupportedError(
                f"pooling by {pool_func_name!r} is not supported, only by 'max', as in OMLT."
            )
        self.kernel_shape, self.kernel_depth = tuple(kernel_shape), kernel_depth

    def kernel_module(self) -> nn.Module:
        """Pooling; kernels at the end are whole if the number of outputs requires it."""
        if self.input_size[0] != 1 or self.kernel_depth != 1:
            raise UnsupportedError(
                f"pooling over pictures of depth {self.input_size[0]} is not taken by hand, where OMLT has "
                "one kernel for all of it; give the network as an ONNX model (load_onnx_neural_network)."
            )
        kernel = self.input_size, self.kernel_shape, self.strides
        partial = self.output_size[1:] != steps(*kernel)
        self.require(1, steps(*kernel, partial=partial))
        return nn.MaxPool2d(self.kernel_shape, tuple(self.strides), ceil_mode=partial)


class GNNLayer(DenseLayer):
    """A dense layer in which a weight from node u to node v counts only if u and v are joined.

    Evaluated alone, all nodes are joined.
    """

    def __init__(
        self, input_size: Size, output_size: Size, weights: Any, biases: Any, N: int, **common: Any
    ) -> None:
        super().__init__(input_size, output_size, weights, biases, **common)
        for what, size in (("input", self.input_size[-1]), ("output", self.output_size[-1])):
            if size % N:
                raise OptionError(
                    f"{what}_size is {size} for {N} nodes; give as many numbers for each of the nodes."
                )
        self.N = N


class GraphNetwork(nn.Module):
    """A chain of layers over rows of the network's inputs followed by the N x N edges of its graph."""

    def __init__(self, layers: list[Layer], nodes: int) -> None:
        super().__init__()
        self._nodes = nodes
        self._steps = nn.ModuleList(
            _GraphStep(layer) if isinstance(layer, GNNLayer) else nn.Sequential(*layer.modules())
            for layer in layers
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Passes inputs through all layers; layers over graphs also get the edges."""
        edges = rows[:, -(self._nodes**2) :].reshape(-1, self._nodes, self._nodes)
        x = rows[:, : -(self._nodes**2)]
        for step in self._steps:
            x = step(x, edges) if isinstance(step, _GraphStep) else step(x)
        return x


class _GraphStep(nn.Module):
    """sum over i of edge(u(i), v(j)) weight(i, j) x(i), and the bias of j, through the activation."""

    def __init__(self, layer: GNNLayer) -> None:
        super().__init__()
        self._last = layer.input_size[-1]
        self._into, self._out = self._last // layer.N, layer.output_size[-1] // layer.N
        self.register_buffer("_weights", torch.tensor(layer.weights))
        self.register_buffer("_biases", torch.tensor(layer.biases))
        self._weights: torch.Tensor
        self._biases: torch.Tensor
        self._activation = nn.Sequential(*layer.activation_modules())

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Rows of inputs, and the edges of each row."""
        joined = edges.repeat_interleave(self._into, 1).repeat_interleave(self._out, 2)
        weights = self._weights * joined
        y = x.reshape(len(x), -1, self._last) @ weights + self._biases
        answer: torch.Tensor = self._activation(y.reshape(len(x), -1))
        return answer
