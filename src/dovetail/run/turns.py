"""Several computations take turns: each continues where it paused, and none waits for long.

It is unknown beforehand which computation will end first. So they take turns:

    class   searches have `SEARCH_SHARE` of the work of proofs (`FIRST_SEARCH_SHARE` until a solution is
            known), times the largest of their weights, however many there are of either; the first of a
            class begins at once
    next    of its class one that leads; else the one that has worked least for its weight, of equals the
            first. Another begins when each of the n at work has worked n times BEGIN for its weight
    slice   as long as it has worked so far, and FIRST at least: turns double
    leads   at the pace of its last turn the gap is closed before all have worked twice as much as now
    weight  1 while it gains; then its work until BEGIN after it last gained, as a part of its work so far:
            what gains nothing for long works less and less, down to LEAST_WEIGHT

A computation that takes a time T alone ends within a small multiple of T, whatever the others do. Work is
counted, not timed (`Work.effort`), so that a solve takes the same turns on every machine, whatever its load.
MIPs inside an engine are counted in processor seconds, since no count of an engine predicts its time; if
other counts are far below the processor's time, that time ends a slice.

A computation pauses when it calls `Budget.over`. It runs on a stack of its own (a
greenlet), so that loops need not be written as generators. Work that must not pause in the middle, because
other computations would see unfinished results, is enclosed in `undivided`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import torch
from greenlet import getcurrent, greenlet

from dovetail.core.deadline import OutOfTime
from dovetail.run import work
from dovetail.run.budget import Budget

FIRST = 20_000
"""Microseconds of effort of a first turn: with 100,000 a linear predictor takes 0.4 s instead of 0.13."""
BEGIN = 160_000
"""Microseconds of effort that the preparation of most parts takes. Effort without a gain up to this
amount does not lower the weight. With 80,000 (40,000 and 100,000 for the two before) 72 problems took 1.04
(1.06) times as long to the proof, and the mean distance of incumbents from the best over 20 s was 1.1 (1.28)
times as large."""
SEARCH_SHARE = 0.5
"""With 1 the mean distance of bounds over 25 s and 51 problems was 0.23 instead of 0.19, and incumbents were
no better; without shares of classes 0.22."""
FIRST_SEARCH_SHARE = 2.0
"""Until a solution is known. With 0.5 (1) the mean distance of incumbents from the best over 12 s and 44
problems was 9.5 % (9.4) instead of 8.5, that of bounds 29.9 % (30.2) instead of 28.8."""
LEAST_WEIGHT = 0.25
"""The least weight of a part without gains: without it the part's work would grow only with the square root
of all work. Over 12 s and 44 problems nothing changes (13.7 %, 34.9 %; 25 proofs instead of 24); after 60 s
wine_2x32 was at 4.0007 instead of 4.0039 (one run each)."""
MISCOUNTED = 4.0
"""Limit of a slice in processor seconds, as a multiple of its effort: four of five slices take at most three
times."""


class Clock:
    """The time of one computation, which stops while others work, and the end of its slice."""

    def __init__(self) -> None:
        self._stack: Any = None
        self._elsewhere, self._rested_at = 0.0, time.perf_counter()
        self._slice, self._begin, self._cpu = 0.0, 0, 0.0
        self._held, self.used = 0, 0
        """Effort of the computation so far."""
        self.closed = False
        """Whether there are no more turns, so that the computation has to end."""

    def now(self) -> float:
        """Seconds of this computation, without those of others."""
        return time.perf_counter() - self._elsewhere

    @property
    def slice(self) -> float:
        """Seconds that are left in its turn, at least those of a first turn."""
        return 1e-6 * max(FIRST, self._slice - (work.total().effort - self._begin))

    @property
    def effort(self) -> int:
        """Microseconds of effort so far, this turn included."""
        at_work = self._stack is not None
        return self.used + (work.total().effort - self._begin if at_work else 0)

    def rest(self) -> None:
        """Let others work, if the slice is used up; called by the computation itself."""
        if self._held or self.closed or getcurrent() is not self._stack:
            return
        spent = work.total().effort - self._begin
        if spent < self._slice and 1e6 * (time.thread_time() - self._cpu) < MISCOUNTED * self._slice:
            return
        gradients = torch.is_grad_enabled()
        try:
            self._stack.parent.switch(None)
        finally:
            torch.set_grad_enabled(gradients)

    @contextmanager
    def undivided(self) -> Iterator[None]:
        """Inside, the computation does not pause."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    def go_on(self, stack: greenlet, effort: float) -> Any:
        """A turn with this much effort; the result of the computation, or None if it pauses."""
        self._stack, self._slice = stack, effort
        self._begin, self._cpu = work.total().effort, time.thread_time()
        self._elsewhere += time.perf_counter() - self._rested_at
        gradients = torch.is_grad_enabled()
        try:
            return stack.switch()
        finally:
            torch.set_grad_enabled(gradients)
            self._stack, self._rested_at = None, time.perf_counter()
            # work that could not be counted is charged by processor time
            counted, spent = work.total().effort - self._begin, 1e6 * (time.thread_time() - self._cpu)
            self.used += max(counted, int(spent / MISCOUNTED))


