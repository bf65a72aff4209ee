"""Any `torch.nn.Module` as a predictor.

`predict` runs the owner's module where it lives, in its own dtype, in evaluation mode;
the mode is restored after every call. Gradients never touch the owner's module: they
run through a float64 copy in evaluation mode with frozen parameters. Where the code itself
asks for a lower precision (`x.half()`, say), the copy is given float64 instead.
"""

from __future__ import annotations

import copy
import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import PredictorError
from dovetail.core.layers import Layer
from dovetail.core.predictor import Traits
from dovetail.core.rounding import Computation
from dovetail.predictors.torch_arithmetic import arithmetic_of
from dovetail.predictors.torch_layers import Part, parts_of, proved_layers

KINKED = (
    "Relu", "LeakyRelu", "Prelu", "Threshold", "Hardtanh", "Clamp", "Abs", "Max", "Amax", "Min", "Amin",
    "Where", "Sort", "Topk", "Hardswish", "Hardsigmoid", "AdaptiveMax",
)  # fmt: skip
"""Autograd nodes whose second derivative carries nothing, by the beginning of their names."""

PASSING = ("Squeeze", "Unsqueeze", "View", "Reshape", "Alias", "Clone", "ToCopy", "Select", "Slice")
"""Autograd nodes that hand a value on unchanged: looked through to find the last real operation."""

LINEAR = ("Addmm", "Mm", "Linear", "Convolution")
"""Autograd nodes that a logit comes from and a probability does not (a sum may be a mean of sigmoids)."""

LOWER = (torch.float32, torch.float16, torch.bfloat16)
"""Dtypes that a float64 copy stands in for."""

ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 0.15}
"""By how much a small batch may differ from a large one, whose sums are taken in another order."""

_log = logging.getLogger("dovetail")

MODE = threading.RLock()
"""Held while a module is in evaluation mode: it may be switched back under another thread otherwise."""


