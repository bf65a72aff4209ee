"""The progress of a solve: the lines of its log, and the callback that may stop the solve."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock, RLock
from typing import TextIO

from dovetail.core.arrays import FloatArray
from dovetail.core.words import several
from dovetail.report.gains import relative_gap
from dovetail.report.log.journal import Journal, opened
from dovetail.report.log.outlet import Rendering
from dovetail.report.log.table import PARTS, RESIDUALS, LogColumn, State, fact, number
from dovetail.run.budget import Budget, StopReason
from dovetail.run.environment import termination
from dovetail.run.incumbent import Incumbent
from dovetail.run.trace import Row, Trace

ALL_ROUNDS, PACE = 20, 1.0
"""The first number is how many rounds with residuals are all printed; between later rounds at least the
given number of seconds passes."""
PACES = ((5, 0.0), (20, 0.25))
"""The first number is how many changes are printed with at least the given number of seconds between them;
later changes are printed like rounds."""
SECTION, UNDER = "-- ", "   "
"""Prefixes of the lines that begin a part, and of continued lines."""
FIRST_SILENCE, MOST_SILENCE = 5.0, 300.0
"""Seconds without a change until a line shows that work continues; the interval doubles up to the second
number."""


SECONDS = 0.25
"""Seconds between two ticks of the live line."""
NO_ROW = Row(0, math.nan, math.nan, "", 0.0, math.nan, math.nan, 0.0, 0.0, 0.0, 0.0, exact=True)
"""Before the first iteration."""
PROGRESS_TICKS = 4
"""Number of ticks between two calls of `progress`: one second."""


@dataclass(frozen=True)
class Event:
    """What a callback receives after each iteration. Changing an event has no effect; `stop()` ends the
    solve.

    >>> import dovetail as dt
    >>> problem = dt.Problem(dt.Mip(cost=[0.0, 1.0], lower=0.0, upper=[3.0, 9.0]))
    >>> block = problem.add_predictor(lambda X: (X - 1.0) ** 2, inputs=[0], outputs=[1])
    >>> result = dt.solve(problem, "dual-decomposition", callback=lambda event: event.stop(), log=False)
    >>> result.iterations, result.stop_reason.value
    (1, 'callback')
    """

    row: Row
    """The last iteration; number 0 stands for none."""
    x: FloatArray | None
    """A copy of the best verified solution so far."""
    objective: float
    """The objective of that solution; NaN without one."""
    bound: float | None
    _budget: Budget
    seconds: float = 0.0
    """Seconds since the solve began."""
    part: str = ""
    """The part at work."""
    trace: Trace = field(default_factory=Trace, repr=False)
    """The course so far."""

    @property
    def time_limit(self) -> float:
        """In seconds; infinite without a limit."""
        return self._budget.limit

    @property
    def gap(self) -> float | None:
        """As `Result.gap`; None without a solution or a bound."""
        known = not math.isnan(self.objective) and self.bound is not None
        return relative_gap(self.objective, self.bound) if known and self.bound is not None else None

    def stop(self) -> None:
        """End the solve after this iteration and return the best solution so far."""
        self._budget.stop(StopReason.CALLBACK)


Callback = Callable[[Event], object]


class Monitor:
    """Keeps the trace, writes the log and calls the callback. As a context manager it shows that work
    continues."""

    def __init__(
        self,
        budget: Budget,
        log: TextIO | logging.Logger | None = None,
        callback: Callback | None = None,
        *,
        log_file: TextIO | None = None,
        inner: bool = False,
        progress: Callback | None = None,
    ) -> None:
        """`inner`: nothing is logged."""
        self.trace = Trace()
        self._budget, self._callback, self._progress = budget, callback, progress
        self._ticks, self._reporting = 0, Lock()
        self._journal = Journal([]) if inner else opened(log, log_file)
        self._ticker: Ticker | None = None
        self._incumbent: Incumbent | None = None
        self._evaluations: Callable[[], int] = lambda: 0
        self._parts: list[SolvePart] = []
        self._lock = RLock()
        self._seen = State(0.0, "", math.nan, None, False, 0)
        """The state in the last line."""
        self._prepared: State | None = None
        """The last change while no part was at work."""
        self._rows, self._row_at, self._silence = 0, 0.0, FIRST_SILENCE
        self._began = self._told_interrupt = False
        self.failure: Exception | None = None
        """The exception of the callback, if any: the search ends, and `solve` raises it again."""

    def __enter__(self) -> Monitor:
        if not self._journal.silent or self._progress is not None:
            self._ticker = Ticker(self._tick)
            self._ticker.start()
        return self

    def __exit__(self, *trouble: object) -> None:
        """Detach the monitor from the incumbent, which would otherwise hold it."""
        if self._incumbent is not None:
            self._incumbent.on_change = lambda: None
        try:
            if self._ticker is not None:
                self._ticker.stop()
                self._ticker = None
        finally:  # the terminal's cursor is restored even if an exception leaves this block
            self._journal.close()

    @property
    def silent(self) -> bool:
        """Whether there is no log."""
        return self._journal.silent

    @property
    def log_failure(self) -> str:
        """Why the log ended before the solve, if it did."""
        return self._journal.failure

    def follow(self, incumbent: Incumbent, evaluations: Callable[[], int] = lambda: 0) -> None:
        """Report this incumbent and this count of evaluations from now on."""
        self._incumbent, self._evaluations = incumbent, evaluations
        incumbent.on_change = self._changed
        self.trace.incumbents, self.trace.bounds = incumbent.incumbents, incumbent.bounds
        self._changed()  # a solution or bound may be known already

    @property
    def bound(self) -> float | None:
        """The best proven bound, in the user's sense."""
        return None if self._incumbent is None else self._incumbent.proven_bound

    @property
    def elapsed(self) -> float:
        """Seconds since the solve began."""
        return self._budget.seconds

    @property
    def evaluations(self) -> int:
        """Samples evaluated by predictors so far."""
        return self._evaluations()

    @property
    def part_name(self) -> str:
        """The part at work; "" before and after."""
        return self._parts[-1].name if self._parts else ""

    # ---- lines

    def say(self, text: str = "", style: str = "") -> None:
        """Write a text, wrapped and indented below the line of its part."""
        body = text.lstrip(" ")
        indent = UNDER if self._parts else " " * (len(text) - len(body))
        self._journal.say(body, indent, indent + "  ", style)

    def fact(self, label: str, text: str, style: str = "") -> None:
        """Write a labelled line, as in the header and the summary."""
        self._journal.write(lambda width: fact(label, text, width), style)

    def write(self, rendering: Rendering) -> None:
        """Write lines that depend on the width of the log."""
        self._journal.write(rendering)

    @contextmanager
    def part(self, name: str, why: str = "", *, residuals: bool = False) -> Iterator[SolvePart]:
        """While `name` is at work: a line at its beginning, table lines, and a line with its result."""
        part = SolvePart(name, residuals)
        try:
            with self.turn(part, why):
                yield part
        finally:
            self.ended(part)

    @contextmanager
    def turn(self, part: SolvePart, why: str = "") -> Iterator[None]:
        """One turn of a part: a line at its first turn, and table lines."""
        self._began = True
        self._journal.explain(RESIDUALS if part.residuals else PARTS)
        self._show_prepared(part.residuals)
        if not part.begun:
            self._journal.say(f"{part.name}: {why}" if why else part.name, SECTION, UNDER, "section")
        before, rounds = self._state(), len(self.trace)
        with self._lock:  # the ticker looks at the parts, too
            self._parts.append(part)
            self._changed()
        try:
            yield
        finally:
            with self._lock:
                self._catch_up()
                self._parts.pop()
            after = self._state()
            self.trace.add_turn(part.name, before.elapsed, after.elapsed)
            part.add(before, after, len(self.trace) - rounds)

    def ended(self, part: SolvePart) -> None:
        """Write the line with the result of all turns of a part."""
        came = self.trace.incumbents
        first = came[0].value if came else math.nan
        self._journal.say(part.summary(self._state(), first), SECTION, UNDER, "section")

    # ---- rows

    def iteration(self, row: Row, x: FloatArray | None) -> None:
        """Record an iteration; print it if it is time; tell the callback."""
        self.trace.rows.append(row)
        with self._lock:
            if not self._shows_residuals(row):
                self._changed()
            elif row.iteration <= ALL_ROUNDS or row.source or row.elapsed - self._row_at >= PACE:
                self._print(self._state_at(row))
        if self._callback is not None:
            copy = None if x is None else x.copy()
            try:
                self._callback(self._event(row, copy, row.incumbent))
            except Exception as failure:
                self.failure = failure
                self._budget.stop(StopReason.CALLBACK)

    def _event(self, row: Row, x: FloatArray | None, objective: float) -> Event:
        return Event(
            row, x, objective, self.bound, self._budget, self.elapsed, self.part_name, self.trace
        )  # fmt: skip

    def _report(self) -> None:
        """Call `progress`; if it fails, it is not called again."""
        with self._reporting:  # the last call comes from another thread
            incumbent, progress = self._incumbent, self._progress
            if progress is not None and incumbent is not None:
                self._tell(progress, incumbent)

    def _tell(self, progress: Callback, incumbent: Incumbent) -> None:
        x = incumbent.x
        if x is not None:
            x = x.view()
            x.flags.writeable = False
        try:
            row = self.trace[-1] if len(self.trace) else NO_ROW
            progress(self._event(row, x, incumbent.objective))
        except Exception as failure:  # a display that fails must not end the solve
            self._progress = None
            self.say(f"progress: {type(failure).__name__}: {failure}; it is not called again", "warning")

    def close(self) -> None:
        """Print what is pending, and explain the star if there was one."""
        self._report()
        self._catch_up()
        inexact = sum(not row.exact for row in self.trace)
        if inexact and any(row.residuals for row in self.trace):
            self.say(f"* {several(inexact, 'MIP step')} ended at a limit; the points found were used")

    def _state(self) -> State:
        incumbent = self._incumbent
        if incumbent is None:
            return State(self.elapsed, self.part_name, math.nan, None, False, self.evaluations)
        return State(
            self.elapsed,
            self.part_name,
            incumbent.objective,
            incumbent.proven_bound,
            incumbent.rows_only,
            self.evaluations,
        )

    def _state_at(self, row: Row) -> State:
        """The state after an iteration that reports a residual."""
        return replace(
            self._state(),
            elapsed=row.elapsed,
            incumbent=row.incumbent,
            iteration=row.iteration,
            residual=row.primal,
            rho=row.rho,
            exact=row.exact,
        )

    def _changed(self) -> None:
        """Print a row if the incumbent or the bound has changed and a row is due."""
        with self._lock:
            if self._journal.silent:
                return
            if not self._parts:
                self._prepared = replace(self._state(), part="preparation")
                return
            if self._parts[-1].residuals:
                return
            state, seen = self._state(), self._seen
            # a proof raises its bound a little in every round
            creeps = _prints_the_same(state.incumbent, seen.incumbent) and None not in (
                state.bound,
                seen.bound,
            )
            creeps = creeps and state.rows_only == seen.rows_only
            pace = next((seconds for rows, seconds in PACES if self._rows < rows and not creeps), PACE)
            if self._rows == 0 or state.elapsed - self._row_at >= pace:
                self._show_change(state)

    def _show_prepared(self, residuals: bool) -> None:
        """Print what was found before the part that begins."""
        with self._lock:
            if self._prepared is not None and not residuals:
                self._show_change(self._prepared)
            self._prepared = None

    def _show_change(self, state: State) -> None:
        """Print a line if it differs from the last one."""
        seen = self._seen
        bound_is_known = _prints_the_same(state.bound, seen.bound) and state.rows_only == seen.rows_only
        if not (_prints_the_same(state.incumbent, seen.incumbent) and bound_is_known):
            self._print(state)

    def _catch_up(self) -> None:
        """Print what is pending: the last iteration with a residual, or the last change."""
        with self._lock:
            last = self.trace[-1] if len(self.trace) else None
            if last is None or not self._shows_residuals(last):
                if self._began:  # otherwise the last lines show the final state
                    self._show_change(self._state())
            elif last.elapsed > self._row_at:
                self._print(self._state_at(last))

    def _print(self, state: State) -> None:
        self._journal.row(self._columns(state), state)
        self._rows, self._silence = self._rows + 1, FIRST_SILENCE
        self._row_at, self._seen = state.elapsed, state

    def _shows_residuals(self, row: Row) -> bool:
        """Whether the iteration belongs to a part with residuals."""
        return bool(row.residuals) and (not self._parts or self._parts[-1].residuals)

    def _columns(self, state: State) -> tuple[LogColumn, ...]:
        residuals = self._parts[-1].residuals if self._parts else state.residual is not None
        return RESIDUALS if residuals else PARTS

    def _tick(self) -> None:
        """Update the live line, and print a line after a long silence."""
        if self._budget.stopped is StopReason.INTERRUPT and not self._told_interrupt:
            self._told_interrupt = True
            signal = "SIGTERM" if termination.is_set() else "Ctrl-C"
            self.say(
                f"interrupted by {signal}: the best solution is checked and returned; a second {signal} ends "
                "at once",
                "warning",
            )
        self._ticks += 1
        if self._ticks % PROGRESS_TICKS == 0:
            self._report()
        with self._lock:
            if not self._parts:
                return
            state = self._state()
            self._journal.show(state)
            if state.elapsed - self._row_at >= self._silence:
                if self._parts[-1].residuals and len(self.trace):
                    state = replace(self._state_at(self.trace[-1]), elapsed=state.elapsed)
                self._journal.row(self._columns(state), state, unwatched=True)
                self._row_at, self._silence = state.elapsed, min(2.0 * self._silence, MOST_SILENCE)


