"""Which values of a vector planes are asked for, in groups of sets that want about as many.

Planes of a batch are as many for every set. Of thousands of sets some want all values of a vector and most a
third (cells of 6x64), so that filling all up to the most takes three times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

NUMBERS, DEVICE_NUMBERS = 2**19, 2**26
"""Of a group in one tensor: what stays near a core, or what keeps a GPU busy."""


@dataclass(frozen=True, eq=False)
class WantedSets:
    """Some sets, and as many values of each."""

    sets: Tensor | slice
    values: Tensor
    """(n, most) by number."""
    wanted: Tensor
    """(n, most) whether it is; others fill up."""


def groups(wanted: Tensor, width: int) -> Iterator[WantedSets]:
    """Of (N, size) wanted values, where a plane has `width` numbers; sets that want none are left out.

    A set that wants more values than one group holds appears in several groups.
    """
    count = wanted.sum(1)
    order = count.argsort(descending=True)
    counts = count[order].cpu().numpy()
    numbers = NUMBERS if wanted.device.type == "cpu" else DEVICE_NUMBERS
    first, end = 0, int(np.count_nonzero(counts))
    while first < end:
        most = int(counts[first])
        last = min(end, first + max(1, numbers // (2 * most * width)))
        sets = slice(None) if last - first == len(order) else order[first:last]
        values, is_wanted = _filled_up(wanted[sets], most)
        held = max(1, numbers // (2 * width))
        for some in range(0, most, held):
            yield WantedSets(sets, values[:, some : some + held], is_wanted[:, some : some + held])
        first = last


def _filled_up(wanted: Tensor, most: int) -> tuple[Tensor, Tensor]:
    if most == wanted.shape[1]:
        return torch.arange(most, device=wanted.device).expand(len(wanted), -1), wanted
    values = torch.argsort(wanted.to(torch.int8), dim=1, descending=True)[:, :most]
    return values, wanted.gather(1, values)
