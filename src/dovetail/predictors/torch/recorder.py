"""The operations that torch carries out when it runs a network, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from dovetail.networks.functions import LAYERS

OPERATIONS = {
    "addmm": "dense", "mm": "dense", "linear": "dense", "add": "bias", "relu_": "relu", "_softmax": "softmax",
    **{function.operation: name for name, function in LAYERS.items()},
}  # fmt: skip
"""torch's own operations, by what they compute."""
VIEWS = ("t", "detach", "alias", "view", "transpose", "permute")
"""Operations that only look at a tensor in another way."""
SHOWN = 3
"""Rows of the batch that shows the graph."""


class DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that torch's compiler knows nothing of: telling it would import it first, for two seconds."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class TorchOperation(NamedTuple):
    """One operation of a module: what it is, and the parameters of a dense one."""

    kind: str
    weight: Tensor | None = None
    bias: Tensor | None = None


class _Recorder(DispatchMode):
    """Within it, every operation that torch carries out is noted, with what it works on."""

    def __init__(self, batch: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[TorchOperation] = []
        self.last = batch
        """What the next operation must work on."""
        self._casts: list[tuple[Tensor, Tensor]] = []
        """Tensors in another dtype, each with the one it was made of: they hold the same numbers, rounded."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Every operation comes through here."""
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
        """A bias that is added by itself belongs to the product before it."""
        before = self.seen[-1] if self.seen else TorchOperation("")
        if part.kind == "bias" and before.kind == "dense" and before.bias is None:
            self.seen[-1] = before._replace(bias=part.bias)
        else:
            self.seen.append(part)

    def _part(self, name: str, args: tuple[Any, ...], options: bool) -> TorchOperation:
        """The operation, if it works on what the one before it gave, and without options of its own."""
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
