"""Frozen copies of a module for gradients: in float64 wherever its code allows it.

Most modules turned into float64 compute in float64. Code that casts down itself (`x.half()`) does so under
`CastsToFloat64`. Code that requires a lower precision (compiled TorchScript) runs in its own dtype. Which of
the three applies is found when the copy gets its first rows. Recurrent networks on a GPU run without cuDNN,
whose kernels cannot be differentiated as a solve needs it.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from dovetail.core.errors import PredictorError

_lock = threading.Lock()
_users: list[bool] = []
"""cuDNN's switch before the first forward pass that needs it off."""


@dataclass(frozen=True)
class CopyMode:
    """How a copy computes."""

    in_float64: bool
    """Otherwise in the module's own dtypes."""
    redirects_casts: bool = False
    """Whether it needs `CastsToFloat64` to compute in float64."""
    sets_default: bool = True
    """Whether it runs inside `DefaultDtype`, which costs some time at every layer."""


MODES = (CopyMode(True), CopyMode(True, redirects_casts=True), CopyMode(False))
"""The modes to try, best first."""


class FrozenCopy:
    """A copy in one mode: (n, d) float64 rows to (n, q) float64 values."""

    def __init__(
        self,
        run: Callable[[Tensor], Any],
        mode: CopyMode,
        dtypes: Sequence[torch.dtype],
        *,
        plain_kernels: bool,
    ) -> None:
        self._run, self._mode, self._dtypes = run, mode, dtypes
        self._plain_kernels = plain_kernels
        """Whether it must run without cuDNN."""
        self._needs_default = False

    @property
    def mode(self) -> CopyMode:
        """The mode, without parts that the rows so far did not need."""
        return replace(self._mode, sets_default=self._needs_default)

    def settled(self) -> FrozenCopy:
        """The same copy with that mode fixed."""
        return FrozenCopy(self._run, self.mode, self._dtypes, plain_kernels=self._plain_kernels)

    def __call__(self, inputs: Tensor) -> Tensor:
        """The values of some rows, with their autograd graph."""
        try:
            outputs = self._values(inputs, self._mode.sets_default)
        except RuntimeError:
            if self._mode.sets_default:
                raise
            outputs = self._values(inputs, True)  # a branch that was not taken before
        return as_table(outputs, len(inputs)).to(torch.float64)

    def _values(self, inputs: Tensor, sets_default: bool) -> Any:
        outputs, dtype = in_first_dtype(
            self._dtypes, lambda dtype: self._in_dtype(dtype, inputs, sets_default)
        )
        self._dtypes = likeliest_first(self._dtypes, dtype)
        return outputs

    def _in_dtype(self, dtype: torch.dtype, inputs: Tensor, sets_default: bool) -> Any:
        default = DefaultDtype(dtype)
        plain = without_cudnn() if self._plain_kernels else nullcontext()
        casts = CastsToFloat64() if self._mode.redirects_casts else nullcontext()
        with plain, default if sets_default else nullcontext(), casts:
            outputs = self._run(inputs.to(dtype, copy=True))
        self._needs_default |= default.needed
        return outputs


class UndecidedCopy:
    """Copies in every mode, of a module that has evaluated no rows yet: the first rows decide."""

    def __init__(self, name: str, copies: Sequence[FrozenCopy]) -> None:
        self._name, self._copies = name, copies
        self._chosen: FrozenCopy | None = None

    def __call__(self, inputs: Tensor) -> Tensor:
        """The values of some rows, with their autograd graph."""
        if self._chosen is None:
            first, _ = first_that_runs(self._name, self._copies, inputs)
            self._chosen = first.settled()
            self._copies = ()
        return self._chosen(inputs)


def first_that_runs(name: str, copies: Iterable[FrozenCopy], rows: Tensor) -> tuple[FrozenCopy, Tensor]:
    """The first copy that gives values and gradients, with the values and their graph."""
    reason: Exception | None = None
    for copied in copies:
        try:
            return copied, _with_graph(copied, rows)
        except PredictorError:
            raise
        except Exception as failure:
            reason = failure
    raise PredictorError(
        f"{name} has no gradient that torch can follow ({type(reason).__name__}: {reason}); "
        "give a plain function of numpy batches instead, whose gradient is taken by differences."
    ) from reason


def _with_graph(copied: FrozenCopy, rows: Tensor) -> Tensor:
    with torch.inference_mode(False), torch.enable_grad():
        inputs = rows.clone().detach().requires_grad_()
        outputs = copied(inputs)
        if outputs.requires_grad:
            torch.autograd.grad(outputs.sum(), inputs, allow_unused=True, retain_graph=True)
    return outputs


def in_first_dtype(
    dtypes: Sequence[torch.dtype], run: Callable[[torch.dtype], Any]
) -> tuple[Any, torch.dtype]:
    """The result in the first dtype of inputs that a module accepts, and that dtype."""
    for dtype in dtypes:
        try:
            return run(dtype), dtype
        except RuntimeError:
            if dtype is dtypes[-1]:
                raise
    raise AssertionError("a module has at least one dtype")


