"""Processes behind pipes: they answer, die, come back, and end with their pipes."""

import os
import signal
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
    for _ in range(50):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.1)
    return True


def test_what_cannot_be_pickled_is_said():
    with pytest.raises(CannotTravel, match="lambda"):
        process_workers([[lambda: 0]], Budget())
