"""How much a file may ask for by a few bytes: sizes of tensors, lengths of lists."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from dovetail.core.errors import PredictorError

LARGEST = 1 << 28
"""Elements of a tensor that a file may ask for by its shape alone (a few bytes can ask for terabytes)."""

LONGEST = 1 << 16
"""Entries of a shape, of a list of axes, or steps of a sequence: each is taken one by one."""


def require_room(sizes: Sequence[int]) -> None:
    """Refuse a tensor of absurd size before it is made."""
    if math.prod(sizes) > LARGEST or min(sizes, default=0) < 0:
        raise PredictorError(
            f"a tensor of shape {tuple(sizes)} is asked for; the limit is {LARGEST} numbers."
        )


def listed(values: Tensor) -> list[Any]:
    """A shape, axes or the like, number by number."""
    if values.numel() > LONGEST:
        raise PredictorError(f"a list of {values.numel()} sizes or axes is given; the limit is {LONGEST}.")
    numbers: list[Any] = values.tolist()
    return numbers
