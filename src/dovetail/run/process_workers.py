"""Workers that are processes of this machine, reached by pipes: the same work without any cluster.

They are started afresh (never forked: torch and HiGHS have threads) and do not run the caller's program
again, as `multiprocessing` would: a script without `if __name__ == "__main__"` may use them. So nothing that
the script itself defines can travel: `CannotTravel` says so.
"""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from dovetail.run.budget import Budget
from dovetail.run.remote_workers import CannotTravel, Line, Lost, RemoteWorkers, pickled
from dovetail.run.workers import Recipe

PROGRAM = "import sys; from dovetail.run.process_workers import serve; serve(int(sys.argv[1]))"
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""There is a worker for every core."""


def process_workers(recipes: Sequence[Sequence[Recipe]], budget: Budget) -> RemoteWorkers:
    """A process for each list of recipes."""
    _require_pipes()
    lines = [partial(_ProcessLine, list(mine)) for mine in recipes]
    return RemoteWorkers(lines, [len(mine) for mine in recipes], budget)


def process_lines(recipes: Sequence[Sequence[Recipe]]) -> list[Line]:
    """A new process for each list of recipes, which is told them by `begin`: nobody waits for it here."""
    _require_pipes()
    for mine in recipes:
        pickled(mine, pickle.dumps)  # before anything is started
    return [_ProcessLine(list(mine)) for mine in recipes]


def _require_pipes() -> None:
    if os.name != "posix" or not sys.executable:
        raise CannotTravel("processes inherit no pipes on this system")


class _ProcessLine:
    """See `Line`."""

    def __init__(self, recipes: list[Recipe]) -> None:
        self._recipes = recipes
        self._pipe, there = Pipe()
        places = [place for place in sys.path if place]
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(there.fileno())],
            pass_fds=[there.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the caller's to hear
            env={**os.environ, "PYTHONPATH": os.pathsep.join(places), **dict.fromkeys(ONE_THREAD, "1")},
        )
        there.close()

    def begin(self) -> None:
        """The recipes are the first letter, which is as large as the data: it is not kept."""
        self.send(pickled(self._recipes, pickle.dumps))

    def send(self, letter: bytes) -> None:
        """Through the pipe."""
        try:
            self._pipe.send_bytes(letter)
        except OSError:
            raise Lost(self._ended()) from None

    def receive(self, seconds: float) -> bytes | None:
        """An empty pipe that is closed is a process that has ended."""
        try:
            return self._pipe.recv_bytes() if self._pipe.poll(seconds) else None
        except (EOFError, OSError):
            raise Lost(self._ended()) from None

    def end(self) -> None:
        """Now, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._pipe.close()

    def _ended(self) -> str:
        self._process.kill()
        code = self._process.wait()
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def end_with(descriptor: int) -> None:
    """End this process as soon as nobody holds the other end of a pipe, whatever it computes.

    The one who started it may have been killed, and a process that computes does not read.
    """
    if not hasattr(select, "poll"):  # Windows: the process ends when it next reads
        return

    def watch() -> None:
        closed = select.poll()
        closed.register(descriptor, 0)  # no event asked for: only that the other end is gone
        closed.poll()
        os._exit(0)

    threading.Thread(target=watch, name="dovetail-parent", daemon=True).start()


def serve(descriptor: int) -> None:
    """What such a process does: until the pipe is closed."""
    pipe: Connection[bytes, bytes] = Connection(descriptor)
    end_with(descriptor)
    try:
        recipes = pipe.recv_bytes()  # first of all: whoever sends it has other workers to tell
        from dovetail.run.desk import Desk

        desk = Desk()
        pipe.send_bytes(desk.make(recipes))
        del recipes
        while True:
            pipe.send_bytes(desk.answer(pipe.recv_bytes()))
    except (EOFError, OSError):
        return
