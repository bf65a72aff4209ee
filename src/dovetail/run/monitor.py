"""Telling people what happens while it happens: the log, and the callback that may stop it."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TextIO

from dovetail.core.arrays import FloatArray
from dovetail.run.budget import Budget, StopReason
from dovetail.run.incumbent import Incumbent
from dovetail.run.trace import Row, Trace

_log = logging.getLogger("dovetail")

FULL_LINES = 20
"""So many iterations are all printed; later ones at most once a second, or when the incumbent improves."""


@dataclass(frozen=True)
class Event:
    """What a callback sees after each iteration. It is a report: changing it changes nothing.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=0.0, upper=[3.0, 9.0]))
    >>> block = problem.add_predictor(lambda X: (X - 1.0) ** 2, inputs=[0], outputs=[1])
    >>> result = dt.solve(problem, "dual-decomposition", callback=lambda event: event.stop(), log=False)
    >>> result.iterations, result.stop_reason.value
    (1, 'callback')
    """

    row: Row
    x: FloatArray | None
    """A copy of the best verified point so far."""
    objective: float
    """Its objective; NaN while there is none."""
    bound: float | None
    _budget: Budget

    def stop(self) -> None:
        """End the solve after this iteration; the best point so far is returned."""
        self._budget.stop(StopReason.CALLBACK)


Callback = Callable[[Event], object]


class Monitor:
    """Keeps the trace, prints the log and calls the callback."""

    def __init__(self, budget: Budget, log: TextIO | None = None, callback: Callback | None = None) -> None:
        self.trace = Trace()
        self._incumbent: Incumbent | None = None
        self._budget, self._log, self._callback = budget, log, callback
        self._printed: Row | None = None
        self._printed_at = -math.inf
        self._proof = ""
        """What improved the bound since the last line."""
        self.failure: Exception | None = None
        """What the callback raised, if it did: the search ends, and `solve` raises it again."""
        self.log_failure = ""
        """Why the log ended before the solve did, if it did."""

    def follow(self, incumbent: Incumbent) -> None:
        """From now on log and events show the bound that this incumbent knows, the trace all it finds."""
        self._incumbent = incumbent
        self.trace.incumbents, self.trace.bounds = incumbent.incumbents, incumbent.bounds

    @property
    def bound(self) -> float | None:
        """What is proved so far, in the user's sense."""
        return None if self._incumbent is None else self._incumbent.proven_bound

    @property
    def elapsed(self) -> float:
        """Seconds since the solve began."""
        return self._budget.seconds

    def say(self, text: str = "") -> None:
        """One line of the log. A log that cannot be written ends; the solve goes on, and says so once."""
        if self._log is None:
            return
        try:
            print(_plain(text), file=self._log, flush=True)
        except Exception as reason:  # a closed pipe or file, a full disk, whatever the user's own file raises
            self._log = None
            self.log_failure = f"the log could not be written ({type(reason).__name__}: {reason})"
            _log.warning("%s; the solve goes on without it", self.log_failure)

    def tell(self, lines: Iterable[str]) -> None:
        """Several lines of the log."""
        for line in lines:
            self.say(line)

    def _print(self, row: Row) -> None:
        self._printed, self._printed_at = row, row.elapsed
        self.say(_line(row, self.bound, self._proof))
        self._proof = ""

    def close(self) -> None:
        """Print the last iteration, if it was not due before, and what the star means if there was one."""
        if len(self.trace) and self.trace[-1] is not self._printed:
            self._print(self.trace[-1])
        inexact = sum(not row.exact for row in self.trace)
        if inexact:
            self.say(f"  * {inexact} MIP steps ended at a limit; their points were used all the same")

    def iteration(self, row: Row, x: FloatArray | None) -> None:
        """Record an iteration; print it if it is time; tell the callback."""
        self.trace.rows.append(row)
        self._proof = row.proof or self._proof
        if len(self.trace) == 1:
            self.say(HEADER)
        if row.iteration <= FULL_LINES or row.source or row.elapsed - self._printed_at >= 1.0:
            self._print(row)
        if self._callback is not None:
            copy = None if x is None else x.copy()
            try:
                self._callback(Event(row, copy, row.incumbent, self.bound, self._budget))
            except Exception as failure:
                self.failure = failure
                self._budget.stop(StopReason.CALLBACK)


HEADER = (
    "   it  src      incumbent          bound  by     gap  residual       rho   mip s    nn s  check s  time"
)


def _line(row: Row, bound: float | None, proof: str) -> str:
    gap = "-"
    if bound is not None and math.isfinite(row.incumbent):
        apart = abs(row.incumbent - bound) / max(abs(row.incumbent), 1e-12)
        gap = f"{100 * apart:.1f}%" if apart < 10 else "large"
    residual, rho = (f"{row.primal:.1e}", f"{row.rho:.1e}") if row.residuals else ("-", "-")
    return (
        f"{row.iteration:5d}  {row.source[:3]:3s}  {_number(row.incumbent):>13s}  {_number(bound):>13s}  "
        f"{proof[:3]:3s} {gap:>6s}  {residual:>8s}  {rho:>8s}{'' if row.exact else '*':1s} "
        f"{row.mip_seconds:7.3f} {row.nn_seconds:7.3f} {row.check_seconds:7.3f} {row.elapsed:6.1f}"
    )


def _number(value: float | None) -> str:
    return "-" if value is None or not math.isfinite(value) else f"{value:.6g}"


def _plain(text: str) -> str:
    """Names come from users: no control characters reach the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
