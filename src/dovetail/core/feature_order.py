"""Features in the order in which a predictor was trained on them, as far as names tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail.core.errors import PredictorError
from dovetail.core.names import split_index


def require_feature_order(block: str, what: str, given: Sequence[str], trained: Sequence[str] | None) -> None:
    """Refuse names that are those of all features, in another order.

    A feature may be called by a whole name (``heat``), by what stands before the indices (``heat[3]``), or
    by one of them (``setting[heat,3]``). Names that say anything else say nothing about the order.
    """
    if trained is None or len(given) != len(trained) or all(name.isdigit() for name in trained):
        return
    known = set(trained)
    meant = [_features_in(name, known) for name in given]
    if any(len(features) != 1 for features in meant):
        return
    order = [features.pop() for features in meant]
    if order != list(trained) and set(order) == known:
        raise PredictorError(
            f"{block}: {what} has the columns {', '.join(given)}, but the predictor was trained on "
            f"{', '.join(trained)}; give these, in this order."
        )


def _features_in(name: str, known: set[str]) -> set[str]:
    """Which features a name may mean."""
    if name in known:
        return {name}
    label, index = split_index(name)
    return known & {label, *map(str, index)}


def labels_of(table: Any) -> list[Any] | None:
    """What a table calls its columns, if it has names for them; a series of pandas its entries."""
    if hasattr(type(table), "iloc"):
        return list(getattr(table, "columns", table.index))
    columns = getattr(table, "columns", None) if hasattr(type(table), "__array__") else None
    return None if columns is None else list(columns)
