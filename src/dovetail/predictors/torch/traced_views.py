"""Operations that only move numbers: carried out on their places."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from dovetail.core.errors import UnsupportedError
from dovetail.networks.program import NOTHING
from dovetail.predictors.torch.traced import HANDLERS, MOVING, Traced, as_traced, changed_in_place, handles


@handles(*MOVING)
def _moved(func: Any, tensor: Traced, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(tensor, Traced):
        raise UnsupportedError(f"{func} picks numbers by what depends on the inputs")
    made = func(tensor.places, *args, **kwargs)
    return tensor.like(made) if isinstance(made, Tensor) else [tensor.like(one) for one in made]


@handles("transpose_", "t_", "squeeze_", "unsqueeze_")
def _turned(func: Any, tensor: Traced, *args: Any) -> Any:
    """The tensor itself is looked at in another way from now on; its places are the same."""
    tensor.places = getattr(tensor.places, func.overloadpacket.__name__.rstrip("_"))(*args)
    with torch._C._DisableTorchDispatch():
        func(tensor, *args)
    return tensor


@handles("index")
def _index(func: Any, tensor: Traced, indices: Any) -> Any:
    if not isinstance(tensor, Traced) or any(isinstance(one, Traced) for one in indices):
        raise UnsupportedError(f"{func} picks numbers by what depends on the inputs")
    return tensor.like(func(tensor.places, [None if i is None else i.cpu() for i in indices]))


@handles("cat", "stack")
def _joined(func: Any, tensors: Any, dim: int = 0) -> Any:
    first = next(one for one in tensors if isinstance(one, Traced))
    return first.like(func([as_traced(one, first).places for one in tensors], dim))


@handles("_to_copy")
def _cast(func: Any, tensor: Traced, *, dtype: torch.dtype | None = None, **kwargs: Any) -> Any:
    """To another float format: the numbers are rounded, like a product with 1."""
    if dtype is not None and not dtype.is_floating_point:
        raise UnsupportedError(f"what depends on the inputs is turned into {dtype}")
    if dtype in (None, tensor.dtype):
        return tensor.like(tensor.places.clone(memory_format=kwargs.get("memory_format")))
    return HANDLERS["mul"](func, tensor.like(tensor.places.clone(), dtype), 1.0)


@handles("copy_")
def _copied(func: Any, tensor: Any, source: Any, non_blocking: bool = False) -> Any:
    like = source if isinstance(source, Traced) else tensor
    if isinstance(source, Traced) and source.dtype != tensor.dtype:
        source = HANDLERS["mul"](func, source, 1.0)  # which is rounded
    return changed_in_place(tensor, like.like(as_traced(source, like).places.expand(tensor.shape)))


@handles("fill", "zero")
def _filled(func: Any, tensor: Traced, value: Any = 0.0) -> Any:
    return tensor.like(as_traced(value, tensor).places.expand(tensor.shape))


@handles("constant_pad_nd")
def _padded(func: Any, tensor: Traced, pad: Any, value: float = 0.0) -> Any:
    filler = NOTHING if value == -math.inf else int(as_traced(value, tensor).places)
    return tensor.like(func(tensor.places, pad, filler))


@handles(
    "zeros_like", "ones_like", "new_zeros", "new_ones", "new_full", "full_like", "new_empty", "empty_like"
)
def _constant(func: Any, tensor: Traced, *args: Any, **kwargs: Any) -> Any:
    kwargs.pop("memory_format", None)
    dtype, device = kwargs.pop("dtype", None) or tensor.dtype, kwargs.pop("device", None) or tensor.device
    made = func(torch.zeros_like(tensor.places, dtype=dtype, device=device), *args, **kwargs)
    made = made.zero_() if func.overloadpacket.__name__ in ("new_empty", "empty_like") else made
    return as_traced(made, tensor) if made.is_floating_point() else made


@handles("where")
def _where(func: Any, mask: Any, left: Any, right: Any) -> Any:
    if isinstance(mask, Traced):
        raise UnsupportedError("torch.where asks about what depends on the inputs")
    like = left if isinstance(left, Traced) else right
    if not isinstance(like, Traced):
        raise UnsupportedError("torch.where asks about what depends on the inputs")
    return like.like(torch.where(mask.cpu(), as_traced(left, like).places, as_traced(right, like).places))


@handles("masked_fill")
def _masked_fill(func: Any, tensor: Any, mask: Any, value: Any) -> Any:
    return _where(func, mask, value, tensor)


@handles("_local_scalar_dense", "is_nonzero", "equal", "nonzero", "item")
def _seen(func: Any, *args: Any, **kwargs: Any) -> Any:
    raise UnsupportedError("its code looks at a value, so it may do different things for different inputs")
