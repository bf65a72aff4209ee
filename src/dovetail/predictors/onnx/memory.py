"""The memory that an ONNX graph needs, estimated before the graph runs.

A few bytes of a graph can request terabytes: by one shape, or by doubling a tensor forty times. The size of
each operator's result is found by running the operator on tensors without data (torch's "meta" device, shapes
only); only then does the operator run. Thus operators need no limits of their own, and no operator can be
forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.flop_counter import flop_registry

from dovetail.core.errors import PredictorError
from dovetail.core.files import Meter
from dovetail.predictors.torch.layers import DispatchMode

SPEED = 1e10
"""Multiplications and additions that a slow core does in a second; computations that would take too long are
not begun."""


LARGEST = 1 << 28
"""Largest number of elements of a tensor that a file may request by its shape alone."""

LONGEST = 1 << 16
"""Largest number of entries of a shape or list of axes, or of steps of a sequence."""


@dataclass(frozen=True)
class Cost:
    """The size and cost of the result of an operation."""

    elements: int = 0
    operations: float = 0.0
    columns: int = 0
    """Numbers that a convolution may lay out before it multiplies: every window of the input."""


class Room(DispatchMode):
    """While active, every torch operation is measured against a meter before it runs."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._meter = meter
        self._operations = 0.0
        # a recurrent layer repeats the same step, and measuring takes longer than the step
        self._known: dict[Hashable, Cost] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        self._meter.require_time()
        if _makes_tensors(func):
            self._measure(func, args, kwargs)
        return func(*args, **kwargs)

    def _measure(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        asked = (func, _form(args), _form(list(kwargs.items())))
        cost = self._known.get(asked)
        if cost is None:
            cost = self._known[asked] = _cost(func, args, kwargs)
        self._meter.add_elements(cost.elements, "its graph computes")
        self._operations += cost.operations
        self._meter.require_time(self._operations / SPEED)
        if cost.columns:
            before = self._meter.elements
            self._meter.add_elements(cost.columns, "a convolution in its graph lays out")
            self._meter.elements = before


@contextmanager
def room(meter: Meter) -> Iterator[None]:
    """One pass over a graph, with the count starting at zero."""
    meter.elements = 0
    with Room(meter):
        yield


def _makes_tensors(func: Any) -> bool:
    """Whether an operation makes new tensors, not a number or a view."""
    returns = func._schema.returns
    return any("Tensor" in str(item.type) for item in returns) and not any(r.alias_info for r in returns)


def _form(item: Any) -> Hashable:
    """A key for an argument without a tensor's data; 1, 1.0 and True differ."""
    if isinstance(item, Tensor):
        return item.shape, item.stride(), item.dtype
    if isinstance(item, (tuple, list)):
        return tuple(map(_form, item))
    return type(item), item


def _cost(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Cost:
    try:
        made = _on_shapes(func, args, kwargs)
    except NotImplementedError:  # selection by a mask: never more than the input
        return Cost()
    taken = sum(item.numel() for item in tree_leaves((args, kwargs)) if isinstance(item, Tensor))
    count = flop_registry.get(func.overloadpacket)
    columns = 0
    if func.overloadpacket is torch.ops.aten.convolution:
        columns = math.prod(args[1].shape[1:]) * made.shape[0] * math.prod(made.shape[2:])
    return Cost(
        sum(tensor.numel() for tensor in tree_leaves(made) if isinstance(tensor, Tensor)),
        taken + (0 if count is None else count(*args, **kwargs, out_val=made)),
        columns,
    )


def _on_shapes(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of an operation on tensors without data."""
    args, kwargs = tree_map_only(Tensor, _without_data, (args, kwargs))
    if any(argument.name == "device" for argument in func._schema.arguments):  # type: ignore[attr-defined]
        kwargs = {**kwargs, "device": torch.device("meta")}
    return func(*args, **kwargs)


def _without_data(tensor: Tensor) -> Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def require_room(sizes: Sequence[int]) -> None:
    """Refuse a tensor of absurd size before it is made."""
    if math.prod(sizes) > LARGEST or min(sizes, default=0) < 0:
        raise PredictorError(
            f"a tensor of shape {tuple(sizes)} is asked for; the limit is {LARGEST} numbers."
        )


def listed(values: Tensor) -> list[Any]:
    """The numbers of a shape or list of axes."""
    if values.numel() > LONGEST:
        raise PredictorError(f"a list of {values.numel()} sizes or axes is given; the limit is {LONGEST}.")
    numbers: list[Any] = values.tolist()
    return numbers
