"""Work on a thread of its own, for libraries that do not react to signals while they compute.

Python handles signals between two Python instructions on the main thread, and SCIP may compute for half a
minute without returning to Python. So the calling thread waits here: it handles signals, checks the clock,
asks the work to end, and after a grace period continues without the work. Messages of the work are handled on
the waiting thread, where the user's callback and predictors are normally called.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from dovetail.run import work
from dovetail.run.budget import Budget, StopReason

POLL_SECONDS = 0.02
"""Seconds between two looks at the clock."""
GRACE_SECONDS = 1.0
"""Seconds that work may still take after a request to end: the LP of a node is not interrupted."""
ASK_SECONDS = 0.01
"""Processor seconds after which work in turns may rest: a rest takes two switches of threads, 0.1 ms."""

T = TypeVar("T")


class Mailbox:
    """The channel by which the working thread passes tasks to the waiting one."""

    def __init__(self) -> None:
        self.tasks: queue.SimpleQueue[tuple[Callable[[], None], threading.Event] | None] = queue.SimpleQueue()
        self.closed = False
        self.taker: TurnTaker | None = None
        """Counts the work, if it is done in turns."""

    def ask(self, task: Callable[[], None]) -> None:
        """Let the waiting thread run a task; returns when the task is done, or when the thread no longer
        waits."""
        done = threading.Event()
        self.tasks.put((task, done))
        while not self.closed and not done.wait(POLL_SECONDS):
            pass


class TurnTaker:
    """Lets others have a turn in the middle of the work, and counts the work until then.

    Made on the thread that works. Processor seconds are counted: no count of HiGHS shows its work before the
    end, and no count of SCIP shows how long cuts take. If the work does not check for long, the waiting
    thread gives its turn away, and the next check waits for a turn.
    """

    def __init__(self, mailbox: Mailbox, task: Callable[[], None]) -> None:
        self._mailbox, self._task = mailbox, task
        self._took = self._counted = self._asked = time.thread_time()
        """Processor seconds of the thread: known, counted, and when it last asked to rest."""
        clock = getattr(time, "pthread_getcpuclockid", None)  # not on every system
        self._clock: int | None = None if clock is None else clock(threading.get_ident())
        """The thread's clock for other threads, until the end of the work."""
        mailbox.taker = self

    def count(self) -> None:
        """Count the work until now, on the waiting thread: SCIP may work for seconds between two looks."""
        clock = self._clock
        with suppress(OSError):  # the thread has ended meanwhile
            self._took = self._took if clock is None else max(self._took, time.clock_gettime(clock))
        work.count(effort=self._took - self._counted)
        self._counted = self._took

    def look(self) -> None:
        """A point at which the work may pause: if it is time, the waiting thread runs its task."""
        self._took = time.thread_time()
        if self._took - self._asked >= ASK_SECONDS:
            self._asked = self._took
            self._mailbox.ask(self._counted_task)

    def end(self) -> None:
        """The last look, at the end of the work."""
        self._took, self._clock = time.thread_time(), None

    def _counted_task(self) -> None:
        self.count()
        self._task()


class OwnThread(Generic[T]):
    """One piece of work on its own thread."""

    def __init__(self, work: Callable[[Mailbox], T]) -> None:
        self._work, self._mailbox = work, Mailbox()
        self._answer: T | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="dovetail-aside", daemon=True)

    def _run(self) -> None:
        try:
            self._answer = self._work(self._mailbox)
        except BaseException as failure:
            self._failure = failure
        finally:
            self._mailbox.tasks.put(None)

    def wait(self, budget: Budget, end: Callable[[], object], grace: float = GRACE_SECONDS) -> T | None:
        """The answer; None if the budget is over and the work did not end within `grace` seconds after `end`.
        If memory is used up but time is left, it continues to wait, because only finished work releases
        memory."""
        self._thread.start()
        asked: float | None = None
        try:
            while self._serve_worker():
                if self._mailbox.taker is not None:
                    self._mailbox.taker.count()
                over = budget.over
                if over:
                    end()  # repeatedly: SCIP forgets a request that comes before it begins
                    patient = over is StopReason.MEMORY and budget.left > 0.0
                    asked = time.perf_counter() if asked is None or patient else asked
                    if time.perf_counter() - asked > grace:
                        return None
        except BaseException:
            self._mailbox.closed = True
            until = time.perf_counter() + grace
            end()
            while self._thread.is_alive() and time.perf_counter() < until:
                end()
                self._thread.join(POLL_SECONDS)
            raise
        finally:
            self._mailbox.closed = True
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._answer

    def _serve_worker(self) -> bool:
        """Serve the working thread for a moment; False when the work has ended."""
        try:
            item = self._mailbox.tasks.get(timeout=POLL_SECONDS)
        except queue.Empty:
            return True
        if item is None:
            return False
        task, done = item
        try:
            task()
        finally:
            done.set()
        return True
