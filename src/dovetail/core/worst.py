"""The largest violation of a kind, and the item that has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.core.arrays import FloatArray, NameOf
from dovetail.core.pieces import each_piece


@dataclass(frozen=True)
class Worst:
    """The largest violation of one kind, and the item that has it ("" when there is none)."""

    amount: float = 0.0
    name: str = ""

    def __str__(self) -> str:
        return f"{self.amount:.1e}" + (f" ({self.name})" if self.name else "")


NOTHING = Worst()
"""No violation at all."""


def largest(kinds: Sequence[Worst]) -> Worst:
    """The worst of all, or the first that could not be measured."""
    unknown = [kind for kind in kinds if np.isnan(kind.amount)]
    return unknown[0] if unknown else max(kinds, key=lambda kind: kind.amount, default=Worst())


def worst_of(amounts: FloatArray, name_of: NameOf) -> Worst:
    """The largest amount, by the name of its place; what is no number is the worst there is."""
    return worst_in_pieces(lambda some: amounts[some], (len(amounts), 1), name_of)


def worst_in_pieces(amounts: Callable[[slice], FloatArray], shape: tuple[int, int], name_of: NameOf) -> Worst:
    """The same of (blocks, width) amounts that are made piece by piece; places are counted through."""

    def most(some: slice) -> tuple[float, int]:
        found = np.asarray(amounts(some)).ravel()
        at = int(np.argmax(found))
        # numpy's largest is no number, where there is one
        return (np.inf if np.isnan(found[at]) else float(found[at])), some.start * shape[1] + at

    if shape[0] * shape[1] == 0:
        return Worst()
    amount, place = max(each_piece(most, *shape), key=lambda one: one[0])
    return Worst(amount, name_of(place)) if amount > 0.0 else Worst()
