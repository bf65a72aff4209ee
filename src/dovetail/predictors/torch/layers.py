"""A torch module as a list of layers, if the module certainly computes exactly these layers.

Bounds and proofs rest on these layers, so a few points at which both agree are not enough. A module is known

- if every part of it is of exactly a class of torch's own whose code is torch's own: no subclass (which a
  parametrisation makes, too), no forward put on the instance or the class, no hook on it or on all modules.
  Then only torch's own code runs, and the same operations for every input;
- and if its graph agrees: the operations that torch carries out on a batch are these layers, in this order,
  on these very parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules import module as all_modules
from torch.utils._python_dispatch import TorchDispatchMode

from dovetail.core.arrays import FloatArray
from dovetail.core.errors import UnsupportedError
from dovetail.networks.functions import LAYERS
from dovetail.networks.layers import Activation, Dense, Layer

PLAIN: dict[type[nn.Module], str] = {
    nn.Linear: "dense",
    **{getattr(nn, function.layer): name for name, function in LAYERS.items()},
    nn.Softmax: "softmax",
    nn.Identity: "",
    nn.Dropout: "",
    nn.Flatten: "",
}
"""The operation of each class after training; empty for classes that pass their input on."""

OWN_CODE = ("forward", "__call__", "_call_impl", "_wrapped_call_impl", "_compiled_call_impl", "__iter__")
"""Methods through which a module's answer passes."""
HARMLESS = frozenset(
    ("__init__", "__module__", "__doc__", "__qualname__", "__annotations__", "__annotate_func__",
     "__annotations_cache__", "__firstlineno__", "__static_attributes__", "__parameters__", "__orig_bases__",
     "__constants__", "__abstractmethods__", "_abc_impl")
)  # fmt: skip
"""Names that a class derived from nn.Sequential may define: they affect its construction, not its
computation."""


def _functions_of(cls: type) -> dict[str, Any]:
    return {name: getattr(cls, name, None) for name in OWN_CODE}


_AS_SHIPPED = {cls: _functions_of(cls) for cls in (*PLAIN, nn.Sequential)}
"""The code of each class when this file was loaded."""


def proved_layers(name: str, parts: list[TorchOperation], run: Callable[[Tensor], Any]) -> tuple[Layer, ...]:
    """The parts as layers, if the recorded graph agrees; `run` evaluates the trained network."""
    seen = recorded(parts, run)
    if not _share_memory(parts, seen):
        said = ", ".join(part.kind for part in seen) or "nothing"
        raise UnsupportedError(
            f"{name} does not carry out the operations that its layers say, but {said}; it cannot be written "
            'out. method="auto" takes any network.'
        )
    return tuple(_layer(part) for part in parts)


def parts_of(module: nn.Module, path: str = "") -> Iterator[TorchOperation]:
    """The operations of a module in evaluation mode, by the classes of its parts."""
    where = f" (at {path!r})" if path else ""
    reason = changed(module)
    if reason:
        raise UnsupportedError(
            f"{type(module).__name__}{where} cannot be written out: {reason}, so nobody can tell what it "
            'computes. method="auto" takes any module.'
        )
    if _is_sequence(type(module)):
        for name, part in module._modules.items():  # a module that appears twice counts twice
            assert part is not None, "nn.Sequential cannot run without one of its parts"
            yield from parts_of(part, f"{path}.{name}" if path else name)
        return
    kind = PLAIN.get(type(module))
    if kind is None or not _is_usual(module):
        raise UnsupportedError(
            f"layer {type(module).__name__}{where} cannot be written out; only nn.Sequential of Linear, "
            f"{', '.join(function.layer for function in LAYERS.values())} and Softmax can, of torch's own "
            'classes and with their usual options. method="auto" takes any module.'
        )
    if isinstance(module, nn.Linear):
        yield TorchOperation(kind, module.weight, module.bias)
    elif kind:
        yield TorchOperation(kind)


def changed(module: nn.Module) -> str:
    """Why a module may compute something else than its class; empty if it does not."""
    for hooks in ("forward_hooks", "forward_pre_hooks", "backward_hooks", "backward_pre_hooks"):
        if getattr(module, f"_{hooks}", None):
            return f"it has {hooks.replace('_', ' ')}"
        if getattr(all_modules, f"_global_{hooks}", None):
            return f"all modules have {hooks.replace('_', ' ')} (torch.nn.modules.module)"
    patched = [name for name in OWN_CODE if vars(module).get(name) is not None]
    if patched:
        return f"its {patched[0]} was replaced"
    cls = next((base for base in type(module).__mro__ if base in _AS_SHIPPED), None)
    if cls is None:
        return ""
    forward = _functions_of(cls)["forward"]
    own = isinstance(forward, FunctionType) and forward.__module__.startswith("torch.nn.modules.")
    return (
        "" if own and _functions_of(cls) == _AS_SHIPPED[cls] else f"the code of {cls.__name__} was replaced"
    )


