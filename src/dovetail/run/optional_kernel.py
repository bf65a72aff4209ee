"""A kernel that may be missing or fail on this machine: it is used until it fails, and reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import torch

T = TypeVar("T")


class OptionalKernel(Generic[T]):
    """Calls what `load` returns; returns None where the kernel is missing.

    >>> from dovetail.run.optional_kernel import OptionalKernel
    >>> halved = OptionalKernel("halving", lambda: lambda x: 6 / x)
    >>> halved(2), halved(0), halved(2), halved.trouble
    (3.0, None, None, 'halving: ZeroDivisionError: division by zero')
    """

    def __init__(self, what: str, load: Callable[[], Callable[..., T] | None]) -> None:
        self.what, self.trouble, self.used = what, "", False
        """The kernel's description, why it is no longer used, and whether it was used."""
        try:
            self._call = load()
        except ImportError:
            self._call, self.trouble = None, f"{what}: no Triton"

    def __call__(self, *arguments: Any, **named: Any) -> T | None:
        """The kernel's answer; None if the caller has to compute it otherwise."""
        if self._call is None:
            return None
        try:
            answer = self._call(*arguments, **named)
        except torch.OutOfMemoryError:
            raise
        except Exception as reason:  # no compiler, or an unknown graphics card
            said = str(reason).strip().partition("\n")[0]
            self.give_up(f"{type(reason).__name__}: {said}")
            return None
        self.used = True
        return answer

    def give_up(self, reason: str) -> None:
        """Stop using the kernel."""
        self._call, self.trouble, self.used = None, f"{self.what}: {reason}", False


def in_words(kernels: Sequence[OptionalKernel[Any]]) -> str:
    """The kernels that were used, and why others were not; "" if there is nothing to report."""
    used = [kernel.what for kernel in kernels if kernel.used]
    troubles = [kernel.trouble for kernel in kernels if kernel.trouble]
    said = f"{' and '.join(used)} in one kernel" if used else ""
    return "; ".join(filter(None, [said, *(f"by torch alone, {trouble}" for trouble in troubles)]))
