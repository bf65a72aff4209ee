"""The room a graph may take, seen before it is taken.

A few bytes of a graph can ask for terabytes: by one shape, or by doubling a tensor forty times. What an
operator would make is found by running it on tensors without data (torch's "meta" device, shapes alone);
only then is it run. Thus no operator needs a rule of its own, and none can be forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.flop_counter import flop_registry

from dovetail.core.file_limits import Meter
from dovetail.predictors.torch.dispatch import DispatchMode

SPEED = 1e10
"""Multiplications and additions a slow core does in a second; what would take too long is not begun."""


class Room(DispatchMode):
    """While it is entered, every torch operation is measured against a meter before it is run."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._meter = meter
        self._operations = 0.0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        self._meter.require_time()
        if _makes_tensors(func):
            self._measure(func, args, kwargs)
        return func(*args, **kwargs)

    def _measure(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            made = _on_shapes(func, args, kwargs)
        except NotImplementedError:  # how many depends on the data: picking by a mask, never more than it has
            return
        sizes = [tensor.numel() for tensor in tree_leaves(made) if isinstance(tensor, Tensor)]
        self._meter.add_elements(sum(sizes), "its graph computes")
        self._operations += sum(
            item.numel() for item in tree_leaves((args, kwargs)) if isinstance(item, Tensor)
        )
        count = flop_registry.get(func.overloadpacket)
        if count is not None:
            self._operations += count(*args, **kwargs, out_val=made)
        self._meter.require_time(self._operations / SPEED)
        if func.overloadpacket is torch.ops.aten.convolution:
            self._require_columns(args[1], made)

    def _require_columns(self, weight: Tensor, made: Tensor) -> None:
        """Convolutions may copy every window of the input before they multiply; that copy is not kept."""
        columns = math.prod(weight.shape[1:]) * made.shape[0] * math.prod(made.shape[2:])
        before = self._meter.elements
        self._meter.add_elements(columns, "a convolution in its graph lays out")
        self._meter.elements = before


@contextmanager
def room(meter: Meter) -> Iterator[None]:
    """One pass over a graph: what it computes is counted from nothing."""
    meter.elements = 0
    with Room(meter):
        yield


def _makes_tensors(func: Any) -> bool:
    """Whether an operation makes new tensors: not a number, not another view of what is there."""
    returns = func._schema.returns
    return any("Tensor" in str(item.type) for item in returns) and not any(r.alias_info for r in returns)


def _on_shapes(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What an operation would make, without any data."""
    args, kwargs = tree_map_only(Tensor, _without_data, (args, kwargs))
    if any(argument.name == "device" for argument in func._schema.arguments):  # type: ignore[attr-defined]
        kwargs = {**kwargs, "device": torch.device("meta")}
    return func(*args, **kwargs)


def _without_data(tensor: Tensor) -> Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
