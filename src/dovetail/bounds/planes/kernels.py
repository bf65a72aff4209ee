"""Steps of the plane computation that run as one kernel each on a GPU, and in torch elsewhere.

A wrong bound is worse than a slow bound. Any price gives a valid bound, so prices need no check. For lines,
the first result for every width is compared with torch's result. A kernel whose result differs by more than
rounding explains is not used again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from dovetail.bounds.planes.domain import dots, gamma
from dovetail.run.optional_kernel import OptionalKernel, in_words


@dataclass(frozen=True, eq=False)
class LoadedAffine:
    """An affine step on the device."""

    weights: tuple[Tensor, ...]
    backwards: tuple[Tensor, ...]
    """The weights in the precision of backward passes."""
    sizes: tuple[Tensor, ...]
    """|weight|, transposed."""
    bias: Tensor
    rate: Tensor
    """Rounding relative to |W| |v| + |b|, here and in the deployed network."""
    more: Tensor
    """Other rounding."""


@dataclass(frozen=True, eq=False)
class Carrying:
    """How weights A >= 0 and their negative parts pass through a nonlinear step: A below + (A)^- gap."""

    below: tuple[Tensor, ...]
    gap: tuple[Tensor, ...]
    """Slopes above minus slopes below, one per source."""
    offset: Tensor
    """Offset of the lower lines, minus all rounding of this step and of the affine steps that it reads."""
    offset_gap: Tensor

    def take(self, sets: Tensor | slice) -> Carrying:
        """Results for some of the sets."""
        return Carrying(
            tuple(part[sets] for part in self.below),
            tuple(part[sets] for part in self.gap),
            self.offset[sets],
            self.offset_gap[sets],
        )


Carried = tuple[Tensor, Tensor]
"""(N, S, size) weights before a step, and (N, S) its contribution to the offset."""
WIDEST, MOST_MOVES = 1024, 64
"""Largest row for a kernel; largest number of moves compared in pairs."""
EVERY = slice(None)
MORE = 8
"""Number of operations in addition to a sum."""


@cache
def lines_kernel() -> OptionalKernel[Carried]:
    """Loaded on first use."""

    def load() -> Any:
        from dovetail.bounds.planes import triton_lines

        return triton_lines.through_lines

    return OptionalKernel("lines", load)


@cache
def prices_kernel() -> OptionalKernel[Tensor]:
    """Loaded on first use."""

    def load() -> Any:
        from dovetail.bounds.planes import triton_prices

        return triton_prices.prices

    return OptionalKernel("prices", load)


def used_kernels() -> str:
    """The kernels that were used, in words."""
    return in_words([kernel() for kernel in (lines_kernel, prices_kernel) if kernel.cache_info().currsize])


def _takes(rows: Tensor, widest: int) -> bool:
    """Whether a kernel is used for (N, S, width) rows."""
    learning = torch.is_grad_enabled() and rows.requires_grad
    return rows.device.type == "cuda" and rows.shape[2] <= widest and rows.numel() > 0 and not learning


def prices(per_move: Tensor, weights: Tensor, limit: Tensor, most: Tensor) -> Tensor | None:
    """(N, S) as in `Moves`; None if torch has to compute them."""
    return prices_kernel()(per_move, weights, limit, most) if _takes(per_move, MOST_MOVES) else None


def through_lines(A: Tensor, lines: Carrying, sets: Tensor | slice = EVERY) -> Carried:
    """(N, S, size) weights passed through a step that reads one vector, on some of the lines' sets."""
    there = isinstance(sets, Tensor) or len(lines.offset) == len(A)  # lines of their own for every set
    if not (there and _takes(A, WIDEST)):
        return lines_by_torch(A, lines.take(sets))
    kernel = lines_kernel()
    answer = kernel(A, lines.below[0], lines.gap[0], lines.offset, lines.offset_gap, sets)
    if answer is None:
        return lines_by_torch(A, lines.take(sets))
    if (A.dtype, A.shape[2]) not in _BELIEVED:
        expected = lines_by_torch(A, lines.take(sets))
        if not agree(answer, expected, A, lines.take(sets)):
            kernel.give_up("its values differ from torch's")
            return expected
        _BELIEVED.add((A.dtype, A.shape[2]))
    return answer


_BELIEVED: set[tuple[torch.dtype, int]] = set()
"""Dtypes and widths of rows whose first answer agreed with torch's."""


def lines_by_torch(A: Tensor, lines: Carrying) -> Carried:
    """The same on any device."""
    negative = A.clamp(max=0.0)
    moved = dots(A, lines.offset) + dots(negative, lines.offset_gap)
    return torch.addcmul(A * lines.below[0][:, None], negative, lines.gap[0][:, None]), moved


def agree(one: Carried, other: Carried, A: Tensor, lines: Carrying) -> bool:
    """Whether both are equal up to rounding, with NaN in the same places."""
    info = torch.finfo(A.dtype)
    rate, tiny = 2.0 * gamma(A.shape[2] + MORE, info.eps / 2.0), 2.0 * A.shape[2] * info.tiny
    sizes = (
        A.abs() * (lines.below[0].abs() + lines.gap[0].abs())[:, None],
        dots(A.abs(), lines.offset.abs() + lines.offset_gap.abs()),
    )
    for first, second, size in zip(one, other, sizes, strict=True):
        near = ((first - second).abs() <= rate * size + tiny) | (first == second)
        if not bool((near | (first.isnan() & second.isnan())).all()):
            return False
    return True
