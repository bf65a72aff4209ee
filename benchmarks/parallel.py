"""Many runs, several processes at a time: dovetail's own pool, with patience for those that do not end."""

from __future__ import annotations

import math
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import TypeVar

from dovetail.run.processes import WorkerLost, pooled

Task = TypeVar("Task")
Answer = TypeVar("Answer")


def each(work: Callable[[Task], Answer], tasks: Sequence[Task], jobs: int) -> list[Answer]:
    """`work` of every task, in the order of the tasks; both must be picklable."""
    found: dict[int, Answer] = {}
    take = partial(next, enumerate(tasks), None)
    with closing(pooled(partial(_numbered, work), take, jobs, program=True)) as answers:
        for (number, task), answer in answers:
            if isinstance(answer, WorkerLost):
                raise RuntimeError(f"the process of {task} {answer}")
            found[number] = answer
    return [found[number] for number in range(len(tasks))]


def ended(
    work: Callable[[Task], Answer], tasks: Iterable[Task], jobs: int, patience: float, within: float
) -> Iterator[tuple[Task, Answer | None]]:
    """Tasks with their answers as these come, each task in a process of its own.

    One that takes longer than `patience` seconds is ended, and has no answer. After `within` seconds nothing
    more is begun, and what still runs is ended without a word: it can be asked again.
    """
    end, waiting = time.time() + within, iter(tasks)

    def take() -> Task | None:
        return next(waiting, None) if time.time() < end else None

    patient = partial(_patient, work, patience, end)
    with closing(pooled(patient, take, jobs, alone=lambda task: True, program=True)) as answers:
        for task, answer in answers:
            if not isinstance(answer, WorkerLost):
                yield task, answer
            elif time.time() < end:
                yield task, None


def _numbered(work: Callable[[Task], Answer], numbered: tuple[int, Task]) -> Answer:
    return work(numbered[1])


def _patient(work: Callable[[Task], Answer], patience: float, end: float, task: Task) -> Answer | None:
    """The alarm ends the process, whatever it is doing."""
    seconds = min(patience, end - time.time())
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3) if math.isfinite(seconds) else 0.0)
    try:
        return work(task)
    except Exception:
        traceback.print_exc()
        return None
