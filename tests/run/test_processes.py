"""Processes behind pipes: they answer, die, come back, and end with their pipes."""

import os
import signal
import subprocess
import sys
from functools import partial, partialmethod

import pytest
import torch

from dovetail.run.budget import Budget
from dovetail.run.processes import NotPicklable, Process, pooled, process_workers
from tests.conftest import volume
from tests.processes import gone


@volume("tests of the workers kill processes, too")
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
        assert gone(pid)


PARENT = """
import os, time
from functools import partial, partialmethod
from dovetail.run.processes import Process

process = Process([partial(os.write, 1, b"asleep\\n"), partial(time.sleep, 600.0)])
print(process._process.pid, flush=True)
process.begin()
time.sleep(600.0)
"""


@volume("sweeps and interrupts end processes, too")
def test_a_busy_process_ends_with_the_one_who_started_it():
    """Killed without a chance to end its own: the child is in a call and reads nothing."""
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        assert parent.stdout.readline() == "asleep\n"
        parent.kill()
    assert gone(child)


def test_what_cannot_be_pickled_is_said():
    with pytest.raises(NotPicklable, match="lambda"):
        process_workers([[lambda: 0]], Budget())


def worked(task):
    """What a task asks for; imported by the processes of the pool."""
    what, value = task
    if what == "kill":
        os.kill(os.getpid(), value)
    if what == "raise":
        raise ValueError(value)
    return os.getpid(), torch.get_num_threads(), torch.is_grad_enabled(), os.getsid(0)


@pytest.mark.long
@volume("sweeps and interrupts end processes, too")
def test_a_process_that_dies_costs_its_task_and_those_alone_have_their_own():
    tasks = [("pid", 0), ("pid", 1), ("kill", signal.SIGKILL), ("pid", 2), ("alone", 3), ("pid", 4)]
    take = partial(next, iter(tasks), None)
    found = dict(pooled(worked, take, 1, alone=lambda task: task[0] == "alone"))
    assert list(found) == tasks
    first, second, killed, third, alone, last = found.values()
    pid, threads, differentiable, session = first
    assert second == first and last == third
    assert len({pid, third[0], alone[0], os.getpid()}) == 4
    assert (threads, differentiable, session) == (1, True, pid)
    assert str(killed) == "was killed by SIGKILL, perhaps for lack of memory" and killed.begun


def test_what_is_raised_over_a_task_is_raised_here_and_ends_the_processes(monkeypatch):
    begun = []
    monkeypatch.setattr(Process, "__init__", partialmethod(_noted, Process.__init__, begun))
    given = iter([("pid", 0), ("raise", "no"), ("pid", 1)])
    answers = pooled(worked, lambda: next(given, None), 1)
    next(answers)
    with pytest.raises(ValueError, match="no"):
        next(answers)
    assert [process._process.poll() for process in begun] == [-signal.SIGKILL]
    with pytest.raises(NotPicklable, match="lambda"):
        next(pooled(lambda task: task, lambda: 1, 1))


def _noted(process, start, begun, *given, **options):
    begun.append(process)
    start(process, *given, **options)
