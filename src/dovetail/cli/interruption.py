"""Ctrl-C while files are read and libraries imported: there is nothing to save yet, so it ends at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dovetail.cli.exit_code import ExitCode


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """Ctrl-C inside ends the process without a word from Python.

    An exception would be raised inside whatever library is being imported; some take it for a reason to try
    another way and go on for seconds.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield  # who ignores Ctrl-C, or hears it himself, is left alone
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(number: int, frame: object) -> None:
    with suppress(Exception):  # a closed pipe, or a print that the signal fell into
        sys.stdout.flush()
    os.write(2, b"dovetail: interrupted before there was anything to save.\n")
    os._exit(ExitCode.INTERRUPTED)
