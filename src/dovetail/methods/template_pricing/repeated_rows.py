"""Tensors with one row per block, or per descent. Where all rows are the same, one is stored.

The tensor is then expanded: its first stride is 0, and its length is still the number of rows. The stride,
never the length, says whether rows are repeated: a batch that has shrunk to one row is no special case.
"""

from __future__ import annotations

from torch import Tensor


def repeated(rows: Tensor, count: int) -> Tensor:
    """`count` rows of a tensor that has as many, or one that stands for all."""
    return rows if rows.shape[0] == count else rows.expand(count, *rows.shape[1:])


def is_repeated(array: Tensor) -> bool:
    """Whether one row is stored for all."""
    return array.stride(0) == 0 and array.shape[0] > 0


def stored(array: Tensor) -> Tensor:
    """The one row that is repeated, or all rows: it broadcasts to what was given."""
    return array[:1] if is_repeated(array) else array


def of(array: Tensor, which: Tensor) -> Tensor:
    """The rows with these numbers; a repeated row stays repeated."""
    if not is_repeated(array):
        return array[which]
    count = which.shape[0]
    return array[:count] if count <= array.shape[0] else repeated(array[:1], count)
