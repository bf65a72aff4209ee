"""Child processes of tests, and the mark that SIGTERM leaves in this one."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dovetail.run.environment import termination


def hear_ctrl_c() -> None:
    """For `preexec_fn`: background jobs of a shell ignore Ctrl-C, and so would their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def gone(pid: int) -> bool:
    """Whether a process has ended, or ends within a minute."""
    for _ in range(600):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@contextmanager
def surviving() -> Iterator[None]:
    """SIGTERM is for a solve inside; afterwards this process may solve again."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        termination.clear()
