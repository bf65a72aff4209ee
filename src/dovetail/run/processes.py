"""Processes of this machine, each behind a pipe, and a process pool for independent tasks.

Processes are spawned, never forked: torch and HiGHS have threads, and a fork copies their locks in an
arbitrary state. A worker has one thread and its own session, so that Ctrl-C and SIGTERM reach only the
process that started it. The process builds objects from recipes and answers requests (`Desk`) until the other
end of its pipe is closed.

A process imports the caller's program only if `program` is set. Without the program, objects that the
program itself defines cannot be sent, and `NotPicklable` is raised. With the program, its top-level code
must be under `if __name__ == "__main__":`.

Workers are objects that live as long as a run, in this process or in others, and are called all at once. A
*recipe* makes one object. For objects in other processes, recipes, arguments and answers are pickled, and
only the recipes are kept in this process. A lost worker is replaced: its objects are made again, and the call
named by `renew_by` comes first. Requests must be small; large data stay with the object.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import connection, spawn
from typing import Any, Protocol, TypeVar

from dovetail.core.errors import EngineError
from dovetail.run.budget import Budget, OutOfTime
from dovetail.run.environment import gradients
from dovetail.run.failures import is_users, mark
from dovetail.version import __version__

Recipe = Callable[[], object]
"""The description of one object that another process makes."""
Task = TypeVar("Task")
Answer = TypeVar("Answer")

PROGRAM = "import sys; from dovetail.run.processes import serve; serve(int(sys.argv[1]))"
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment of a process with one thread, because there is a process for every core."""
PATIENCE = 5.0
"""Seconds until a process that has closed its pipe must have ended."""
LOOK_SECONDS = 1.0
"""Seconds between two checks of the processes; answers and ends are noticed at once, unless a child of a
process holds its pipe."""


class WorkerLost(Exception):
    """The worker is gone; the text says how it ended."""

    begun = True
    """Whether the worker had made its objects before it was lost."""


class NotPicklable(Exception):
    """Recipes that cannot be pickled here, or read there."""


class Line(Protocol):
    """The connection to one worker, for one message at a time. All methods except `end` raise `WorkerLost` if
    the worker is gone."""

    def begin(self) -> None:
        """Send the recipes; the reply comes from `Desk.make`."""
        ...

    def send(self, letter: bytes) -> None:
        """Send a message to `Desk.answer`."""
        ...

    def receive(self, seconds: float) -> bytes | None:
        """The reply, or None if there is none after this number of seconds."""
        ...

    def end(self) -> None:
        """End the worker."""
        ...


def pickled(recipes: Sequence[Recipe], dumps: Callable[[Any], bytes]) -> bytes:
    """The message with which a worker makes its objects."""
    try:
        return dumps(recipes)
    except Exception as reason:
        raise NotPicklable(f"{type(reason).__name__}: {reason}") from None


def read_reply(reply: bytes) -> tuple[bool, Any]:
    """Whether the reply is an answer, and the answer; otherwise the exception raised in the worker. The
    pickle comes from a process that we started."""
    answered, answer = pickle.loads(reply)
    return answered, answer


def answer_of(reply: bytes) -> Any:
    """The answer; an exception of the worker is raised here."""
    answered, answer = read_reply(reply)
    if not answered:
        raise answer
    return answer


def made_there(reply: bytes) -> tuple[int, str]:
    """The worker's process and version of dovetail after it made its objects; or why this failed."""
    made, answer = read_reply(reply)
    if made:
        pid, version = answer
        return pid, version
    if isinstance(answer, MemoryError):
        raise answer
    raise NotPicklable(f"{type(answer).__name__}: {answer}")


class Process:
    """A `Line` to a process started here."""

    def __init__(self, recipes: Sequence[Recipe], *, program: bool = False) -> None:
        if not sys.executable:
            raise NotPicklable("the Python interpreter was not found")
        self._recipes, self.begun = recipes, False
        self._program = spawn.get_preparation_data("dovetail") if program else {}
        self._program.pop("authkey", None)  # multiprocessing's own objects cannot be pickled
        self.pipe, there = multiprocessing.Pipe()
        if sys.platform == "win32":
            os.set_handle_inheritable(there.fileno(), True)
        places = [place for place in sys.path if place]
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(there.fileno())],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(places), **dict.fromkeys(ONE_THREAD, "1")},
            pass_fds=() if sys.platform == "win32" else (there.fileno(),),
            close_fds=sys.platform != "win32",
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # a process group, on Windows
        )
        there.close()  # otherwise the end of the process would not be noticed

    def begin(self) -> None:
        """Send the recipes without keeping them, because they are as large as the data."""
        self.send(pickle.dumps(self._program))
        self.send(pickled(self._recipes, pickle.dumps))

    def send(self, letter: bytes) -> None:
        """Sent through the pipe."""
        try:
            self.pipe.send_bytes(letter)
        except OSError:
            raise self._worker_lost() from None

    def receive(self, seconds: float) -> bytes | None:
        """The reply; a closed pipe means that the process has ended, although a child may hold the pipe
        open."""
        ended = self._process.poll() is not None
        try:
            if self.pipe.poll(0.0 if ended else seconds):
                reply = self.pipe.recv_bytes()
                self.begun = True
                return reply
        except (EOFError, OSError):
            ended = True
        if ended:
            raise self._worker_lost()
        return None

    def end(self) -> None:
        """End the process now."""
        self._process.kill()
        self._process.wait()
        self.pipe.close()

    def _worker_lost(self) -> WorkerLost:
        lost = WorkerLost(self._how_it_ended())
        lost.begun = self.begun
        return lost

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return "stopped answering"
        if code >= 0:
            return f"ended with exit code {code}"
        return f"was killed by {signal.Signals(-code).name}, perhaps for lack of memory"