class TorchPredictor:
    """A `torch.nn.Module` that maps (n, d) features to (n, q) or (n,) outputs."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self.name = type(module).__name__
        self.doubles = True
        self._redirects = False
        """Whether the copy needs `Doubles` to compute in float64."""
        self._makes = True
        """Whether the copy is run within `Made`, which costs some time at every layer."""
        self._made = False
        """Whether `Made` ever had anything to do."""
        self._recurrent = any(isinstance(part, nn.RNNBase) for part in module.modules())
        self._entry: torch.dtype | None = None
        """The dtype the module was last seen to take."""
        _require_usable(module)

    @property
    def module(self) -> nn.Module:
        """The owner's module."""
        return self._module

    @property
    def device(self) -> str:
        """Where the module lives now."""
        return str(next((tensor.device for tensor in self._tensors()), "cpu"))

    @property
    def exact(self) -> bool:
        """Whether the module computes in float64, all of it."""
        return all(dtype == torch.float64 for dtype in self._dtypes())

    @property
    def rounding(self) -> float:
        """How coarse the coarsest part is."""
        return max(ROUNDING.get(dtype, ROUNDING[torch.bfloat16]) for dtype in self._dtypes())

    @property
    def features(self) -> int | None:
        """How many features the module takes, where its first layer shows it."""
        first: nn.Module = self._module
        while type(first).forward is nn.Sequential.forward and len(list(first.children())):
            first = next(first.children())
        return first.in_features if isinstance(first, nn.Linear) else None

    def predict(self, X: FloatArray) -> FloatArray:
        """The module's own answer."""
        with MODE, _evaluation_mode(self.module), torch.no_grad():
            outputs = _table(self._answer(X), len(X))
        return np.asarray(outputs.to(dtype=torch.float64, device="cpu").numpy())

    def snapshot(self, device: str) -> Callable[[Tensor], Tensor]:
        """A frozen copy for gradients: float64 in and out, and inside wherever the module allows it."""
        dtype = torch.float64 if self.doubles else self._entry_dtypes()[0]
        copied, redirects = self._frozen(torch.float64 if self.doubles else None, device), self._redirects
        recurrent_kernels = self._recurrent and torch.device(device).type == "cuda"

        def run(inputs: Tensor, makes: bool) -> Any:
            plain = _without_cudnn() if recurrent_kernels else nullcontext()
            redirected = Doubles() if redirects else nullcontext()
            made = Made(dtype)
            with plain, made if makes else nullcontext(), redirected:
                outputs = copied(inputs.to(dtype, copy=True))
            self._made |= made.needed
            return outputs

        def forward(inputs: Tensor) -> Tensor:
            try:
                outputs = run(inputs, self._makes)
            except RuntimeError:
                if self._makes:
                    raise
                outputs = run(inputs, True)  # a branch that was not taken before
            return _table(outputs, len(inputs)).to(torch.float64)

        return forward

    def examine(self, X: FloatArray) -> Traits:
        """Smoothness and last operation, read off the autograd graph of one evaluation."""
        outputs = self._first_graph(X)
        if not self.exact:
            own = " and ".join(str(dtype).removeprefix("torch.") for dtype in self._dtypes())
            copied = "a float64 copy" if self.doubles else "that dtype too: its code allows no other"
            _log.info("%s computes in %s; gradients use %s", self.name, own, copied)
        names = [node.name() for node in _graph(outputs)]
        smooth = not any(name.startswith(KINKED) for name in names)
        last = _last_operation(outputs)
        if last.startswith("Sigmoid"):
            return Traits(smooth, ends_in_sigmoid=True)
        return Traits(smooth, ends_in_sigmoid=False if last.startswith(LINEAR) else None)

    def layers(self) -> tuple[Layer, ...]:
        """The module written out, if it is a plain sequence of dense layers and common activations."""
        return self._operations()

    def computation(self) -> Computation:
        """Every operation, and the arithmetic it is carried out in here and now."""
        layers = self._operations()
        return Computation(layers, arithmetic_of(self._dtypes(), torch.device(self.device).type))

    def _operations(self) -> tuple[Layer, ...]:
        """What the module is known to compute, one operation after the other."""
        with MODE, _evaluation_mode(self.module):
            return proved_layers(self.name, self._parts(), self._run)

    def _parts(self) -> list[Part]:
        """What the classes of the module's parts say it computes."""
        return list(parts_of(self.module))

    def _run(self, batch: Tensor) -> Any:
        """The owner's module on one batch."""
        return self.module(batch)

    def _frozen(self, dtype: torch.dtype | None, device: str) -> Callable[[Tensor], Any]:
        """A copy with frozen parameters, in `dtype` (None: its own)."""
        return _frozen_copy(self.module, dtype, device)

    def _tensors(self) -> Iterator[Tensor]:
        """The numbers of the module: they show dtype and device."""
        tensors = itertools.chain(self.module.parameters(), self.module.buffers())
        return (tensor for tensor in tensors if tensor.is_floating_point())

    def _dtypes(self) -> tuple[torch.dtype, ...]:
        """The dtypes of the module, in the order they are met."""
        return tuple(dict.fromkeys(tensor.dtype for tensor in self._tensors())) or (torch.float64,)

    def _entry_dtypes(self) -> list[torch.dtype]:
        """The dtypes that inputs may have to have, likeliest first."""
        return sorted(self._dtypes(), key=lambda dtype: dtype != self._entry)

    def _answer(self, X: FloatArray) -> Any:
        """What the module says of `X`, in the first of its own dtypes that it takes."""
        dtypes, device = self._entry_dtypes(), self.device
        for dtype in dtypes:
            # a copy, since a module may change its input in place
            batch = torch.tensor(np.ascontiguousarray(X), dtype=dtype, device=device)
            try:
                outputs = self._run(batch)
            except RuntimeError:
                if dtype is dtypes[-1]:
                    raise
                continue
            self._entry = dtype
            return outputs
        raise AssertionError("a module has at least one dtype")

    def _first_graph(self, X: FloatArray) -> Tensor:
        """One evaluation with its graph: in float64, else with `Doubles`, else in the module's own dtype."""
        for doubles, redirects in ((True, False), (True, True), (False, False)):
            self.doubles, self._redirects, self._makes, self._made = doubles, redirects, True, False
            try:
                outputs = self._with_graph(X)
                self._makes = self._made
                return outputs
            except PredictorError:
                raise
            except Exception as failure:
                reason = failure
        raise PredictorError(
            f"{self.name} has no gradient that torch can follow ({type(reason).__name__}: {reason}); "
            "give a plain function of numpy batches instead, whose gradient is taken by differences."
        ) from reason

    def _with_graph(self, X: FloatArray) -> Tensor:
        with torch.inference_mode(False), torch.enable_grad():
            inputs = torch.tensor(X, dtype=torch.float64, requires_grad=True)
            outputs = self.snapshot("cpu")(inputs)
            if outputs.requires_grad:
                torch.autograd.grad(outputs.sum(), inputs, allow_unused=True, retain_graph=True)
        return outputs


