"""The same problem in other processes, with other seeds: what they find is fetched, never waited for long.

Each line leads to an object that searches by itself and answers `better_than(objective)` with a point or None
(`ConcurrentSolve`, on the far side). Only points travel: bounds and proofs are made here, where the result's
certificate is. A process that is lost, or fails, is one less; the solve here goes on.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Sequence

from dovetail.core.arrays import FloatArray
from dovetail.run.failures import expendable, is_users
from dovetail.run.remote_workers import Line, Lost, read_reply

PATIENCE = 0.25
"""Seconds, for the answers of all: a process in the middle of a long call to an engine is heard next time."""


class ConcurrentSolves:
    """What is asked of them, and what came back."""

    def __init__(self, lines: Sequence[Line], say: Callable[[str], None]) -> None:
        self._lines, self._say = dict(enumerate(lines, start=1)), say
        self._asked = set(self._lines)
        """Those whose answer is still to come; the first one is that they are ready."""
        self._with_each(self._lines, lambda number, line: line.begin())

    def arrived(self, objective: float) -> list[FloatArray]:
        """Points that are better than `objective` (NaN: any), of those who answer at once."""
        points, until = list[FloatArray](), time.monotonic() + PATIENCE

        def ask(number: int, line: Line) -> None:
            line.send(pickle.dumps(("better_than", [(objective,)])))
            self._asked.add(number)

        def hear(number: int, line: Line) -> None:
            reply = line.receive(max(until - time.monotonic(), 0.0))
            if reply is not None:
                self._asked.discard(number)
                points.extend(_points(reply))

        self._with_each(set(self._lines) - self._asked, ask)
        self._with_each(self._asked, hear)
        return points

    def close(self) -> None:
        """End them, whatever they do."""
        for line in self._lines.values():
            line.end()
        self._lines.clear()
        self._asked.clear()

    def _with_each(self, numbers: Iterable[int], work: Callable[[int, Line], None]) -> None:
        """Those that are lost meanwhile go, and that is said."""
        for number in sorted(numbers):
            try:
                work(number, self._lines[number])
            except Lost as reason:
                self._say(f"concurrent solve {number} has ended ({reason})")
                self._asked.discard(number)
                self._lines.pop(number).end()
                failure = reason.__cause__
                if isinstance(failure, Exception) and not is_users(failure):
                    with expendable(f"concurrent solve {number}"):
                        raise failure from None


def _points(reply: bytes) -> list[FloatArray]:
    """Of an answer; none in that which says that the process is ready."""
    answered, answer = read_reply(reply)
    if not answered:
        raise Lost(f"{type(answer).__name__}: {answer}") from answer
    return [x for x in answer if x is not None] if isinstance(answer, list) else []