def pooled(
    work: Callable[[Task], Answer],
    take: Callable[[], Task | None],
    jobs: int,
    *,
    alone: Callable[[Task], bool] = lambda task: False,
    program: bool = False,
) -> Generator[tuple[Task, Answer | WorkerLost], None, None]:
    """Tasks with the answers of `work` as they come, `jobs` at a time, each in a process of the pool.

    `take` gives the next task; None means that there is none at present, and `take` is called again after the
    next answer. A process that dies during a task is replaced; the answer of that task is how the process
    ended. A task that is `alone` has a new process, which ends after it. An exception raised by `work` is
    raised here. Every process ends with the generator.
    """
    working, idle = dict[Process, Task](), list[Process]()
    try:
        while True:
            while len(working) < jobs and (task := take()) is not None:
                if idle and not alone(task):
                    process = idle.pop()
                    working[process] = task
                    _send_task(process, task)
                else:
                    process = Process([partial(_differentiable, work)], program=program)
                    working[process] = task
                    begin(process)
            if len(working) < jobs:  # no task at present: free the memory for the processes that work
                while idle:
                    idle.pop().end()
            if not working:
                return
            connection.wait([process.pipe for process in working], LOOK_SECONDS)
            for process, task in list(working.items()):
                is_ready = process.begun
                try:
                    reply = process.receive(0.0)
                except WorkerLost as lost:
                    del working[process]
                    process.end()
                    yield task, lost
                    continue
                if reply is not None and is_ready:
                    del working[process]
                    if alone(task):
                        process.end()
                    else:
                        idle.append(process)
                    yield task, answer_of(reply)[0]  # the arguments of the one object
                elif reply is not None:
                    made_there(reply)
                    _send_task(process, task)
    finally:
        for process in (*working, *idle):
            process.end()


def begin(line: Line) -> None:
    """A worker that is already lost is noticed when its reply is awaited."""
    with suppress(WorkerLost):
        line.begin()


def _send_task(process: Process, task: object) -> None:
    with suppress(WorkerLost):  # a lost worker is noticed when its answer is awaited
        process.send(pickle.dumps(("__call__", [(task,)])))


def _differentiable(work: Callable[[Task], Answer]) -> Callable[[Task], Answer]:
    """Tasks may train networks, while a `Desk` computes without gradients."""
    return gradients()(work)


def end_with(descriptor: int) -> None:
    """End this process as soon as the other end of a pipe is closed, whatever it computes, because its
    starter may have been killed."""
    if not hasattr(select, "poll"):  # Windows: the process ends at its next read
        return

    def watch() -> None:
        closed = select.poll()
        closed.register(descriptor, 0)  # no event is requested: only the end of the other side is reported
        closed.poll()
        os._exit(0)

    threading.Thread(target=watch, name="dovetail-parent", daemon=True).start()


def serve(descriptor: int) -> None:
    """The main loop of a worker, until its pipe is closed."""
    for number in (signal.SIGINT, signal.SIGTERM):  # signals are for the process that started this one
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "win32":
        pipe = connection.PipeConnection(descriptor)
    else:
        pipe = connection.Connection(descriptor)
    end_with(descriptor)
    try:
        program, recipes = pipe.recv_bytes(), pipe.recv_bytes()  # first, because the sender waits
    except (EOFError, OSError):
        return
    _import_program(pickle.loads(program))
    desk = Desk()
    with suppress(EOFError, OSError):
        pipe.send_bytes(desk.make(recipes))
        del recipes
        while True:
            reply = desk.answer(pipe.recv_bytes())
            with suppress(Exception):  # the process may end without a warning
                sys.stdout.flush()
            pipe.send_bytes(reply)


