"""Child processes of tests, and the mark that SIGTERM leaves in this one."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from dovetail.run.environment import termination


def hear_ctrl_c() -> None:
    """For `preexec_fn`: background jobs of a shell ignore Ctrl-C, and so would their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def surviving() -> Iterator[None]:
    """SIGTERM is for a solve inside; afterwards this process may solve again."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        termination.clear()
