"""How a method gets on: each iteration is a row of the trace, until the stopping rule ends it."""

from __future__ import annotations

import math

from dovetail.run.budget import StopReason
from dovetail.run.context import MethodOutcome, SolveContext
from dovetail.run.stopping import StoppingRule, worthwhile
from dovetail.run.trace import Residual, Row


class Progress:
    """Times iterations, puts them on record, and asks the stopping rule after each."""

    def __init__(self, context: SolveContext, most: int | None = None, patience: int | None = None) -> None:
        self._context, self._rule = context, StoppingRule(most, patience)
        self._gained = context.incumbent.objective
        """The objective after the last gain that counted."""
        self.begin()

    @property
    def done(self) -> int:
        """Iterations on record."""
        return self._rule.done

    def begin(self) -> None:
        """An iteration begins here: what was spent and found before belongs to others."""
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
        """An iteration of a method without multipliers, which thinks its point is worth `value`, ends here.

        `learnt` is for one that found something, though nothing better: it does not count as idle.
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
        self.begin()
        gained = worthwhile(self._gained, row.incumbent)
        self._gained = row.incumbent if gained else self._gained
        stop = self._rule.after(gained=learnt or gained, over=self._context.over)
        return None if stop is None else MethodOutcome(stop, self.done)

    def exhausted(self) -> MethodOutcome:
        """The outcome where there is nothing left to begin from."""
        return MethodOutcome(self._context.over or StopReason.STALLED, self.done)