def _import_program(data: dict[str, Any]) -> None:
    """Import the main program as `multiprocessing` does; a program that starts processes during this import
    is refused."""
    process: Any = multiprocessing.current_process()
    process._inheriting = True
    try:
        spawn.prepare(data)
    finally:
        del process._inheriting


class Desk:
    """The worker's side of a connection."""

    def __init__(self) -> None:
        self._objects: list[Any] = []

    def make(self, recipes: bytes) -> bytes:
        """Make the objects; answers with the process and the version of dovetail."""
        return self._reply(self._made, recipes)

    def answer(self, letter: bytes) -> bytes:
        """The answers of the objects."""
        return self._reply(self._asked, letter)

    def _made(self, recipes: bytes) -> tuple[int, str]:
        import torch

        read = pickle.loads(recipes)
        torch.set_num_threads(1)  # number of threads of the libraries: there is a worker for every core
        self._objects = [make() for make in read]
        return os.getpid(), __version__

    def _asked(self, letter: bytes) -> list[Any]:
        call, arguments = pickle.loads(letter)
        asked = zip(self._objects, arguments, strict=True)
        return [None if mine is None else getattr(made, call)(*mine) for made, mine in asked]

    def _reply(self, work: Any, letter: bytes) -> bytes:
        import torch

        try:
            with torch.no_grad():
                return pickle.dumps((True, work(letter)))
        except Exception as trouble:
            return pickle.dumps((False, _picklable(trouble)))


def _picklable(trouble: Exception) -> Exception:
    """The exception if it can be pickled, otherwise its text; the mark of a user's exception is kept."""
    users = is_users(trouble)  # tracebacks are not pickled
    try:
        pickle.loads(pickle.dumps(trouble))
    except Exception:
        trouble = RuntimeError(f"{type(trouble).__name__}: {trouble}")
    if users:
        mark(trouble)
    return trouble


Arguments = Sequence[tuple[Any, ...] | None]
"""Arguments for every object; None for an object that is not called."""
POLL_SECONDS = 0.05
"""Seconds between two checks of the clock while no answer comes; answers are noticed at once."""
GRACE_SECONDS = 1.0
"""Seconds after the end of the time in which answers are still accepted."""
MOST_LOSSES = 3
"""Number of losses after which a worker is not restarted, because its own work probably ends it (lack of
memory, for example)."""


@dataclass
class Traffic:
    """Number of bytes sent to the workers and received, by kind of call."""

    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """A call to all workers at once counts as one."""
    sent: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    received: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def total(self) -> int:
        """Bytes in total, both ways."""
        return sum(self.sent.values()) + sum(self.received.values())

    def per_call(self, call: str) -> float:
        """Bytes both ways for one call to all workers."""
        return (self.sent[call] + self.received[call]) / max(self.calls[call], 1)


class LocalWorkers:
    """All objects in this process, called one after the other."""

    count, losses = 1, 0

    def __init__(self, recipes: Sequence[Recipe]) -> None:
        self.traffic = Traffic()
        self._objects = [make() for make in recipes]

    def ask(self, call: str, arguments: Arguments, budget: Budget) -> list[Any]:
        """The objects are called directly."""
        asked = zip(self._objects, arguments, strict=True)
        return [None if mine is None else getattr(made, call)(*mine) for made, mine in asked]

    def renew_by(self, call: str, arguments: Arguments) -> None:
        """Objects of this process cannot be lost."""

    def close(self) -> None:
        """There is no process to end."""


