"""Child processes of tests."""

import signal


def hear_ctrl_c() -> None:
    """For `preexec_fn`: background jobs of a shell ignore Ctrl-C, and so would their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
