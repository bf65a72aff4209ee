"""Two modes of torch under which code that names its own precision computes in another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

LOWER = (torch.float32, torch.float16, torch.bfloat16)
"""Dtypes that a float64 copy stands in for."""

_CASTS = (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16)
"""Calls that name a dtype without an argument."""


class CastsToFloat64(TorchFunctionMode):
    """Within it, code that asks torch for a lower floating precision is given float64."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Every call of torch comes through here."""
        func = torch.Tensor.double if func in _CASTS else func
        return func(*map(_raised, args), **{key: _raised(value) for key, value in (kwargs or {}).items()})


def _raised(argument: Any) -> Any:
    """float64 in place of a lower floating dtype, anything else as it is."""
    return torch.float64 if isinstance(argument, torch.dtype) and argument in LOWER else argument


class DefaultDtype(TorchFunctionMode):
    """Within it, floats made of no floats (`torch.zeros(n)`, `indices / 2`) have a given dtype.

    `torch.set_default_dtype` would do that for the whole process, and layers that another thread builds
    meanwhile would have the wrong one; a mode belongs to its thread. It reaches no further than Python:
    compiled TorchScript makes what it likes, and is copied in its own dtype if that clashes.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self._dtype = dtype
        self._taken = () if dtype == torch.get_default_dtype() else (torch.get_default_dtype(),)
        self.needed = False
        """Whether it had anything to do."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Every call of torch comes through here."""
        kwargs = kwargs or {}
        made = func(*args, **kwargs)
        if not isinstance(made, Tensor) or made.dtype not in self._taken or func in _CASTS:
            return made
        if any(map(_says_its_dtype, _spread((*args, *kwargs.values())))):
            return made
        self.needed = True
        return self._again(func, args, kwargs, made)

    def _again(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], made: Tensor) -> Any:
        """The same in the wanted dtype: asked for by name, or of whole numbers turned into floats before."""
        try:
            return func(*args, **kwargs, dtype=self._dtype)
        except (TypeError, RuntimeError):
            pass
        named = {key: self._floats(value) for key, value in kwargs.items()}
        try:
            found = func(*map(self._floats, args), **named)
        except (TypeError, RuntimeError):
            found = made
        return found.to(self._dtype)

    def _floats(self, argument: Any) -> Any:
        return argument.to(self._dtype) if isinstance(argument, Tensor) else argument


def _spread(arguments: Any) -> Iterator[Any]:
    """The arguments, those in lists and tuples one by one."""
    for argument in arguments:
        if isinstance(argument, (list, tuple)):
            yield from _spread(argument)
        else:
            yield argument


def _says_its_dtype(argument: Any) -> bool:
    """Whether an argument decides the dtype of what is made of it, so that the default does not."""
    if isinstance(argument, Tensor):
        return argument.is_floating_point() or argument.is_complex()
    return isinstance(argument, (torch.dtype, np.ndarray, np.generic, str))
