"""Suppresses warnings that a user cannot act on: a model trained on a frame gets an array, or a model
trained on a GPU gets rows on the CPU."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

NAMES = "X does not have valid feature names"
DEVICES = r"[\s\S]*Falling back to prediction using DMatrix"
"""XGBoost's warning, after the time and the line of its own code."""

_lock = threading.Lock()
"""Held while filters are changed, because Python shares them between threads."""
_within: dict[str, int] = {}
"""The number of active uses by message; the first use suppresses the warning, and the end of the last use
restores it."""


@contextmanager
def silenced(message: str) -> Iterator[None]:
    """Suppress these warnings inside; others pass."""
    ours = ("ignore", re.compile(message, re.IGNORECASE), UserWarning, None, 0)
    with _lock:
        theirs = ours in warnings.filters and message not in _within  # the user's own filter stays
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
