"""The arithmetic that torch computes in here and now, if it can be relied on.

A float32 network may multiply in something coarser: under autocast, or where the process allows TF32 or
bfloat16 inside its matrix products. Nothing is claimed of such a network.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from dovetail.core.errors import UnsupportedError
from dovetail.core.rounding import FORMATS, Arithmetic

DEVICES = ("cpu", "cuda")
"""Where a sum of products rounds as the standard says, unless it was told otherwise."""


def arithmetic_of(dtypes: Iterable[torch.dtype], device: str) -> Arithmetic:
    """The coarsest of the dtypes, on a kind of device ("cpu", "cuda"); an `UnsupportedError` says why not."""
    names = [str(dtype).removeprefix("torch.") for dtype in dtypes]
    unknown = [name for name in names if name not in FORMATS]
    if unknown:
        raise UnsupportedError(f"how {unknown[0]} rounds is not known, so nothing can be proved of it.")
    reason = _coarser(device)
    if reason:
        raise UnsupportedError(f"{reason}: how far the network rounds is not known.")
    return max((FORMATS[name] for name in names), key=lambda kind: kind.roundoff)


def _coarser(device: str) -> str:
    """Why products may be coarser than their dtype, or nothing."""
    if device not in DEVICES:
        return f"the network is on {device}"
    if torch.is_autocast_enabled(device):
        return "autocast is on"
    if torch.get_float32_matmul_precision() != "highest":
        return "torch.set_float32_matmul_precision allows less than float32"
    backends = (
        torch.backends,
        torch.backends.mkldnn,
        torch.backends.mkldnn.matmul,
        torch.backends.cuda.matmul,
    )
    modes = {str(getattr(backend, "fp32_precision", "none")) for backend in backends}  # not in every version
    return "" if modes <= {"none", "ieee"} else "torch.backends allows products in less than float32"
