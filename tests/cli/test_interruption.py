"""Ctrl-C before there is anything to save."""

import signal
import subprocess
import sys
import threading

from dovetail.cli.solve_command import leaving_at_once
from tests.processes import hear_ctrl_c

PROGRAM = """
import os, signal
from dovetail.cli.solve_command import leaving_at_once
with leaving_at_once():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:  # as some libraries do while they are imported
        pass
print("still here")
"""


def test_it_ends_the_process_with_one_line_whatever_is_running():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, preexec_fn=hear_ctrl_c
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "dovetail: interrupted before there was anything to save.\n"


def test_handlers_are_put_back_and_those_of_others_left_alone():
    before = signal.getsignal(signal.SIGINT)
    with leaving_at_once():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with leaving_at_once():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_set_nothing():
    seen = []

    def work():
        with leaving_at_once():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
