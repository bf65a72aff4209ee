"""Predictors that are no longer called after the deadline.

Methods check the clock between their steps. One step may evaluate a thousand networks, or a network that
takes a second per call. So each call, and each copy of a predictor, checks the clock as well. The exception
ends the method at any place; the best solution is in the incumbent.

Predictors are copied, and their properties read, once per solve; incumbent, search and the last check share
the copies. All evaluations pass through this module, which counts them and marks exceptions of the user's
code as the user's (`run/failures.py`).
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from dovetail.core.block import Block
from dovetail.core.description import Description
from dovetail.core.errors import DovetailError
from dovetail.core.predictor import EvaluationsSpentError, OnDevice, Predictor
from dovetail.core.problem import Problem
from dovetail.run import work
from dovetail.run.budget import Budget, OutOfTime, StopReason
from dovetail.run.failures import users_code

BEGIN, END = 0.5, 1.0
"""Seconds after the end within which a call may still begin, and should end: the last points of an engine
still pass the check, and a limit is kept within two seconds."""
COUNT_ATTRIBUTE = "_dovetail_predictor_behind_the_guard"
"""The attribute of a guarded predictor that holds the owner's predictor."""
COMPUTED = ("layers", "program", "quadratic", "trees")
"""Fields of descriptions that are computed on request: once per solve."""
COUNT = "_dovetail_count"
"""The attribute of a guarded predictor that counts rows evaluated without calling it."""


def unguarded(predictor: Predictor) -> Predictor:
    """The owner's predictor, for other processes, which have another clock."""
    behind: Predictor = getattr(predictor, COUNT_ATTRIBUTE, predictor)
    return behind


def counter(predictor: Predictor) -> Callable[[int], None]:
    """The counter of rows for code that evaluates a network's layers itself; none in other processes."""
    count: Callable[[int], None] = getattr(predictor, COUNT, _ignore_count)
    return count


def _ignore_count(rows: int) -> None:
    pass


def arrived(block: Block) -> Block:
    """A block in another process, without a clock; its exceptions are marked in that process."""
    if hasattr(block.predictor, COUNT_ATTRIBUTE):  # the call is still running
        return block
    return replace(block, predictor=Guard(Budget()).of(block.predictor))


@dataclass(frozen=True)
class _Refused:
    """Represents the answer of a predictor that refuses an evaluation."""

    reason: DovetailError


def _cached(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call with its result, or its refusal, cached."""

    @cache
    def kept(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except DovetailError as refusal:
            return _Refused(copy.copy(refusal))  # the text holds no frames

    def once(*arguments: Any) -> Any:
        answer = kept(*arguments)
        if isinstance(answer, _Refused):
            raise copy.copy(answer.reason)
        return answer

    return once


class _GuardProxy:
    """A stand-in for a predictor that takes no new attributes (`__slots__`, for example)."""

    def __init__(self, predictor: Predictor) -> None:
        self._behind = predictor

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__.get("_behind"), name)  # unset in a new copy


BATCH_EFFORT, ROW_EFFORT = 1e-4, 1.1e-6
"""Effort in seconds of a predictor call, and of each row (see `Work.effort`)."""


class Guard:
    """Watches the predictors of a problem. The guarded problem holds no reference to the original, so that a
    solve's networks and rows are freed at once when the last reference disappears."""

    def __init__(self, budget: Budget, copying: float = 0.0) -> None:
        self._budget, self._copying = budget, copying
        """Seconds that copying a predictor is expected to take, before the first copy."""
        self.armed = True
        """Without a clock every call is allowed: the last check is always made."""
        self.evaluations = 0
        """Samples evaluated by predictors and their copies in this process."""

    def guarded(self, problem: Problem) -> Problem:
        """The same problem with guarded predictors."""
        copies = {id(block.predictor): self.of(block.predictor) for block in problem.blocks}
        said = {id(block.predictor): self._cached_parts(block.description) for block in problem.blocks}
        blocks = tuple(
            replace(
                block,
                predictor=copies[id(block.predictor)],
                description=replace(block.description, **said[id(block.predictor)]),
            )
            for block in problem.blocks
        )
        return problem.with_predictors(blocks)

    def of(self, predictor: Predictor) -> Predictor:
        """A shallow copy whose methods watch the clock; a stand-in if no copy can be made."""
        try:
            # three objects: one that held its own methods would hold itself; evaluations by copies are
            # guarded as well
            plain, copied, twin = (copy.copy(predictor) for _ in range(3))
            return self._with_guards(plain, copied, twin, predictor)
        except (AttributeError, TypeError):
            return self._with_guards(predictor, _GuardProxy(predictor), _GuardProxy(predictor), predictor)

    def _with_guards(self, plain: Any, copied: Any, twin: Any, predictor: Predictor) -> Predictor:
        copied.predict = twin.predict = self._counting(self._guarded(plain.predict))
        if isinstance(plain, OnDevice):
            copied.predict_tensor = twin.predict_tensor = self._counting(self._guarded(plain.predict_tensor))
        snapshot = self._guarded(copied.snapshot, self._copying)
        twin.snapshot = cache(lambda device: self._counting(self._guarded(snapshot(device))))
        setattr(twin, COUNT_ATTRIBUTE, predictor)
        setattr(twin, COUNT, self._count)
        guarded: Predictor = twin
        return guarded

    def _cached_parts(self, description: Description) -> dict[str, Any]:
        """The description with its computed fields cached."""
        calls = {name: getattr(description, name) for name in COMPUTED}
        return {name: _cached(self._watched(call)) for name, call in calls.items() if call is not None}

    def _counting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, counted by its rows. A copy that calls the predictor itself, as those of plain functions
        do, is not counted again."""

        def counted(rows: Any) -> Any:
            before = self.evaluations
            answer = call(rows)
            if self.evaluations == before:
                self._count(len(rows))
            return answer

        return counted

    def _count(self, rows: int) -> None:
        self.evaluations += rows
        work.count(effort=BATCH_EFFORT + ROW_EFFORT * rows)

    def _guarded(self, call: Callable[..., Any], seconds: float = 0.0) -> Callable[..., Any]:
        """A call of the user's code with the clock watched; its exceptions are marked as the user's."""

        def asked(*arguments: Any) -> Any:
            with users_code():
                return call(*arguments)

        return self._watched(asked, seconds)

    def _watched(self, call: Callable[..., Any], seconds: float = 0.0) -> Callable[..., Any]:
        """The call, which is refused if it could not end in time according to its last duration."""

        def watched(*arguments: Any) -> Any:
            nonlocal seconds
            late = self._budget.late
            if self.armed and late > min(BEGIN, END - seconds):
                raise OutOfTime
            begin = time.perf_counter()
            try:
                answer = call(*arguments)
            except EvaluationsSpentError:
                if not self.armed:
                    raise
                self._budget.stop(StopReason.EVALUATIONS)
                raise OutOfTime from None
            seconds = time.perf_counter() - begin
            return answer

        return watched
