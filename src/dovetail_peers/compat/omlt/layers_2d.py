"""Layers over pictures: convolutions and pooling, with sizes (depth, rows, columns)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import nn

from dovetail.core.errors import OptionError, UnsupportedError
from dovetail_peers.compat.omlt.layers import IndexMapper, Layer, Size


def steps(size: Size, shape: Size, strides: Size, *, partial: bool = False) -> list[int]:
    """How many rows and columns a kernel gives; with `partial`, it may stand out at the end."""
    room = (whole - part for whole, part in zip(size[1:], shape, strict=True))
    counts = zip(room, strides, strict=True)
    return [(-(-left // stride) if partial else left // stride) + 1 for left, stride in counts]


class Layer2D(Layer, ABC):
    """A kernel that goes over a picture by `strides`, from its first row and column on."""

    def __init__(
        self,
        input_size: Size,
        output_size: Size,
        strides: Size,
        *,
        activation: str | None = None,
        input_index_mapper: IndexMapper | None = None,
    ) -> None:
        super().__init__(
            input_size, output_size, activation=activation, input_index_mapper=input_index_mapper
        )
        self.strides = list(strides)

    @property
    @abstractmethod
    def kernel_shape(self) -> tuple[int, ...]:
        """Its rows and columns."""

    @property
    @abstractmethod
    def kernel_depth(self) -> int:
        """How many layers of the picture it goes over at once."""

    def before_activation(self) -> list[nn.Module]:
        """The kernel over a picture, and rows again."""
        return [nn.Unflatten(1, tuple(self.input_size)), self.kernel_module(), nn.Flatten()]

    @abstractmethod
    def kernel_module(self) -> nn.Module:
        """The kernel as torch has it."""

    def require(self, depth: int, found: list[int]) -> None:
        """An `OptionError` where the outputs are not as many as the kernel gives."""
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

    @property
    def kernel_shape(self) -> tuple[int, ...]:
        """Its rows and columns."""
        return self.kernel.shape[2:]

    @property
    def kernel_depth(self) -> int:
        """How many layers of the picture it goes over at once."""
        return int(self.kernel.shape[1])

    def kernel_module(self) -> nn.Module:
        """A convolution; on the device that holds nothing first, so that no random numbers are drawn."""
        out, into, *shape = self.kernel.shape
        self.require(out, steps(self.input_size, self.kernel_shape, self.strides))
        strides = (self.strides[0], self.strides[1])
        made = nn.Conv2d(into, out, (shape[0], shape[1]), strides, device="meta")
        made.weight = nn.Parameter(torch.tensor(self.kernel))
        made.bias = nn.Parameter(torch.tensor(self.biases))
        return made


class PoolingLayer2D(Layer2D):
    """The largest number under the kernel; a kernel that stands out at the end has what is under it."""

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
            raise UnsupportedError(f"pooling by {pool_func_name!r} is not taken, only by 'max', as in OMLT.")
        self._shape, self._depth = tuple(kernel_shape), kernel_depth

    @property
    def kernel_shape(self) -> tuple[int, ...]:
        """Its rows and columns."""
        return self._shape

    @property
    def kernel_depth(self) -> int:
        """How many layers of the picture it goes over at once."""
        return self._depth

    def kernel_module(self) -> nn.Module:
        """Pooling, by whole kernels only if that gives the outputs."""
        if self.input_size[0] != 1 or self._depth != 1:
            raise UnsupportedError(
                f"pooling over pictures of depth {self.input_size[0]} is not taken by hand, where OMLT has "
                "one kernel for all of it; give the network as an ONNX model (load_onnx_neural_network)."
            )
        kernel = self.input_size, self.kernel_shape, self.strides
        partial = self.output_size[1:] != steps(*kernel)
        self.require(1, steps(*kernel, partial=partial))
        return nn.MaxPool2d(self.kernel_shape, tuple(self.strides), ceil_mode=partial)
