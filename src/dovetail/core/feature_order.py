"""Features in the order in which a predictor was trained on them, as far as names tell."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from dovetail.core.errors import PredictorError
from dovetail.core.names import split_index


def require_feature_order(block: str, what: str, given: Sequence[str], trained: Sequence[str] | None) -> None:
    """Refuse names that are those of all features, in another order."""
    if trained is not None and is_another_order(given, trained):
        raise PredictorError(
            f"{block}: {what} has the columns {', '.join(given)}, but the predictor was trained on "
            f"{', '.join(trained)}; give these, in this order."
        )


def is_another_order(given: Sequence[str], trained: Sequence[str]) -> bool:
    """Whether the names mean all features, in another order.

    A feature may be called by a whole name (``heat``), by what a name begins with (``heat[3]``,
    ``heat_oven``), or by one of its indices (``setting[heat,3]``). Names that say anything else say nothing
    about the order.
    """
    if all(name.isdigit() for name in trained):  # which any index may be
        return False
    meant = [features_in(name, trained) for name in given]
    order = [name for features in meant if len(features) == 1 for name in features]
    return order != list(trained) and len(order) == len(given) and sorted(order) == sorted(trained)


def features_in(name: str, known: Collection[str]) -> set[str]:
    """Which features a name of a column may mean."""
    if name in known:
        return {name}
    _, index = split_index(name)
    begun = {feature for feature in known if feature and _begins(name, feature)}
    return begun | {str(part) for part in index} & set(known)


def _begins(name: str, feature: str) -> bool:
    """Whether a name goes on behind a feature with what is no letter of a word."""
    return name.startswith(feature) and not name[len(feature)].isalnum()


def labels_of(table: Any) -> list[Any] | None:
    """What a table calls its columns, if it has names for them; a series of pandas its entries."""
    if hasattr(type(table), "iloc"):
        return list(getattr(table, "columns", table.index))
    columns = getattr(table, "columns", None) if hasattr(type(table), "__array__") else None
    return None if columns is None else list(columns)
