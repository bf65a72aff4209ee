"""A part of a solve: one method at work, and what it brought, in words for the log."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dovetail.core.amounts import several
from dovetail.report.log.layout import number
from dovetail.report.log.table import State
from dovetail.run.budget import StopReason

ENDS = {
    StopReason.PROVED: "proved",
    StopReason.TARGET: "target reached",
    StopReason.AGREED: "the blocks agree",
    StopReason.TIME: "its time was over",
    StopReason.INTERRUPT: "interrupted",
    StopReason.CALLBACK: "stopped by the callback",
    StopReason.ERROR: "ended by an error",
}
"""Why a part ended, where that is worth a word: mostly it has done what it could."""


@dataclass
class SolvePart:
    """One method at work, in one turn or in several."""

    name: str
    residuals: bool = False
    """Whether its rows show residuals."""
    note: str = ""
    """What the method says of itself at its end."""
    stop_reason: StopReason | None = None
    begun: bool = False
    seconds: float = 0.0
    rounds: int = 0
    """On record."""
    _before: State | None = None
    """Incumbent and bound before the first turn that made them better."""
    _after: State | None = None
    """The same after the last such turn."""

    def add(self, before: State, after: State, rounds: int) -> bool:
        """Put a turn on record; whether it made the incumbent or the bound better."""
        self.begun = True
        self.seconds, self.rounds = self.seconds + after.elapsed - before.elapsed, self.rounds + rounds
        known = self._before, self._after
        gained = bool(gain(before, after))
        if gained or None in known:
            self._before, self._after = self._before or before, after
        return gained

    def summary(self, now: State, first: float = math.nan) -> str:
        """What it brought; `first` is the objective of the first point of all."""
        said = [several(self.rounds, "round"), *_brought(self._before or now, self._after or now, first)]
        if self.stop_reason in ENDS:
            said.append(ENDS[self.stop_reason])
        note = self.note.removeprefix(f"{self.name}: ")
        return f"{self.seconds:.1f} s {self.name}: {', '.join(said)}" + (f"; {note}" if note else "")


def _brought(before: State, now: State, first: float) -> list[str]:
    """What a part brought; that there is no point yet counts for more than that it gained nothing."""
    better = gain(before, now, first)
    if math.isnan(now.incumbent):
        return [*([better] if better else []), "no point yet"]
    return [better or "no gain"]


def gain(before: State, now: State, first: float = math.nan) -> str:
    """What became better, "" where nothing did."""
    better = []
    if not math.isnan(now.incumbent) and now.incumbent != before.incumbent:
        several_came = math.isnan(before.incumbent) and number(first) != number(now.incumbent)
        if several_came and not math.isnan(first):
            better.append(f"first point {number(first)}, then {number(now.incumbent)}")
        else:
            better.append(_step("incumbent", "first point", before.incumbent, now.incumbent))
    if now.bound is not None and not now.rows_only and (now.bound != before.bound or before.rows_only):
        known = before.bound is not None and not before.rows_only
        better.append(_step("bound", "bound", before.bound if known else None, now.bound))
    return ", ".join(better)


def _step(what: str, first: str, before: float | None, now: float) -> str:
    if before is None or math.isnan(before):
        return f"{first} {number(now)}"
    if number(before) == number(now):
        return f"{what} {number(now)}, better in digits that are not shown"
    return f"{what} {number(before)} to {number(now)}"