@dataclass(eq=False)
class Computation:
    """A computation that takes turns."""

    run: Callable[[], Any]
    """The function asks budgets of `clock` whether to continue; its result is not None."""
    clock: Clock = field(default_factory=Clock)
    proves: bool = False
    """Whether the computation proves bounds; otherwise it searches."""
    left: float = math.inf
    """Estimated effort until the gap is closed, at the pace of the last turn."""
    _gained_at: int = 0
    """Effort at the end of the last turn that gained something."""
    _stack: greenlet | None = None

    @property
    def slice(self) -> float:
        """Effort of its next turn."""
        return max(FIRST, self.clock.used)

    @property
    def due(self) -> float:
        """Its effort so far divided by its weight."""
        return self.clock.used / self.weight

    @property
    def weight(self) -> float:
        """Its share of work relative to the others."""
        return min(1.0, max(LEAST_WEIGHT, (self._gained_at + BEGIN) / max(BEGIN, self.clock.used)))

    def turn(self, effort: float) -> Any:
        """Continue the computation; returns its result, or None if it pauses."""
        if self._stack is None:
            self._stack = greenlet(self.run)
            self._stack.gr_context = context = copy_context()
            context.run(work.CLOCK.set, self.clock.now)
        return self.clock.go_on(self._stack, effort)

    def judge(self, closed: float, better: bool, effort: float) -> None:
        """After a turn with this `effort`: record by how much it closed the gap or improved the incumbent."""
        if better or closed > 0.0:
            self._gained_at = self.clock.used
        self.left = effort * (1.0 - closed) / closed if closed > 0.0 else math.inf

    def close(self, *, at_once: bool = False) -> Any:
        """End it as if its time were over or, with `at_once`, by an `OutOfTime` where it pauses. The result
        of the computation; None if it never began."""
        stack, self._stack = self._stack, None
        if stack is None or stack.dead:
            return None
        self.clock.closed = True
        return stack.throw(OutOfTime) if at_once else self.clock.go_on(stack, math.inf)


Some = TypeVar("Some", bound=Computation)
T = TypeVar("T")


def proves_next(
    at_work: Sequence[Computation], waiting: Sequence[bool] = (), search_share: float = SEARCH_SHARE
) -> bool:
    """Whether the next turn belongs to a proof rather than a search; `waiting`: for each computation that has
    not begun, whether it proves."""
    searches, proofs = ([one for one in at_work if one.proves is proves] for proves in (False, True))
    for proves in waiting:
        if not (proofs if proves else searches):
            return proves
    if searches and proofs:
        share = search_share * max(one.weight for one in searches)
        return used(searches) >= share * used(proofs)
    return bool(proofs)


def next_of(
    at_work: Sequence[Some],
    waiting: Sequence[bool] = (),
    search_share: float = SEARCH_SHARE,
    begin: float = BEGIN,
) -> Some | None:
    """The computation whose turn it is; None if the first waiting one of its class should begin."""
    proves, total = proves_next(at_work, waiting, search_share), used(at_work)
    mates = [one for one in at_work if one.proves is proves]

    def waits(one: Some) -> tuple[bool, float]:
        return one.left > total, one.due

    one = min(mates, key=waits, default=None)
    if one is not None and proves in waiting and one.due >= begin * len(mates):
        return None
    return one


def used(computations: Iterable[Computation]) -> int:
    """The work of all computations."""
    return sum(one.clock.used for one in computations)


def race(
    runs: Iterable[Callable[[Budget], T]],
    budget: Budget,
    decides: Callable[[T], bool],
    *,
    begin: float = BEGIN,
) -> list[T]:
    """The results of computations that take turns under one budget, until one of them is decisive.

    They begin in the given order, another one when each has worked this much (see `next_of`); a computation
    that has not ended by then has no result.
    """
    waiting, at_work, answers = list(runs), list[Computation](), list[T]()
    try:
        while (waiting or at_work) and not budget.over:
            one = next_of(at_work, [False] * len(waiting), begin=begin)
            if one is None:
                clock = Clock()
                one = Computation(partial(_without_turns, waiting.pop(0), budget.in_turns(clock)), clock)
                at_work.append(one)
            answer = one.turn(min(one.slice, 1e6 * budget.slice))
            if answer is not None:
                at_work.remove(one)
                answers += answer
                if any(map(decides, answer)):
                    return answers
        for one in at_work:
            answers += one.close() or ()
        at_work.clear()
        return answers
    finally:
        for one in at_work:
            one.close(at_once=True)


def _without_turns(run: Callable[[Budget], T], budget: Budget) -> tuple[T, ...]:
    """The result of the computation; none if the time was over in the middle of a step."""
    try:
        return (run(budget),)
    except OutOfTime:
        return ()
