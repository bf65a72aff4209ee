"""Warnings silenced that a user cannot act on: a model that was trained on a frame is given an array, or one
that was trained on a GPU is given rows on the CPU."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

NAMES = "X does not have valid feature names"
DEVICES = r"[\s\S]*Falling back to prediction using DMatrix"
"""XGBoost's, behind the time and the line of its own code."""

_lock = threading.Lock()
"""Held while the filters are changed, not while anybody computes: Python keeps them in one place for all
threads."""
_within: dict[str, int] = {}
"""By message, how many are within; the first one to come silences it, the last one to leave undoes that."""


@contextmanager
def silenced(message: str) -> Iterator[None]:
    """Within it nobody warns so; other warnings pass."""
    ours = ("ignore", re.compile(message, re.IGNORECASE), UserWarning, None, 0)
    with _lock:
        theirs = ours in warnings.filters and message not in _within  # the user's own stays
        if not theirs:
            if ours not in warnings.filters:
                warnings.filterwarnings("ignore", message, UserWarning)
            _within[message] = _within.get(message, 0) + 1
    try:
        yield
    finally:
        with _lock:
            if not theirs:
                _leave(message, ours)


def _leave(message: str, ours: tuple[object, ...]) -> None:
    _within[message] -= 1
    if _within[message] == 0:
        del _within[message]
        if ours in warnings.filters:
            cast(list[object], warnings.filters).remove(ours)
