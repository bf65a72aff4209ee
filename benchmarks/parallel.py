"""Many runs, several processes at a time, each fresh."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TypeVar

Task = TypeVar("Task")
Answer = TypeVar("Answer")


def each(work: Callable[[Task], Answer], tasks: Sequence[Task], jobs: int) -> list[Answer]:
    """`work` of every task, in the order of the tasks; both must be picklable."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return list(pool.map(work, tasks, chunksize=1))


def ended(
    work: Callable[[Task], Answer], tasks: Iterable[Task], jobs: int, patience: float, within: float
) -> Iterator[tuple[Task, Answer | None]]:
    """Tasks with their answers as these come, each task in a process of its own.

    One that takes longer than `patience` seconds is ended, and has no answer. After `within` seconds nothing
    more is begun, and what still runs is ended without a word: it can be asked again.
    """
    context, begin = get_context("spawn"), time.monotonic()
    waiting, running = deque(tasks), dict[Connection, tuple[Task, BaseProcess, float]]()
    try:
        while (waiting or running) and time.monotonic() < begin + within:
            while waiting and len(running) < jobs:
                here, there = context.Pipe(duplex=False)
                process = context.Process(target=_told, args=(there, work, waiting[0]), daemon=True)
                process.start()
                there.close()
                running[here] = waiting.popleft(), process, time.monotonic()
            for here in wait(list(running), timeout=1.0):
                assert isinstance(here, Connection)
                task, process, _ = running.pop(here)
                try:
                    answer = here.recv()
                except EOFError:  # it died: of memory, mostly
                    answer = None
                process.join()
                yield task, answer
            for here in [here for here, run in running.items() if time.monotonic() > run[2] + patience]:
                task, process, _ = running.pop(here)
                process.kill()
                yield task, None
    finally:
        for _, process, _ in running.values():
            process.kill()


def _told(there: Connection, work: Callable[[Task], Answer], task: Task) -> None:
    there.send(work(task))
    there.close()
