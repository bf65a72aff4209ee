"""The arithmetic that torch computes in here and now, if it can be relied on.

A float32 network may multiply in something coarser: under autocast, or where the process allows TF32 or
bfloat16 inside its matrix products. Nothing is claimed of such a network.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from dovetail.core.errors import UnsupportedError
from dovetail.networks.arithmetic import FLOAT64, FORMATS, Arithmetic
from dovetail.networks.program import Program

DEVICES = ("cpu", "cuda")
"""Where a sum of products rounds as the standard says, unless it was told otherwise."""


def arithmetic_of(dtypes: Iterable[torch.dtype], device: str) -> Arithmetic:
    """The coarsest of the dtypes, on a kind of device ("cpu", "cuda"); an `UnsupportedError` says why not."""
    names = [str(dtype).removeprefix("torch.") for dtype in dtypes]
    unknown = [name for name in names if name not in FORMATS]
    if unknown:
        raise UnsupportedError(f"how {unknown[0]} rounds is not known, so nothing can be proved of it.")
    coarsest = max((FORMATS[name] for name in names), key=lambda kind: kind.roundoff)
    if device not in DEVICES or torch.is_autocast_enabled(device):
        reason = f"the network runs on {device}" + (" under autocast" if device in DEVICES else "")
    else:
        reason = "" if coarsest is FLOAT64 else _coarser_products()
    if reason:
        raise UnsupportedError(f"{reason}: how far it rounds is not known, so nothing can be proved of it.")
    return coarsest


def program_arithmetic(
    program: Program, dtypes: Iterable[torch.dtype], device: str, *, recurrent: bool
) -> Arithmetic:
    """What a program is carried out in: the coarsest of its dtypes, if whole layers can be relied on."""
    met = [getattr(torch, name) for name in sorted(program.formats)]
    found = arithmetic_of([*dtypes, *met], device)
    reason = "" if found is FLOAT64 else _coarser_layers(device, program.convolves, recurrent)
    if reason:
        raise UnsupportedError(f"{reason}: how far it rounds is not known, so nothing can be proved of it.")
    return found


def _coarser_layers(device: str, convolves: bool, recurrent: bool) -> str:
    """Why convolutions or recurrent layers may be coarser than sums of products, or nothing.

    On a GPU cuDNN takes transforms (Winograd, Fourier) and TF32 as it likes, and so does NNPACK on a
    processor; oneDNN, which comes before it, multiplies out.
    """
    if device == "cuda":
        return "cuDNN carries whole layers out in its own way" if convolves or recurrent else ""
    if convolves and torch._C._get_nnpack_enabled() and not torch._C._get_mkldnn_enabled():
        return "NNPACK carries convolutions out in its own way"
    return _named_modes(getattr(torch.backends.mkldnn, part, None) for part in ("conv", "rnn"))


def _named_modes(backends: Iterable[object]) -> str:
    """Why backends may be coarser than float32, as far as they say it, or nothing."""
    modes = {str(getattr(backend, "fp32_precision", "none")) for backend in backends}  # not in every version
    return "" if modes <= {"none", "ieee"} else "torch.backends allows products in less than float32"


def _coarser_products() -> str:
    """Why products may be coarser than their dtype, or nothing."""
    try:
        if torch.get_float32_matmul_precision() != "highest":
            return "torch.set_float32_matmul_precision allows products in less than float32"
    except RuntimeError:  # torch's two ways to ask for it were mixed
        return "torch.backends allows products in less than float32"
    cpu, cuda = torch.backends.mkldnn, torch.backends.cuda
    return _named_modes((torch.backends, cpu, *(getattr(one, "matmul", None) for one in (cpu, cuda))))