class RemoteWorkers:
    """Workers in other processes or machines: a lost worker is replaced."""

    def __init__(self, lines: Sequence[Callable[[], Line]], sizes: Sequence[int], budget: Budget) -> None:
        """`lines` open the connection to a new worker each; `sizes` are the numbers of objects per worker."""
        self._open, self._sizes = lines, sizes
        self.traffic = Traffic()
        self._worker_lost = [0] * len(lines)
        self._renewal: tuple[str, Arguments] | None = None
        self.pids = [0] * len(lines)
        self._lines: list[Line] = []
        try:
            self._lines.extend(opened() for opened in lines)  # all begin while the first gets its recipe
            for line in self._lines:
                begin(line)
            for number in range(len(lines)):
                self._wait_until_made(number, budget)
        except BaseException:
            self.close()
            raise

    @property
    def count(self) -> int:
        """The number of workers."""
        return len(self._open)

    @property
    def losses(self) -> int:
        """Workers that were lost so far, and replaced."""
        return sum(self._worker_lost)

    def renew_by(self, call: str, arguments: Arguments) -> None:
        """From now on this call comes first for objects that are made again."""
        self._renewal = (call, arguments)

    def ask(self, call: str, arguments: Arguments, budget: Budget) -> list[Any]:
        """The answers of every object to the method `call`; `OutOfTime` if they do not answer in time."""
        letters = self._messages(call, arguments)
        self.traffic.calls[call] += 1
        gone = dict[int, WorkerLost]()
        for number, letter in letters.items():
            try:
                self._send(number, call, letter)
            except WorkerLost as reason:
                gone[number] = reason
        answers: list[Any] = []
        for number, size in enumerate(self._sizes):
            if number in letters:
                answers += self._answer(number, call, letters[number], gone.get(number), budget)
            else:
                answers += [None] * size
        return answers

    def close(self) -> None:
        """End the workers; no call may follow."""
        for line in self._lines:
            line.end()

    def _messages(self, call: str, arguments: Arguments) -> dict[int, bytes]:
        """Answers by worker; none for workers that were not called."""
        letters, first = dict[int, bytes](), 0
        for number, size in enumerate(self._sizes):
            mine = arguments[first : first + size]
            first += size
            if any(of_one is not None for of_one in mine):
                letters[number] = pickle.dumps((call, mine))
        return letters

    def _send(self, number: int, call: str, letter: bytes) -> None:
        self.traffic.sent[call] += len(letter)
        self._lines[number].send(letter)

    def _answer(
        self, number: int, call: str, letter: bytes, gone: WorkerLost | None, budget: Budget
    ) -> list[Any]:
        """The answer of one worker, which is replaced if it is lost."""
        while True:
            try:
                if gone is not None:
                    raise gone
                reply = self._wait(number, budget)
                self.traffic.received[call] += len(reply)
                answers: list[Any] = self._read(number, reply)
                return answers
            except WorkerLost as reason:
                gone = self._replaced(number, call, letter, reason, budget)

    def _replaced(
        self, number: int, call: str, letter: bytes, why: WorkerLost, budget: Budget
    ) -> WorkerLost | None:
        """Replace a lost worker and repeat the call; returns the reason if the new worker is lost, too."""
        self._restart(number, why)
        self._wait_until_made(number, budget)
        try:
            renewal = self._messages(*self._renewal).get(number) if self._renewal else None
            if renewal is not None:
                self._send(number, "renewal", renewal)
                self._read(number, self._wait(number, budget))
            self._send(number, call, letter)
        except WorkerLost as again:
            return again
        return None

    def _wait_until_made(self, number: int, budget: Budget) -> None:
        """Wait until a worker has made its objects; replace it if it is lost before that."""
        while True:
            try:
                return self._settle(number, self._wait(number, budget))
            except WorkerLost as reason:
                self._restart(number, reason)

    def _restart(self, number: int, why: WorkerLost) -> None:
        self._worker_lost[number] += 1
        if self._worker_lost[number] > MOST_LOSSES:
            raise EngineError(
                f"worker {number + 1} of {self.count} was lost {self._worker_lost[number]} times (the last "
                f"time: {why}); perhaps its machine has too little memory for its share: use more workers."
            )
        self._lines[number].end()
        try:
            self._lines[number] = self._open[number]()
        except WorkerLost as nobody:
            raise EngineError(
                f"worker {number + 1} of {self.count} was lost ({why}), and it could not be replaced "
                f"({nobody})."
            ) from None
        begin(self._lines[number])

    def _wait(self, number: int, budget: Budget) -> bytes:
        while True:
            reply = self._lines[number].receive(POLL_SECONDS)
            if reply is not None:
                return reply
            if budget.late > GRACE_SECONDS:
                raise OutOfTime

    def _settle(self, number: int, reply: bytes) -> None:
        """Record that the worker has its objects, or raise the error that it reports."""
        self.pids[number], version = made_there(reply)
        if version != __version__:
            raise EngineError(
                f"worker {number + 1} has dovetail {version}, and this process {__version__}; "
                "install the same."
            )

    def _read(self, number: int, reply: bytes) -> Any:
        try:
            return answer_of(reply)
        except Exception as trouble:
            trouble.add_note(f"raised by worker {number + 1} of {self.count}")
            raise


Workers = LocalWorkers | RemoteWorkers


class Cluster(Protocol):
    """A place where a worker can run."""

    @property
    def description(self) -> str:
        """A description for the log."""
        ...

    @property
    def workers(self) -> int:
        """The largest number of workers."""
        ...

    def hire(self, recipes: Sequence[Sequence[Recipe]], *, on_gpu: bool, budget: Budget) -> Workers:
        """A worker for each list of recipes, which makes these objects and keeps them."""
        ...


def process_workers(recipes: Sequence[Sequence[Recipe]], budget: Budget) -> RemoteWorkers:
    """A process of this machine for each list of recipes: the same interface without a cluster."""
    return RemoteWorkers(
        [partial(Process, list(mine)) for mine in recipes], [len(mine) for mine in recipes], budget
    )
