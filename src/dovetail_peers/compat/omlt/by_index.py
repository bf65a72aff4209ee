"""How OMLT indexes inputs and outputs: by numbers, or by tuples where they have several axes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

Value = TypeVar("Value")


def by_index(given: Mapping[Any, Value] | Iterable[Value]) -> dict[Any, Value]:
    """A table of one's own, by index.

    >>> by_index([0.5, 2.0]), by_index({(0, 1): 3.0})
    ({0: 0.5, 1: 2.0}, {(0, 1): 3.0})
    """
    return dict(given) if isinstance(given, Mapping) else dict(enumerate(given))


def indices(shape: Sequence[int]) -> Iterable[Any]:
    """Numbers for one axis, tuples for several."""
    return range(shape[0]) if len(shape) == 1 else itertools.product(*map(range, shape))
