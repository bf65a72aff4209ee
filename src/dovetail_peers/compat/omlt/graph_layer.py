"""Layers over graphs: a network that reads, beside its inputs, which nodes are joined."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from dovetail.core.errors import OptionError
from dovetail_peers.compat.omlt.layers import DenseLayer, Layer, Size


class GNNLayer(DenseLayer):
    """A dense layer whose weight from a number of node u to one of node v counts where u and v are joined.

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

    @property
    def gnn_input_size(self) -> int:
        """How many numbers of each node go in."""
        return int(self.input_size[-1] // self.N)

    @property
    def gnn_output_size(self) -> int:
        """How many numbers of each node come out."""
        return int(self.output_size[-1] // self.N)


class GraphNetwork(nn.Module):
    """A chain of layers over rows of the network's inputs and, behind them, the N x N edges of its graph."""

    def __init__(self, layers: list[Layer], nodes: int) -> None:
        super().__init__()
        self._nodes = nodes
        self._steps = nn.ModuleList(
            _GraphStep(layer) if isinstance(layer, GNNLayer) else nn.Sequential(*layer.modules())
            for layer in layers
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Inputs through all layers; those over graphs get the edges, too."""
        edges = rows[:, -(self._nodes**2) :].reshape(-1, self._nodes, self._nodes)
        x = rows[:, : -(self._nodes**2)]
        for step in self._steps:
            x = step(x, edges) if isinstance(step, _GraphStep) else step(x)
        return x


class _GraphStep(nn.Module):
    """sum over i of edge(u(i), v(j)) weight(i, j) x(i), and the bias of j, through the activation."""

    def __init__(self, layer: GNNLayer) -> None:
        super().__init__()
        self._into, self._out = layer.gnn_input_size, layer.gnn_output_size
        self._last = layer.input_size[-1]
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
