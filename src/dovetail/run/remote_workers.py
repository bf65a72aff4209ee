"""Workers: objects that live as long as a run, here or elsewhere, and are asked all at once.

A *recipe* makes one object. Where objects live elsewhere, recipes, arguments and answers are pickled, and the
recipes are all that is kept here: a worker that is lost is replaced, its objects are made again, and asked
first what `renew_by` said. What is asked must be small; what is large stays with the object.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from dovetail.core.errors import EngineError
from dovetail.run.budget import Budget, OutOfTime
from dovetail.run.processes import Line, Lost, Process, Recipe, answer_of, begin, made_there
from dovetail.version import __version__

Arguments = Sequence[tuple[Any, ...] | None]
"""For every object; None for one that is not asked."""
POLL_SECONDS = 0.05
"""Between two looks at the clock while nobody answers; an answer is heard at once."""
GRACE_SECONDS = 1.0
"""After the end of the time: an answer that is on its way is waited for."""
MOST_LOSSES = 3
"""Of one worker: what kills it so often is its own work, memory for instance."""


@dataclass
class Traffic:
    """How many bytes went to the workers and came back, by the call they were for."""

    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """To all workers at once counts as one."""
    sent: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    received: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def total(self) -> int:
        """Bytes in all, both ways."""
        return sum(self.sent.values()) + sum(self.received.values())

    def per_call(self, call: str) -> float:
        """Bytes both ways for one call to all workers."""
        return (self.sent[call] + self.received[call]) / max(self.calls[call], 1)


class LocalWorkers:
    """All objects in this process, asked one after the other."""

    count, losses = 1, 0

    def __init__(self, recipes: Sequence[Recipe]) -> None:
        self.traffic = Traffic()
        self._objects = [make() for make in recipes]

    def ask(self, call: str, arguments: Arguments, budget: Budget) -> list[Any]:
        """Nothing travels, and nobody has to be waited for."""
        asked = zip(self._objects, arguments, strict=True)
        return [None if mine is None else getattr(made, call)(*mine) for made, mine in asked]

    def renew_by(self, call: str, arguments: Arguments) -> None:
        """What is here is not lost."""

    def close(self) -> None:
        """Nothing to end."""


class RemoteWorkers:
    """Workers elsewhere, whatever they are reached by: replaced when they are lost."""

    def __init__(self, lines: Sequence[Callable[[], Line]], sizes: Sequence[int], budget: Budget) -> None:
        """`lines` open a line to a new worker each; `sizes` are the objects it has."""
        self._open, self._sizes = lines, sizes
        self.traffic = Traffic()
        self._lost = [0] * len(lines)
        self._renewal: tuple[str, Arguments] | None = None
        self.pids = [0] * len(lines)
        self._lines: list[Line] = []
        try:
            self._lines.extend(opened() for opened in lines)  # all start while the first is told its recipe
            for line in self._lines:
                begin(line)
            for number in range(len(lines)):
                self._ready(number, budget)
        except BaseException:
            self.close()
            raise

    @property
    def count(self) -> int:
        """How many workers there are."""
        return len(self._open)

    @property
    def losses(self) -> int:
        """Workers that were lost so far, and replaced."""
        return sum(self._lost)

    def renew_by(self, call: str, arguments: Arguments) -> None:
        """From now on objects that are made again are asked this first."""
        self._renewal = (call, arguments)

    def ask(self, call: str, arguments: Arguments, budget: Budget) -> list[Any]:
        """What the method `call` of every object answers; `OutOfTime` where they do not answer in time."""
        letters = self._letters(call, arguments)
        self.traffic.calls[call] += 1
        gone = dict[int, Lost]()
        for number, letter in letters.items():
            try:
                self._send(number, call, letter)
            except Lost as reason:
                gone[number] = reason
        answers: list[Any] = []
        for number, size in enumerate(self._sizes):
            if number in letters:
                answers += self._answer(number, call, letters[number], gone.get(number), budget)
            else:
                answers += [None] * size
        return answers

    def close(self) -> None:
        """End them; nothing is asked after that."""
        for line in self._lines:
            line.end()

    def _letters(self, call: str, arguments: Arguments) -> dict[int, bytes]:
        """By worker; none for workers that are not asked anything."""
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

    def _answer(self, number: int, call: str, letter: bytes, gone: Lost | None, budget: Budget) -> list[Any]:
        """The answer of one worker, which is replaced whenever it is lost."""
        while True:
            try:
                if gone is not None:
                    raise gone
                reply = self._wait(number, budget)
                self.traffic.received[call] += len(reply)
                answers: list[Any] = self._read(number, reply)
                return answers
            except Lost as reason:
                gone = self._replaced(number, call, letter, reason, budget)

    def _replaced(self, number: int, call: str, letter: bytes, why: Lost, budget: Budget) -> Lost | None:
        """Replace a lost worker and ask it the same; returns the reason if the new one is lost, too."""
        self._reopen(number, why)
        self._ready(number, budget)
        try:
            renewal = self._letters(*self._renewal).get(number) if self._renewal else None
            if renewal is not None:
                self._send(number, "renewal", renewal)
                self._read(number, self._wait(number, budget))
            self._send(number, call, letter)
        except Lost as again:
            return again
        return None

    def _ready(self, number: int, budget: Budget) -> None:
        """Wait until a worker has made its objects; replace it if it is lost before."""
        while True:
            try:
                return self._settle(number, self._wait(number, budget))
            except Lost as reason:
                self._reopen(number, reason)

    def _reopen(self, number: int, why: Lost) -> None:
        self._lost[number] += 1
        if self._lost[number] > MOST_LOSSES:
            raise EngineError(
                f"worker {number + 1} of {self.count} was lost {self._lost[number]} times (the last "
                f"time: {why}); perhaps its machine has too little memory for its share: use more workers."
            )
        self._lines[number].end()
        try:
            self._lines[number] = self._open[number]()
        except Lost as nobody:
            raise EngineError(
                f"worker {number + 1} of {self.count} was lost ({why}), and there is nobody to replace it "
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
        """Note that the worker has its objects, or raise what it reports."""
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
    """Somewhere else to work."""

    @property
    def description(self) -> str:
        """For the log."""
        ...

    @property
    def workers(self) -> int:
        """How many may be hired."""
        ...

    def hire(self, recipes: Sequence[Sequence[Recipe]], *, on_gpu: bool, budget: Budget) -> Workers:
        """A worker for each list of recipes: it makes these objects and keeps them."""
        ...


def process_workers(recipes: Sequence[Sequence[Recipe]], budget: Budget) -> RemoteWorkers:
    """A process of this machine for each list of recipes: the same work without any cluster."""
    return RemoteWorkers(
        [partial(Process, list(mine)) for mine in recipes], [len(mine) for mine in recipes], budget
    )
