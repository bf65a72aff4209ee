"""The iterations of a method: each is a row of the trace, until the stopping rule ends the method.

    proved      the best point is as near to the bound as the caller asked for
    target      it is as good as the caller asked for, whatever is proved
    time        the deadline of the budget; or what stopped it before: Ctrl-C, a callback
    iterations the requested number stalled the given number of consecutive iterations without a gain

Algorithm 1 also ends when its two halves agree (`methods/dual_decomposition.py`); the status of a solve is
decided in `solving/status.py`.
"""

from __future__ import annotations

import math

from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.trace import Residual, Row

WORTH = 1e-6
"""Relative to 1 + |objective|: smaller gains count as none. The check tolerates violations of this size (the
least sum of three squares: 23 descents instead of 61, whose gains were from 2e-9 to 2e-10)."""


def worthwhile(before: float, now: float) -> bool:
    """Whether an objective is better than an earlier one by more than this; NaN stands for no point.

    >>> from dovetail.run.progress import worthwhile
    >>> worthwhile(float("nan"), 3.0), worthwhile(3.0, 2.9), worthwhile(3.0, 3.0 - 1e-7)
    (True, True, False)
    """
    if math.isnan(before) or math.isnan(now):
        return math.isnan(before) and not math.isnan(now)
    return abs(now - before) > WORTH * (1.0 + abs(before))


class StoppingRule:
    """Counts iterations, and consecutive iterations without a gain."""

    def __init__(self, most: int | None = None, patience: int | None = None) -> None:
        self._most, self._patience = most, patience
        self._idle, self.done = 0, 0

    def after(self, *, gained: bool, over: StopReason | None) -> StopReason | None:
        """An iteration has ended: why it was the last one, or None."""
        self.done += 1
        self._idle = 0 if gained else self._idle + 1
        if over:
            return over
        if self._most is not None and self.done >= self._most:
            return StopReason.ITERATIONS
        stalled = self._patience is not None and self._idle >= self._patience
        return StopReason.STALLED if stalled else None


class Progress:
    """Times iterations, records them in the trace, and applies the stopping rule after each."""

    def __init__(self, context: SolveContext, most: int | None = None, patience: int | None = None) -> None:
        self._context, self._rule = context, StoppingRule(most, patience)
        self._gained = context.incumbent.objective
        """The objective after the last gain that counted."""
        self.begin()

    @property
    def done(self) -> int:
        """Number of recorded iterations."""
        return self._rule.done

    def begin(self) -> None:
        """Begins an iteration: earlier time and gains are not attributed to it."""
        stopwatch = self._context.stopwatch
        self._before = {name: stopwatch.read(name) for name in ("engine", "nn", "check")}
        self._incumbent = self._context.incumbent.x
        self._bound = self._context.incumbent.bound

    def row(
        self,
        iteration: int,
        objective: float,
        *,
        lagrangian: float,
        merit: float,
        residuals: tuple[Residual, ...],
        rho: float = 0.0,
        exact: bool = True,
    ) -> Row:
        """The iteration as a row: the method's residuals and value, the gain, and the time it took."""
        context, incumbent = self._context, self._context.incumbent
        spent = {name: context.stopwatch.read(name) - t for name, t in self._before.items()}
        return Row(
            iteration=iteration,
            objective=objective,
            incumbent=incumbent.objective,
            source=incumbent.source if incumbent.x is not self._incumbent else "",
            rho=rho,
            lagrangian=lagrangian,
            merit=merit,
            mip_seconds=spent["engine"],
            nn_seconds=spent["nn"],
            check_seconds=spent["check"],
            elapsed=context.monitor.elapsed,
            exact=exact,
            residuals=residuals,
            bound=context.problem.stated.sign * incumbent.bound if math.isfinite(incumbent.bound) else None,
            proof=incumbent.proof.source if incumbent.bound > self._bound else "",
            part=context.monitor.part_name,
            evaluations=context.monitor.evaluations,
        )

    def record(
        self,
        value: float,
        objective: float = float("nan"),
        *,
        residuals: tuple[Residual, ...] = (),
        exact: bool = True,
        learnt: bool = False,
    ) -> MethodOutcome | None:
        """Ends an iteration of a method without multipliers; `value` is the method's own estimate of its
        point.

        `learnt` marks an iteration that found something useful without a gain: it does not count as idle.
        Returns the outcome if the iteration was the last one; otherwise the next one begins.
        """
        monitor = self._context.monitor
        row = self.row(
            len(monitor.trace) + 1,
            objective,
            lagrangian=value,
            merit=value,
            residuals=residuals,
            exact=exact,
        )
        monitor.iteration(row, self._context.incumbent.as_given)
        self.begin()
        gained = worthwhile(self._gained, row.incumbent)
        self._gained = row.incumbent if gained else self._gained
        stop = self._rule.after(gained=learnt or gained, over=self._context.over)
        return None if stop is None else MethodOutcome(stop, self.done)

    def exhausted(self) -> MethodOutcome:
        """The outcome if there is no further starting point."""
        return MethodOutcome(self._context.over or StopReason.STALLED, self.done)
