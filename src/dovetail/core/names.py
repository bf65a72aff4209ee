"""Names that tell columns or rows apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def distinct(names: Iterable[str]) -> tuple[str, ...] | None:
    """Of equal names the later get a number; None where nothing is named."""
    given = list(names)
    if not any(given):
        return None
    result: dict[str, None] = {}  # as an ordered set
    again: Counter[str] = Counter()
    for j, name in enumerate(given):
        unique = name or f"x[{j}]"
        while unique in result:
            again[name] += 1
            unique = f"{name}#{again[name] + 1}"
        result[unique] = None
    return tuple(result)