class Doubles(TorchFunctionMode):
    """Within it, code that asks torch for a lower floating precision is given float64."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Every call of torch comes through here."""
        func = torch.Tensor.double if func in _CASTS else func
        return func(*map(_double, args), **{key: _double(value) for key, value in (kwargs or {}).items()})


_CASTS = (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16)
"""Calls that name a dtype without an argument."""


def _double(argument: Any) -> Any:
    """float64 in place of a lower floating dtype, anything else as it is."""
    return torch.float64 if isinstance(argument, torch.dtype) and argument in LOWER else argument


class Made(TorchFunctionMode):
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


def _require_usable(module: nn.Module) -> None:
    lazy = (nn.UninitializedParameter, nn.UninitializedBuffer)
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if isinstance(tensor, lazy):
            raise PredictorError(f"{type(module).__name__}: {name} has no shape yet; run a batch through it.")
        if tensor.is_complex():
            raise PredictorError(
                f"{type(module).__name__}: {name} holds complex numbers, which dovetail cannot copy into "
                "float64; give a plain function of numpy batches that calls the module."
            )
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor.to(torch.float64)).all()):
            raise PredictorError(
                f"{type(module).__name__}: {name} holds NaN or infinity; train or load it again."
            )


def _table(outputs: Any, samples: int) -> Tensor:
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


def _frozen_copy(module: nn.Module, dtype: torch.dtype | None, device: str) -> nn.Module:
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
            frozen = copy.deepcopy(module, memo)
    except Exception as reason:
        raise PredictorError(
            f"{type(module).__name__} cannot be copied ({type(reason).__name__}: {reason}); dovetail "
            "works on a copy so that yours is left alone. Remove what does not copy (open files, "
            "locks, tensors with a history) or give the module a __deepcopy__."
        ) from reason
    for parameter in frozen.parameters():  # a ScriptModule has no requires_grad_ of its own
        parameter.requires_grad_(False)
    return frozen.to(device=device, dtype=dtype).eval()


def _last_operation(outputs: Tensor) -> str:
    """The last real operation; adding a constant to a linear map (a bias) is looked through."""
    for node in _graph(outputs):
        name: str = node.name()
        if name.startswith("Add") and not name.startswith("Addmm"):
            varying = [source.name() for source, _ in node.next_functions if source is not None]
            return str(varying[0]) if len(varying) == 1 and varying[0].startswith(LINEAR) else name
        if not name.startswith(PASSING):
            return name
    return ""


@contextmanager
def _evaluation_mode(module: nn.Module) -> Iterator[None]:
    training = [part for part in module.modules() if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


_cudnn_lock = threading.Lock()
_cudnn_users: list[bool] = []
"""What cuDNN's switch was, once for each forward pass that needs it off."""


@contextmanager
def _without_cudnn() -> Iterator[None]:
    """cuDNN's recurrent kernels have no input gradients in evaluation mode, and no second ones at all.

    Torch has one switch for the whole process and no other way. It is touched only for recurrent networks
    on a GPU; other threads compute the same meanwhile, with other kernels. The last one out puts it back.
    """
    with _cudnn_lock:
        _cudnn_users.append(torch.backends.cudnn.enabled if not _cudnn_users else _cudnn_users[0])
        torch.backends.cudnn.enabled = False
    try:
        yield
    finally:
        with _cudnn_lock:
            before = _cudnn_users.pop()
            if not _cudnn_users:
                torch.backends.cudnn.enabled = before


def _graph(outputs: Tensor, limit: int = 10_000) -> Iterator[Any]:
    """The autograd nodes behind `outputs`, nearest first, at most `limit`."""
    waiting: list[Any] = [outputs.grad_fn]
    seen: set[Any] = set()
    while waiting and len(seen) < limit:
        node = waiting.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node
        waiting.extend(next_node for next_node, _ in node.next_functions)
