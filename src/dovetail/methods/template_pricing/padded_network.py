"""A dense network of ReLUs as kernels read it: hidden layers of one size, padded with zeros."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

LEAST_SIDE = 16
"""Of a matrix that tensor cores multiply."""


@dataclass(frozen=True, eq=False)
class PaddedNetwork:
    """One value per row: `hidden` layers with a ReLU after each, and a last one without."""

    first: Tensor
    """(side, inputs), padded."""
    inner: Tensor
    """(hidden - 1, side, side), each as (out, in); one of zeros where there is none."""
    biases: Tensor
    """(hidden, side)."""
    last: Tensor
    """(side,)."""
    last_bias: Tensor
    """(1,)."""
    inputs: int
    """As many as there are."""
    hidden: int

    @property
    def side(self) -> int:
        """Units of a hidden layer, padded."""
        return int(self.biases.shape[1])

    @property
    def entry(self) -> int:
        """Inputs, padded."""
        return int(self.first.shape[1])


def padded_network(layers: list[tuple[Tensor, Tensor, bool]]) -> PaddedNetwork | None:
    """Of weights, biases and whether a ReLU follows: after all layers but the last, which has one output.

    None for any other network. Zeros change nothing: what comes out of them is 0, and nothing reads it.
    """
    *hidden, (last, last_bias, rectified) = layers
    if not hidden or rectified or len(last) != 1 or not all(follows for _, _, follows in hidden):
        return None
    inputs = int(hidden[0][0].shape[1])
    side, entry = _padded_size(max(len(weight) for weight, _, _ in hidden)), _padded_size(inputs)
    first = _padded(hidden[0][0], side, entry)
    inner = [_padded(weight, side, side) for weight, _, _ in hidden[1:]]
    biases = [_padded(bias[None], 1, side)[0] for _, bias, _ in hidden]
    return PaddedNetwork(
        first, torch.stack(inner or [first.new_zeros((side, side))]), torch.stack(biases),
        _padded(last, 1, side)[0], last_bias, inputs, len(hidden),
    )  # fmt: skip


def _padded_size(size: int) -> int:
    """The power of two that holds it."""
    return max(LEAST_SIDE, 1 << (size - 1).bit_length())


def _padded(matrix: Tensor, rows: int, columns: int) -> Tensor:
    whole = matrix.new_zeros((rows, columns))
    whole[: matrix.shape[0], : matrix.shape[1]] = matrix
    return whole