def likeliest_first(dtypes: Sequence[torch.dtype], taken: torch.dtype | None) -> list[torch.dtype]:
    """The dtypes, with the last accepted one first."""
    return sorted(dtypes, key=lambda dtype: dtype != taken)


def frozen(module: nn.Module, dtype: torch.dtype | None, device: str) -> nn.Module:
    """A copy in evaluation mode with frozen parameters, in `dtype` (None: its own)."""
    # Tensors that are results of a computation (old-style weight_norm keeps one) cannot be
    # deep-copied; a detached copy stands in, to be recomputed by the module's own hooks.
    memo: dict[int, Any] = {
        id(value): value.detach().clone()
        for part in module.modules()
        for value in vars(part).values()
        if isinstance(value, Tensor) and not value.is_leaf
    }
    try:
        with torch.no_grad():  # a ScriptModule's copy would have a history otherwise
            copied = copy.deepcopy(module, memo)
    except Exception as reason:
        raise PredictorError(
            f"{type(module).__name__} cannot be copied ({type(reason).__name__}: {reason}); dovetail "
            "works on a copy so that yours is left alone. Remove what does not copy (open files, "
            "locks, tensors with a history) or give the module a __deepcopy__."
        ) from reason
    for parameter in copied.parameters():  # a ScriptModule has no requires_grad_ of its own
        parameter.requires_grad_(False)
    return copied.to(device=device, dtype=dtype).eval()


@contextmanager
def without_cudnn() -> Iterator[None]:
    """cuDNN's recurrent kernels have no input gradients in evaluation mode, and no second ones at all.

    Torch has one switch for the whole process and no other way. It is touched only for recurrent networks on
    a GPU; other threads compute the same meanwhile, with other kernels. The last user of the switch restores
    it.
    """
    with _lock:
        _users.append(torch.backends.cudnn.enabled if not _users else _users[0])
        torch.backends.cudnn.enabled = False
    try:
        yield
    finally:
        with _lock:
            before = _users.pop()
            if not _users:
                torch.backends.cudnn.enabled = before


def as_table(outputs: Any, samples: int) -> Tensor:
    """The module's outputs as (n, q)."""
    if not isinstance(outputs, Tensor):
        raise PredictorError(
            f"the module returns {type(outputs).__name__}, not a tensor; "
            "wrap it in a module whose forward returns the one tensor that is meant."
        )
    table: Tensor = outputs.unsqueeze(1) if outputs.ndim == 1 else outputs
    if table.ndim != 2 or len(table) != samples:
        raise PredictorError(
            f"the module turns {samples} samples into a tensor of shape {tuple(outputs.shape)}; "
            "it must return (n_samples, n_outputs) or (n_samples,)."
        )
    return table


LOWER = (torch.float32, torch.float16, torch.bfloat16)
"""Dtypes that a float64 copy replaces."""

_CASTS = (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16)
"""Methods that name a dtype without an argument."""


class CastsToFloat64(TorchFunctionMode):
    """Inside, code that asks torch for a lower floating precision gets float64."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Receives every call of torch inside the mode."""
        func = torch.Tensor.double if func in _CASTS else func
        return func(
            *map(_float64_instead, args),
            **{key: _float64_instead(value) for key, value in (kwargs or {}).items()},
        )


def _float64_instead(argument: Any) -> Any:
    """float64 instead of a lower floating dtype; other values are unchanged."""
    return torch.float64 if isinstance(argument, torch.dtype) and argument in LOWER else argument


class DefaultDtype(TorchFunctionMode):
    """Inside, floats that are made without floats (`torch.zeros(n)`, `indices / 2`) have a given dtype.

    `torch.set_default_dtype` would do that for the whole process, and layers that another thread builds
    meanwhile would have the wrong one; a mode belongs to its thread. The mode affects Python code only:
    compiled TorchScript chooses its own dtypes, and is copied in its own dtype if they clash.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self._dtype = dtype
        self._taken = () if dtype == torch.get_default_dtype() else (torch.get_default_dtype(),)
        self.needed = False
        """Whether the mode changed any call."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Receives every call of torch inside the mode."""
        kwargs = kwargs or {}
        made = func(*args, **kwargs)
        if not isinstance(made, Tensor) or made.dtype not in self._taken or func in _CASTS:
            return made
        if any(map(_says_its_dtype, _spread((*args, *kwargs.values())))):
            return made
        self.needed = True
        return self._in_wanted_dtype(func, args, kwargs, made)

    def _in_wanted_dtype(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], made: Tensor) -> Any:
        """The same in the wanted dtype: requested by name, or with integers turned into floats first."""
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
    """The arguments, with lists and tuples flattened."""
    for argument in arguments:
        if isinstance(argument, (list, tuple)):
            yield from _spread(argument)
        else:
            yield argument


def _says_its_dtype(argument: Any) -> bool:
    """Whether an argument determines the dtype of the result, so that the default does not."""
    if isinstance(argument, Tensor):
        return argument.is_floating_point() or argument.is_complex()
    return isinstance(argument, (torch.dtype, np.ndarray, np.generic, str))
