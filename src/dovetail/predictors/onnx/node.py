"""One node of an ONNX graph. Knows nothing of `onnx`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from dovetail.core.errors import PredictorError, UnsupportedError

T = TypeVar("T")
Attribute = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Tensor

DTYPES = {
    1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64,
    9: torch.bool, 10: torch.float16, 11: torch.float64, 16: torch.bfloat16,
}  # fmt: skip
"""ONNX's numbers for the supported element types; others are strings and quantised types."""


@dataclass(frozen=True, eq=False)
class OnnxNode:
    """A node whose attributes are read by name and type; unread attributes are errors."""

    operator: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    opset: int
    attributes: dict[str, Attribute]
    domain: str = ""
    narrowest_dtype: torch.dtype = torch.float32
    """The narrowest float type of the file, which distinguishes a copy in another precision from the
    original."""
    asked: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return f"node {self.name!r} ({self.operator})"

    def has(self, name: str) -> bool:
        """Whether the file sets an attribute."""
        return name in self.attributes

    def integer(self, name: str, default: int | None = None) -> int:
        """An attribute that is a whole number."""
        return self._single(int, "a whole number", name, default)

    def number(self, name: str, default: float | None = None) -> float:
        """An attribute that is a float; a default, as in a file, has the digits of a float32."""
        return self._single(float, "a float", name, None if default is None else float(np.float32(default)))

    def text(self, name: str, default: str | None = None) -> str:
        """An attribute that is a word."""
        return self._single(str, "a string", name, default)

    def tensor(self, name: str, default: Tensor | None = None) -> Tensor:
        """An attribute that is a tensor."""
        return self._single(Tensor, "a tensor", name, default)

    def integers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """An attribute that is a list of whole numbers."""
        return self._several(int, "whole numbers", name, default)

    def numbers(self, name: str) -> tuple[float, ...]:
        """An attribute that is a list of floats."""
        return self._several(float, "floats", name, None)

    def texts(self, name: str, default: Sequence[str]) -> tuple[str, ...]:
        """An attribute that is a list of words."""
        return self._several(str, "strings", name, default)

    def list_before(self, opset: int, name: str) -> Tensor | None:
        """An attribute of older files that became an input: integers as a tensor, if it is set."""
        if self.opset >= opset or not self.has(name):
            return None
        return torch.tensor(self.integers(name), dtype=torch.int64)

    def number_before(self, opset: int, name: str) -> float | None:
        """The same for a single float."""
        return self.number(name) if self.opset < opset and self.has(name) else None

    def require_inputs(self, count: int) -> None:
        """Refuse a node without an input that is optional only in older files."""
        if len(self.inputs) < count or "" in self.inputs[:count]:
            raise PredictorError(
                f"{self} has {len(self.inputs)} inputs, which cannot be; the file is damaged."
            )

    def passed_over(self, *names: str) -> None:
        """Mark attributes that do not affect the computation as read."""
        self.asked.update(names)

    def dtype(self, name: str) -> torch.dtype:
        """An attribute that names an element type."""
        number = self.integer(name)
        if number not in DTYPES:
            raise UnsupportedError(
                f"{self}: element type {number} is not supported; floats, signed integers and booleans are."
            )
        return DTYPES[number]

    def dtype_in_use(self, declared: torch.dtype, like: Tensor) -> torch.dtype:
        """The dtype for a declared element type; in a float64 copy float64 for any float."""
        if declared.is_floating_point and like.dtype != self.narrowest_dtype:
            return like.dtype
        return declared

    def refused(self, what: str) -> UnsupportedError:
        """The error for an unsupported feature of a known operator."""
        return UnsupportedError(f"{self}: {what} is not supported.")

    def _single(self, kind: type[T], words: str, name: str, default: Attribute | None) -> T:
        value = self._attribute(name, default)
        if isinstance(value, kind):
            return value
        raise self._wrong_attribute(name, words)

    def _several(self, kind: type[T], words: str, name: str, default: Sequence[T] | None) -> tuple[T, ...]:
        value = self._attribute(name, None if default is None else cast(Attribute, tuple(default)))
        if isinstance(value, tuple):
            found = tuple(item for item in value if isinstance(item, kind))
            if len(found) == len(value):
                return found
        raise self._wrong_attribute(name, f"a list of {words}")

    def _attribute(self, name: str, default: Attribute | None) -> Attribute:
        self.asked.add(name)
        value = self.attributes.get(name, default)
        if value is None:
            raise PredictorError(f"{self} lacks its attribute {name!r}; the file is damaged.")
        return value

    def _wrong_attribute(self, name: str, kind: str) -> PredictorError:
        return PredictorError(f"{self}: attribute {name!r} is not {kind}; the file is damaged.")


Kernel = Callable[..., Any]
"""The function of a node: one tensor (or None) per input, to one tensor or a tuple."""

MANY = 1 << 31
"""Any number of inputs or outputs."""


@dataclass(frozen=True)
class Operator:
    """How to turn a node into a function of tensors, and the properties that the graph needs."""

    build: Callable[[OnnxNode], Kernel]
    fewest: int
    most: int
    outputs: int = 1
    differentiable: bool = True
    """False if the result is piecewise constant in the inputs."""
    needs_like: bool = False
    """True for a kernel whose first argument is a tensor with the dtype and device in use."""


def plain(
    kernel: Kernel, fewest: int, most: int, *, differentiable: bool = True, needs_like: bool = False
) -> Operator:
    """An operator without attributes."""
    return Operator(lambda node: kernel, fewest, most, differentiable=differentiable, needs_like=needs_like)


def with_numbers(kernel: Kernel, **defaults: float) -> Operator:
    """An operator of one input whose attributes are floats, by their names."""
    return Operator(
        lambda node: partial(kernel, **{name: node.number(name, one) for name, one in defaults.items()}), 1, 1
    )
