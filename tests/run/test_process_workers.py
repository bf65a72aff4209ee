"""Processes behind pipes: they answer, die, come back, and end with their pipes."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from dovetail.run.budget import Budget
from dovetail.run.process_workers import process_workers
from dovetail.run.remote_workers import CannotTravel


def test_processes_answer_and_one_that_is_killed_comes_back():
    crew = process_workers([[list, list], [partial(list, (1,))]], Budget(60.0))
    try:
        assert len({*crew.pids, os.getpid()}) == 3
        crew.renew_by("append", [(9,)] * 3)
        assert crew.ask("__len__", [()] * 3, Budget(60.0)) == [0, 0, 1]
        first = crew.pids[1]
        os.kill(first, signal.SIGKILL)
        assert crew.ask("__len__", [()] * 3, Budget(60.0)) == [0, 0, 2]
        assert crew.losses == 1 and crew.pids[1] != first
    finally:
        crew.close()
    for pid in crew.pids:
        assert not _alive(pid)


def _alive(pid):
    for _ in range(600):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.1)
    return True


PARENT = """
import os, time
from functools import partial
from dovetail.run.process_workers import process_lines

lines = process_lines([[partial(os.write, 1, b"asleep\\n"), partial(time.sleep, 600.0)]])
for line in lines:
    print(line._process.pid, flush=True)
    line.begin()
time.sleep(600.0)
"""


def test_a_busy_process_ends_with_the_one_who_started_it():
    """Killed without a chance to end its own: the child is in a call and reads nothing."""
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        assert parent.stdout.readline() == "asleep\n"
        parent.kill()
    assert not _alive(child)


def test_what_cannot_be_pickled_is_said():
    with pytest.raises(CannotTravel, match="lambda"):
        process_workers([[lambda: 0]], Budget())
