"""Arrays, lists, dictionaries and frames of some tool's variables as one array of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dovetail.core.errors import ModelError
from dovetail.core.foreign import ObjectArray


def as_array(given: Any, unfold: Callable[[Any], Any]) -> ObjectArray:
    """Nested lists, arrays, frames and a tool's own containers as one array of variables and numbers.

    `unfold` turns one of the tool's containers into an array or a list, and hands back everything else.
    Leaves are never given to numpy to look into: several tools' variables pass for sequences or integers.
    """
    shape, leaves = _leaves(given, unfold)
    result = np.empty(len(leaves), dtype=object)
    for place, leaf in enumerate(leaves):
        result[place] = leaf
    return result.reshape(shape)


def _leaves(item: Any, unfold: Callable[[Any], Any]) -> tuple[tuple[int, ...], list[Any]]:
    item = unfold(item)
    if isinstance(item, dict):
        item = _in_order(item)
    elif hasattr(item, "to_numpy"):  # a frame or series of pandas, an array of xarray
        item = item.to_numpy()
    if isinstance(item, np.ndarray) and item.dtype != object:
        return item.shape, item.ravel().tolist()
    if isinstance(item, np.ndarray):
        parts = [_leaves(entry, unfold) for entry in item.flat]
        inner = _common_shape(part[0] for part in parts)
        return (*item.shape, *inner), [leaf for part in parts for leaf in part[1]]
    if isinstance(item, (list, tuple, range)):
        parts = [_leaves(entry, unfold) for entry in item]
        inner = _common_shape(part[0] for part in parts)
        return (len(parts), *inner), [leaf for part in parts for leaf in part[1]]
    return (), [item]


def _in_order(items: dict[Any, Any]) -> Any:
    """The values of a dictionary; a table of them where its keys are all the combinations of some indices."""
    values = list(items.values())
    sizes = {len(key) if isinstance(key, tuple) else 1 for key in items}
    if len(sizes) != 1 or sizes == {1}:
        return values
    axes = [dict.fromkeys(indices) for indices in zip(*items, strict=True)]
    shape = tuple(len(axis) for axis in axes)
    if math.prod(shape) != len(items):
        return values
    result = np.empty(len(items), dtype=object)
    for place, key in enumerate(itertools.product(*axes)):
        result[place] = items[key]
    return result.reshape(shape)


def _common_shape(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    different = sorted(set(shapes))
    if len(different) > 1:
        raise ModelError(
            f"rows of different shapes {different[0]} and {different[1]} in one array of variables; give "
            "(n_samples, n_features), every row with the same number of entries."
        )
    return different[0] if different else ()
