"""Many runs, several processes at a time, each fresh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

Task = TypeVar("Task")
Answer = TypeVar("Answer")


def each(work: Callable[[Task], Answer], tasks: Sequence[Task], jobs: int) -> list[Answer]:
    """`work` of every task, in the order of the tasks; both must be picklable."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return list(pool.map(work, tasks, chunksize=1))
