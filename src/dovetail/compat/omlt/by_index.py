"""OMLT's tables of inputs and outputs: by index, or in a row for those that are numbered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

Value = TypeVar("Value")


def by_index(given: Mapping[Any, Value] | Iterable[Value]) -> dict[Any, Value]:
    """A table of one's own, by index.

    >>> by_index([0.5, 2.0]), by_index({(0, 1): 3.0})
    ({0: 0.5, 1: 2.0}, {(0, 1): 3.0})
    """
    return dict(given) if isinstance(given, Mapping) else dict(enumerate(given))
