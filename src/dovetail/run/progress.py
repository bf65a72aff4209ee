"""How a method gets on: each iteration is a row of the trace, and one of four things ends it."""

from __future__ import annotations

from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.trace import Residual, Row


class Progress:
    """Counts iterations and those in a row that brought nothing; times each and puts it on record."""

    def __init__(self, context: SolveContext, most: int | None = None, patience: int | None = None) -> None:
        self._context, self._most, self._patience = context, most, patience
        self._idle, self.done = 0, 0
        self.begin()

    def begin(self) -> None:
        """An iteration begins here: what was spent and found before belongs to others."""
        stopwatch = self._context.stopwatch
        self._before = {name: stopwatch.read(name) for name in ("engine", "nn", "check")}
        self._incumbent = self._context.incumbent.x

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
        """The iteration as a row: what the method says of it, what it found, and how long it took."""
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
        )

    def record(
        self,
        value: float,
        objective: float = float("nan"),
        *,
        residuals: tuple[Residual, ...] = (),
        exact: bool = True,
    ) -> MethodOutcome | None:
        """An iteration of a method without multipliers, which thinks its point is worth `value`, ends here.

        Returns the outcome, if it was the last; the next one begins.
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
        monitor.iteration(row, self._context.incumbent.x)
        self.done += 1
        self._idle = 0 if row.source else self._idle + 1
        self.begin()
        stop = self._stop()
        return None if stop is None else MethodOutcome(stop, self.done)

    def exhausted(self) -> MethodOutcome:
        """The outcome where there is nothing left to begin from."""
        return MethodOutcome(self._context.over or StopReason.STALLED, self.done)

    def _stop(self) -> StopReason | None:
        if self._context.over:
            return self._context.over
        if self._most is not None and self.done >= self._most:
            return StopReason.ITERATIONS
        stalled = self._patience is not None and self._idle >= self._patience
        return StopReason.STALLED if stalled else None
