"""Predictors that are not asked any more when the time is over.

Methods look at the clock between their steps. Within a step there may be a thousand networks, or one that
takes a second per call: so each call, and each copy, looks at the clock as well. What it raises ends the
method, wherever it is; the best point is in the incumbent. Copies are made once for a solve: incumbent,
search and the last check share them. All questions pass here, so that here they are counted.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from dovetail.core.description import Description
from dovetail.core.predictor import EvaluationsSpentError, OnDevice, Predictor
from dovetail.core.problem import Problem
from dovetail.run.budget import Budget, OutOfTime, StopReason

BEGIN, END = 0.5, 1.0
"""Seconds after the end within which a call may still begin, and should be done: the last points that an
engine found still come through the incumbent's check, and a limit is met within two seconds."""
BEHIND = "_dovetail_predictor_behind_the_guard"
"""The attribute of a guarded predictor that holds its owner's."""
COUNT = "_dovetail_count"
"""The attribute of a guarded predictor that counts rows which are evaluated without asking it."""


def unguarded(predictor: Predictor) -> Predictor:
    """The owner's own: for other processes, whose clock is another."""
    behind: Predictor = getattr(predictor, BEHIND, predictor)
    return behind


def counter(predictor: Predictor) -> Callable[[int], None]:
    """Where those count their rows who have a network's layers by heart; nowhere in other processes."""
    count: Callable[[int], None] = getattr(predictor, COUNT, _uncounted)
    return count


def _uncounted(rows: int) -> None:
    pass


class Guard:
    """Stands before the predictors of a problem; it does not hold the problem, which holds it.

    So a solve's networks and rows are free when the last name of them goes, not when Python next looks for
    cycles, which it may do after hundreds of solves.
    """

    def __init__(self, budget: Budget, copying: float = 0.0) -> None:
        self._budget, self._copying = budget, copying
        """Seconds that the copy of a predictor is expected to take, before one was made."""
        self.armed = True
        """Without it everything passes: the last check is done whatever the time."""
        self.evaluations = 0
        """Samples that predictors and their copies were asked about in this process."""

    def guarded(self, problem: Problem) -> Problem:
        """The same problem, its predictors guarded."""
        copies = {id(block.predictor): self._guarded(block.predictor) for block in problem.blocks}
        blocks = tuple(
            replace(
                block,
                predictor=copies[id(block.predictor)],
                description=self._guarded_layers(block.description),
            )
            for block in problem.blocks
        )
        return problem.with_predictors(blocks)

    def _guarded(self, predictor: Predictor) -> Predictor:
        """A shallow copy whose methods look at the clock; the predictor itself where it cannot be had."""
        try:
            # three: one that holds its own methods would hold itself; what a copy asks is guarded as well
            plain: Any = copy.copy(predictor)
            copied: Any = copy.copy(predictor)
            twin: Any = copy.copy(predictor)
            copied.predict = twin.predict = self._counted(self._watched(plain.predict))
            if isinstance(plain, OnDevice):
                copied.predict_tensor = twin.predict_tensor = self._counted(
                    self._watched(plain.predict_tensor)
                )
            snapshot = self._watched(copied.snapshot, self._copying)
            twin.snapshot = cache(lambda device: self._counted(self._watched(snapshot(device))))
            setattr(twin, BEHIND, predictor)
            setattr(twin, COUNT, self._count)
        except (AttributeError, TypeError):
            return predictor
        guarded: Predictor = twin
        return guarded

    def _guarded_layers(self, description: Description) -> Description:
        """The description, whose layers take time to be proved."""
        layers = description.layers
        return description if layers is None else replace(description, layers=self._watched(layers))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, which answers one row for each that it is given.

        A copy that asks the predictor itself, as those of plain functions do, is not counted besides.
        """

        def counted(rows: Any) -> Any:
            before = self.evaluations
            answer = call(rows)
            if self.evaluations == before:
                self._count(len(rows))
            return answer

        return counted

    def _count(self, rows: int) -> None:
        self.evaluations += rows

    def _watched(self, call: Callable[..., Any], seconds: float = 0.0) -> Callable[..., Any]:
        """The call, refused when it could not end in time; it takes as long as it took the last time."""

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