def _is_sequence(cls: type) -> bool:
    """nn.Sequential, or a class that only builds one."""
    own = cls.__mro__[: cls.__mro__.index(nn.Sequential)] if issubclass(cls, nn.Sequential) else (cls,)
    return all(set(vars(base)) <= HARMLESS for base in own)


def _is_usual(module: nn.Module) -> bool:
    """Whether options are those that layers assume, and parameters are plain tensors."""
    if isinstance(module, nn.Softplus):
        return module.beta == 1.0 and module.threshold == 20.0
    if isinstance(module, nn.Softmax):
        return module.dim in (1, -1)
    if isinstance(module, nn.Flatten):
        return (module.start_dim, module.end_dim) == (1, -1)
    if isinstance(module, nn.Linear):
        tensors = [module.weight] if module.bias is None else [module.weight, module.bias]
        return all(
            type(tensor) in (nn.Parameter, Tensor) and tensor.is_floating_point() for tensor in tensors
        )
    return True


def _share_memory(parts: list[TorchOperation], seen: list[TorchOperation]) -> bool:
    return len(parts) == len(seen) and all(
        a.kind == b.kind and _one_tensor(a.weight, b.weight) and _one_tensor(a.bias, b.bias)
        for a, b in zip(parts, seen, strict=True)
    )


def _one_tensor(a: Tensor | None, b: Tensor | None) -> bool:
    """Whether two tensors share memory."""
    if a is None or b is None:
        return a is b
    return a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.stride() == b.stride()


def _layer(part: TorchOperation) -> Layer:
    if part.weight is None:
        return Activation(part.kind)
    weight = _numbers(part.weight)
    return Dense(weight, np.zeros(len(weight)) if part.bias is None else _numbers(part.bias))


def _numbers(tensor: Tensor) -> FloatArray:
    return np.array(tensor.detach().to(dtype=torch.float64, device="cpu").numpy())


OPERATIONS = {
    "addmm": "dense", "mm": "dense", "linear": "dense", "add": "bias", "relu_": "relu", "_softmax": "softmax",
    **{function.operation: name for name, function in LAYERS.items()},
}  # fmt: skip
"""torch's operations that count as layers, by name."""
VIEWS = ("t", "detach", "alias", "view", "transpose", "permute")
"""Operations that only change the view of a tensor."""
SHOWN = 3
"""Number of rows of the batch that records the graph."""


class DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A dispatch mode that torch's compiler does not know, because registering it would import the
    compiler (two seconds)."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class TorchOperation(NamedTuple):
    """One operation of a module, with the parameters of a dense one."""

    kind: str
    weight: Tensor | None = None
    bias: Tensor | None = None


class _Recorder(DispatchMode):
    """Records every operation of torch inside, with its operands."""

    def __init__(self, batch: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[TorchOperation] = []
        self.last = batch
        """The tensor that the next operation must use."""
        self._casts: list[tuple[Tensor, Tensor]] = []
        """Tensors converted to another dtype, each with its origin."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name == "_to_copy":
            self._casts.append((result, self._made_of(args[0])))
        elif name not in VIEWS:
            self._note(self._part(name, tuple(map(self._made_of, args)), bool(kwargs)))
            self.last = result
        return result

    def _made_of(self, argument: Any) -> Any:
        return next((source for cast, source in self._casts if cast is argument), argument)

    def _note(self, part: TorchOperation) -> None:
        """Add a bias to the product before it."""
        before = self.seen[-1] if self.seen else TorchOperation("")
        if part.kind == "bias" and before.kind == "dense" and before.bias is None:
            self.seen[-1] = before._replace(bias=part.bias)
        else:
            self.seen.append(part)

    def _part(self, name: str, args: tuple[Any, ...], options: bool) -> TorchOperation:
        """The operation, if it uses the result of the previous one and has no options."""
        kind = OPERATIONS.get(name, name)
        data = args[1] if name == "addmm" else args[0]
        if options or data is not self.last:
            return TorchOperation(f"{name} of something else")
        if name == "addmm":
            return TorchOperation(kind, args[2].t(), args[0])
        if name == "linear":
            return TorchOperation(kind, args[1], args[2] if len(args) > 2 else None)
        if name == "add":
            return TorchOperation(kind, bias=args[1] if isinstance(args[1], Tensor) else None)
        return TorchOperation(kind, args[1].t(), None) if name == "mm" else TorchOperation(kind)


def recorded(parts: list[TorchOperation], run: Callable[[Tensor], Any]) -> list[TorchOperation]:
    """The operations that torch carries out on a batch of zeros."""
    weight = next((part.weight for part in parts if part.weight is not None), None)
    batch = torch.zeros(SHOWN, 2) if weight is None else weight.new_zeros(SHOWN, weight.shape[1])
    recorder = _Recorder(batch)
    with torch.no_grad(), recorder:
        answer = run(batch)
    return recorder.seen if answer is recorder.last else [*recorder.seen, TorchOperation("something else")]
