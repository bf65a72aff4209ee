"""A kernel that may not be there, or may not work on this machine: used until it fails, and told of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import torch

T = TypeVar("T")


class OptionalKernel(Generic[T]):
    """What `load` returns, or None wherever it is asked for what is not there.

    >>> from dovetail.run.optional_kernel import OptionalKernel
    >>> halved = OptionalKernel("halving", lambda: lambda x: 6 / x)
    >>> halved(2), halved(0), halved(2), halved.trouble
    (3.0, None, None, 'halving: ZeroDivisionError: division by zero')
    """

    def __init__(self, what: str, load: Callable[[], Callable[..., T] | None]) -> None:
        self.what, self.trouble, self.used = what, "", False
        """In words; why it is not used any more; whether it was ever."""
        try:
            self._call = load()
        except ImportError:
            self._call, self.trouble = None, f"{what}: no Triton"

    def __call__(self, *arguments: Any, **named: Any) -> T | None:
        """Its answer; None where others have to do the same by other means."""
        if self._call is None:
            return None
        try:
            answer = self._call(*arguments, **named)
        except torch.OutOfMemoryError:
            raise
        except Exception as reason:  # no compiler, or a card that it does not know
            said = str(reason).strip().partition("\n")[0]
            self.give_up(f"{type(reason).__name__}: {said}")
            return None
        self.used = True
        return answer

    def give_up(self, reason: str) -> None:
        """Others do the same from now on."""
        self._call, self.trouble, self.used = None, f"{self.what}: {reason}", False


def in_words(kernels: Sequence[OptionalKernel[Any]]) -> str:
    """Which were used, and why others were not; "" where there is nothing to tell."""
    used = [kernel.what for kernel in kernels if kernel.used]
    troubles = [kernel.trouble for kernel in kernels if kernel.trouble]
    said = f"{' and '.join(used)} in one kernel" if used else ""
    return "; ".join(filter(None, [said, *(f"by torch alone, {trouble}" for trouble in troubles)]))
