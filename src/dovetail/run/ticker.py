"""A clock that ticks beside the work: a live line moves while an engine is busy for a minute."""

from __future__ import annotations

import threading
from collections.abc import Callable

SECONDS = 0.25
"""Between two ticks: often enough to be seen moving, seldom enough to cost nothing."""


class Ticker:
    """Calls a function again and again, from a thread of its own, between `start` and `stop`."""

    def __init__(self, call: Callable[[], None], seconds: float = SECONDS) -> None:
        self._call, self._seconds = call, seconds
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; a process that ends does not wait for it."""
        self._thread = threading.Thread(target=self._run, name="dovetail-log", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it; when this returns, no call is under way."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while not self._end.wait(self._seconds):
            self._call()
