"""Silence about feature names: libraries warn where a model that was trained on a frame is given an array."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_filters = threading.RLock()
"""Held while a warning is silenced: Python keeps its filters in one place for all threads."""


@contextmanager
def without_name_warnings() -> Iterator[None]:
    """Within it nobody warns of missing names; other warnings pass."""
    with _filters, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield
