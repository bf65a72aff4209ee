"""Another processor, emulated: products of matrices come out with other last digits by another route.

The same row of the same network may differ in its last digits from one batch to another, from one thread
count to another and from one processor to another, because sums are taken in another order. Whether it does
so *here* is luck. With DOVETAIL_TEST_SHAKEN=1 (or 2, 3, ...) every product of matrices that torch computes is
moved by one rounding of its terms, up or down by the place of the row and the number of rows, as some
processor might. Sums that are exact stay exact, and the same call gives the same answer again, as on any
machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

aten = torch.ops.aten


def shake(turn: int) -> None:
    """From now on, in this process; where torch writes a network down it steps aside."""
    for where, name in ((torch.onnx, "export"), (torch.jit, "trace"), (torch.jit, "script")):
        setattr(where, name, _unshaken(getattr(where, name)))
    Shaken(turn).__enter__()


def _unshaken(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        with _disable_current_modes():
            return function(*args, **options)

    return call


class Shaken(TorchDispatchMode):
    """While it is entered, products of matrices have other last digits: each `turn` is another processor."""

    def __init__(self, turn: int) -> None:
        super().__init__()
        self._turn = turn

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Every operation of torch comes through here, below autograd.

        Modes above have seen it already, or never would: compiled code must stay out of their reach.
        """
        with torch._C.DisableTorchFunction():
            return self._moved(func, args, kwargs)

    def _moved(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        plain = not kwargs and all(type(a) in (Tensor, nn.Parameter) and a.is_floating_point() for a in args)
        if not plain:
            return func(*args, **(kwargs or {}))  # other forms of the same operations are left alone
        if func in (aten.mm.default, aten.bmm.default):
            return self._product(*args)
        if func is aten.addmm.default:
            return self._product(args[1], args[2]) + args[0]
        if func is aten.linear.default and args[0].ndim == 2:
            return self._product(args[0], args[1].T) + (args[2] if len(args) == 3 else 0.0)
        return func(*args)

    def _product(self, a: Tensor, b: Tensor) -> Tensor:
        """a @ b, each entry that is rounded at all moved by what another order of its sum may change.

        That is at most one rounding of every term: half of eps, from the exact value where double precision
        has it. More would be what no processor does.
        """
        value, size = a @ b, abs(a) @ abs(b)
        order = torch.arange(a.shape[-1] - 1, -1, -1, device=a.device)
        rounded = value != a[..., order] @ b[..., order, :]
        base = value
        if value.dtype != torch.float64:
            exact = a.double() @ b.double()
            rounded |= value.double() != exact
            base = exact.to(value.dtype)
        moved = self._sign(value) * 0.5 * torch.finfo(value.dtype).eps * size
        return torch.where(rounded, base + moved, value)

    def _sign(self, value: Tensor) -> Tensor:
        """-1, 0 or 1 for each entry, by its place and by the number of rows."""
        rows, columns = value.shape[-2:]
        i = torch.arange(rows, device=value.device)[:, None]
        j = torch.arange(columns, device=value.device)
        return ((7 * i + 5 * j + 3 * rows + self._turn) % 11 % 3 - 1).to(value.dtype)