def _prints_the_same(one: float | None, other: float | None) -> bool:
    """Whether two numbers are printed the same."""
    return number(one) == number(other)


class Ticker:
    """Calls a function periodically from a thread of its own, between `start` and `stop`. With `first` the
    first pause is shorter, and pauses double."""

    def __init__(self, call: Callable[[], None], seconds: float = SECONDS, first: float = math.inf) -> None:
        self._call, self._seconds, self._first = call, seconds, min(first, seconds)
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin. The thread does not keep the process alive."""
        self._thread = threading.Thread(target=self._run, name="dovetail-log", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; afterwards no call is running."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        pause = self._first
        while not self._end.wait(pause):
            self._call()
            pause = min(self._seconds, 2.0 * pause)


ENDS = {
    StopReason.PROVED: "gap closed",
    StopReason.TARGET: "target reached",
    StopReason.AGREED: "copies and variables agree",
    StopReason.TIME: "at the time limit",
    StopReason.INTERRUPT: "interrupted",
    StopReason.CALLBACK: "stopped by the callback",
    StopReason.ERROR: "ended by an error",
}
"""Why a part ended before its work was done, in words."""


@dataclass
class SolvePart:
    """One method at work, in one turn or in several."""

    name: str
    residuals: bool = False
    """Whether its rows show residuals."""
    note: str = ""
    """The method's own summary at its end."""
    stop_reason: StopReason | None = None
    begun: bool = False
    seconds: float = 0.0
    rounds: int = 0
    """Number of rounds."""
    _solutions: tuple[State, State] | None = None
    """Before the first and after the last turn in which the incumbent improved."""
    _bounds: tuple[State, State] | None = None
    """Before the first and after the last turn in which the bound improved."""

    def add(self, before: State, after: State, rounds: int) -> bool:
        """Record a turn; whether it improved the incumbent or the bound."""
        self.begun = True
        self.seconds, self.rounds = self.seconds + after.elapsed - before.elapsed, self.rounds + rounds
        better, tighter = incumbent_gain(before, after), bound_gain(before, after)
        if better:
            self._solutions = (self._solutions or (before, after))[0], after
        if tighter:
            self._bounds = (self._bounds or (before, after))[0], after
        return bool(better or tighter)

    def summary(self, now: State, first: float = math.nan) -> str:
        """What the part achieved; `first` is the objective of the first solution of the solve."""
        better = incumbent_gain(*self._solutions, first) if self._solutions else ""
        gains = [*filter(None, [better, bound_gain(*self._bounds) if self._bounds else ""])]
        if math.isnan(now.incumbent):
            gains.append("no solution yet")
        said = [several(self.rounds, "round"), *(gains or ["no gain"])]
        if self.stop_reason in ENDS:
            said.append(ENDS[self.stop_reason])
        note = self.note.removeprefix(f"{self.name}: ")
        return f"{self.seconds:.1f} s {self.name}: {', '.join(said)}" + (f"; {note}" if note else "")


def incumbent_gain(before: State, now: State, first: float = math.nan) -> str:
    """How the incumbent improved; "" if it did not. `first` is the objective of the first solution."""
    if math.isnan(now.incumbent) or now.incumbent == before.incumbent:
        return ""
    if math.isnan(before.incumbent) and not math.isnan(first) and number(first) != number(now.incumbent):
        return f"first solution {number(first)}, then {number(now.incumbent)}"
    return _step("incumbent", "first solution", before.incumbent, now.incumbent)


def bound_gain(before: State, now: State) -> str:
    """How the bound with the predictors improved; "" if it did not."""
    known = before.bound is not None and not before.rows_only
    if now.bound is None or now.rows_only or (known and now.bound == before.bound):
        return ""
    return _step("bound", "bound", before.bound if known else None, now.bound)


def _step(what: str, first: str, before: float | None, now: float) -> str:
    if before is None or math.isnan(before):
        return f"{first} {number(now)}"
    if number(before) == number(now):
        return f"{what} {number(now)}, better in digits not shown"
    return f"{what} {number(before)} to {number(now)}"
