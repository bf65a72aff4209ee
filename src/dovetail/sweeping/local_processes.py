"""Cases solved by processes of this machine.

Processes are spawned, never forked: torch and HiGHS have threads, and a fork copies their locks in whatever
state they are. Each has a pipe of its own rather than a place in an executor, so that one that is
killed takes only its case with it and is replaced.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection

from dovetail.core.errors import OptionError
from dovetail.sweeping.build_function import BuildFunction
from dovetail.sweeping.cases import Case
from dovetail.sweeping.row import SweepRow
from dovetail.sweeping.worker import serve

NOT_BEGUN = (
    "a process for build {name!r} {end} before it began: the program that is run is imported by every "
    'process, so put what it does, dovetail.sweep included, under `if __name__ == "__main__":`.'
)
PATIENCE = 5.0
"""Seconds for a process without work to end by itself."""


@dataclass(frozen=True)
class LocalProcesses:
    """A `CaseRunner` with `n_jobs` processes."""

    function: BuildFunction
    n_jobs: int
    keep_results: bool

    def rows(self, cases: Sequence[Case]) -> Generator[SweepRow, None, None]:
        """The rows, as they come."""
        waiting = deque(cases)
        processes: list[_Process] = []
        try:
            for _ in range(min(self.n_jobs, len(cases))):
                processes.append(_Process(self.function, self.keep_results))
            while working := [process for process in processes if process.works]:
                for process in _heard(working):
                    row = process.row()
                    if row is not None:
                        yield row
                    if process.works and waiting:
                        process.give(waiting.popleft())
                    elif process.works:
                        process.dismiss()
                    elif waiting:  # it was killed
                        processes.append(_Process(self.function, self.keep_results))
        finally:
            for process in processes:
                process.end()


class _Process:
    """A process from where it was started, and the case it is given."""

    def __init__(self, function: BuildFunction, keep_results: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self._function = function
        self._channel, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, function, keep_results))
        self._case: Case | None = None
        self.works = True
        """Until it is dismissed or found dead."""
        with _signals_held_back():
            self._process.start()
        theirs.close()  # else its end would not be heard

    @property
    def ears(self) -> tuple[connection.Connection, int]:
        """What becomes ready when it says something, and when it ends: a pipe may outlive its process."""
        return self._channel, self._process.sentinel

    def row(self) -> SweepRow | None:
        """What it says: the row of its case, whatever became of that; None if only that it is ready."""
        case, self._case = self._case, None
        said = self._said()
        if said is None:
            self.works = False
            if case is None:
                raise OptionError(NOT_BEGUN.format(name=self._function.name, end=self._last_word()))
            return SweepRow(case, self._function.name, error=f"its process {self._last_word()}")
        if case is not None:
            return SweepRow.from_line(said)
        if said:
            raise OptionError(f"build {self._function.name!r} cannot be imported by another process: {said}")
        return None

    def give(self, case: Case) -> None:
        """The next case; whether it is still there to take it is seen when it is heard."""
        self._case = case
        try:
            self._channel.send_bytes(json.dumps(case).encode())
        except OSError:
            return

    def dismiss(self) -> None:
        """There is no more work."""
        self.works = False
        self._channel.close()

    def end(self) -> None:
        """End it, at once where it has work."""
        if self.works:
            self._process.kill()
        self._process.join(PATIENCE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._channel.close()

    def _said(self) -> str | None:
        try:
            return self._channel.recv_bytes().decode() if self._channel.poll() else None
        except (EOFError, OSError):
            return None

    def _last_word(self) -> str:
        """How it ended; what closed its pipe without ending is ended."""
        self._process.join(PATIENCE)
        code = self._process.exitcode
        if code is None:
            return "stopped answering"
        if code >= 0:
            return f"ended with exit code {code}"
        return f"was killed by {signal.Signals(-code).name}, perhaps for want of memory"


def _heard(processes: list[_Process]) -> list[_Process]:
    """Those that have said something, or ended; waits for the first."""
    ready = set(connection.wait([ear for process in processes for ear in process.ears]))
    return [process for process in processes if not ready.isdisjoint(process.ears)]


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """A process started meanwhile never hears Ctrl-C or SIGTERM, not even while it imports; ours hears them
    at the end."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it would let signals through again if it were started meanwhile
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
