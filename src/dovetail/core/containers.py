"""Arrays, lists, dictionaries and frames of some tool's variables as one array of them, and back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dovetail.core.arrays import FloatArray, ObjectArray
from dovetail.core.errors import ModelError


class RaggedError(ModelError):
    """Parts of a container have different shapes, so that there is no array of them."""


def as_array(given: Any, unfold: Callable[[Any], Any]) -> ObjectArray:
    """Nested lists, arrays, frames and a tool's own containers as one array of variables and numbers.

    `unfold` turns one of the tool's containers into an array or a list, and hands back everything else.
    Leaves are never given to numpy to look into: several tools' variables pass for sequences or integers.
    Nor are they asked for attributes they do not have: gurobipy repeats that complaint at the next error.
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
    elif hasattr(type(item), "to_numpy"):  # a frame or series of pandas, an array of xarray
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


def like(given: Any, values: FloatArray) -> Any:
    """Values as they would stand in `given`, of which `as_array` made an array of their shape.

    Dictionaries, frames and series keep their keys; everything else becomes an array, one entry a number.
    """
    if isinstance(given, dict):
        keys, shape = _table(given)
        inner = values.reshape(len(keys), *values.shape[len(shape) :])
        found = dict(zip(keys, inner, strict=True))
        return {key: like(item, found[key]) for key, item in given.items()}
    kind = type(given)
    if hasattr(kind, "iloc") and hasattr(kind, "to_numpy"):  # of pandas, which need not be installed
        axes = {"columns": given.columns} if values.ndim == 2 else {"name": given.name}
        return kind(values, index=given.index, **axes)
    return float(values) if values.ndim == 0 else values


def frame_of(given: Any, values: FloatArray) -> Any:
    """(n, k) values with the labels of a frame of pandas, or of the series that is its one row.

    Everything else is an array: what has no labels gives none.
    """
    if not hasattr(type(given), "iloc"):
        return values
    if hasattr(type(given), "columns"):
        return like(given, values)
    row = given.to_frame().T  # a series becomes a frame without pandas being imported here
    return type(row)(values, index=[0 if given.name is None else given.name], columns=row.columns)


def _in_order(items: dict[Any, Any]) -> Any:
    """The values of a dictionary; a table of them where its keys are all the combinations of some indices."""
    keys, shape = _table(items)
    result = np.empty(len(items), dtype=object)
    for place, key in enumerate(keys):
        result[place] = items[key]
    return result.reshape(shape)


def _table(items: dict[Any, Any]) -> tuple[list[Any], tuple[int, ...]]:
    """The keys in the order of a table, and its shape; a list where they are no combinations of indices."""
    keys = list(items)
    sizes = {len(key) if isinstance(key, tuple) else 1 for key in keys}
    if len(sizes) != 1 or sizes == {1}:
        return keys, (len(keys),)
    axes = [dict.fromkeys(indices) for indices in zip(*keys, strict=True)]
    shape = tuple(len(axis) for axis in axes)
    if math.prod(shape) != len(keys):
        return keys, (len(keys),)
    return list(itertools.product(*axes)), shape


def _common_shape(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    different = sorted(set(shapes))
    if len(different) > 1:
        raise RaggedError(
            f"rows of different shapes {different[0]} and {different[1]} in one array of variables; give "
            "(n_samples, n_features), every row with the same number of entries."
        )
    return different[0] if different else ()
