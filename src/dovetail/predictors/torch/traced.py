"""A tensor without numbers: it goes through a module and records what is done to it.

Its data are places of numbers in a `Recording`. Code that wants to see a value (a branch, `item`, numpy) is
refused, so what is recorded is what the module does for every input. Views are views of the places, and what
is changed in place is changed for all views of it, as with numbers. Operations that only move numbers are
carried out on their places.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import UnsupportedError
from dovetail.networks.program import NOTHING, Recording
from dovetail.predictors.torch.layers import DispatchMode


class Traced(Tensor):
    """Places of numbers, in the shape of a tensor."""

    places: Tensor
    """int64, on the CPU."""
    recording: Recording

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """As without it. That there is one keeps modules from handing attention on as one operation."""
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @staticmethod
    def __new__(
        cls, places: Tensor, recording: Recording, dtype: torch.dtype, device: torch.device
    ) -> Traced:
        """With the strides of its places."""
        made: Traced = torch.Tensor._make_wrapper_subclass(
            cls, places.shape, strides=places.stride(), dtype=dtype, device=device
        )
        made.places, made.recording = places, recording
        recording.formats.add(str(dtype).removeprefix("torch."))
        return made

    def __init__(
        self, places: Tensor, recording: Recording, dtype: torch.dtype, device: torch.device
    ) -> None:
        super().__init__()

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"Traced{tuple(self.shape)}"

    def like(self, places: Tensor, dtype: torch.dtype | None = None) -> Traced:
        """Other numbers of the same recording."""
        return Traced(places, self.recording, dtype or self.dtype, self.device)

    def new(self, places: IntArray, shape: Any) -> Traced:  # type: ignore[override]
        """New numbers, in some shape."""
        return self.like(torch.from_numpy(places).reshape(tuple(shape)))

    @property
    def flat(self) -> IntArray:
        """The places, one after the other."""
        return np.asarray(self.places.reshape(-1).numpy())

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Every operation comes through here."""
        name = func.overloadpacket.__name__
        rule = HANDLERS.get(name)
        if rule is not None:
            return rule(func, *args, **(kwargs or {}))
        if name.endswith("_") and name[:-1] in HANDLERS and name[:-1] not in MOVING:
            return changed_in_place(args[0], HANDLERS[name[:-1]](func, *args, **(kwargs or {})))
        return _taken_apart(func, args, kwargs or {})


class Constants(DispatchMode):
    """Within it new tensors are traced: what depends on the inputs may be written into them."""

    def __init__(self, like: Traced) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._like = like

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Every operation comes through here."""
        made = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name == "empty" and made.is_floating_point():
            made.zero_()
        return as_traced(made, self._like) if name in NEW and made.is_floating_point() else made


NEW = ("zeros", "ones", "full", "empty")
"""Operations that make tensors of nothing."""

Handler = Callable[..., Any]
HANDLERS: dict[str, Handler] = {}
"""What each operation of torch records, by its name; without the underscore of what works in place."""


MOVING = (
    "view", "_unsafe_view", "reshape", "permute", "transpose", "t", "unsqueeze", "squeeze", "expand",
    "slice", "select", "split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk",
    "unbind", "alias", "detach", "clone", "as_strided", "flip", "index_select", "diagonal", "narrow",
    "unfold", "repeat", "roll", "gather", "_reshape_alias", "contiguous", "movedim", "lift_fresh", "rot90",
    "pixel_shuffle", "channel_shuffle",
)  # fmt: skip
"""Operations that only move numbers; what they do in place is not the same thing."""


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Enter a handler for operations of torch; it is called with the operation and its arguments."""

    def enter(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return enter


def changed_in_place(tensor: Any, made: Traced) -> Any:
    """The tensor with other numbers in it, and all that look at it."""
    if not isinstance(tensor, Traced):
        raise UnsupportedError("what depends on the inputs is written into a constant tensor")
    tensor.places.copy_(made.places)
    return tensor


def numbers(tensor: Tensor) -> FloatArray:
    """A constant tensor in float64."""
    if isinstance(tensor, Traced):
        raise UnsupportedError("an operation needs a constant where it is given what depends on the inputs")
    return np.asarray(tensor.detach().to(dtype=torch.float64, device="cpu").numpy())


def as_traced(value: Any, like: Traced) -> Traced:
    """Constants as numbers of the recording."""
    if isinstance(value, Traced):
        return value
    tensor = value if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)
    made = like.new(like.recording.constants(numbers(tensor).reshape(-1)), tensor.shape)
    return made.like(made.places, tensor.dtype if isinstance(value, Tensor) else None)


def _taken_apart(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """As torch itself is made up of others; its table of further ones takes seconds to import."""
    made = func.decompose(*args, **kwargs)
    if made is NotImplemented:
        raise UnsupportedError(f"there is no bound for the operation {func} of torch")
    return made


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
