"""The common parts of several experiments' claims: seconds, the quality of points, and residuals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import dovetail as dt
from dovetail_study.experiment import FEW, Record, Rows, Verdict, judged
from dovetail_study.paper import BUDGETS, RHO, STEP
from dovetail_study.statistics import (
    Pairs,
    Reachable,
    constant,
    converged,
    converged_in,
    count_of,
    done,
    geometric_mean,
    instance,
    known,
    mean,
    never_improved,
    pairs,
    proved,
    searched,
    tally,
    text,
    where,
    worth,
)

TOLERANCE = dt.DualDecomposition.paper().tolerance


def floor(rows: Sequence[Record]) -> str:
    """The distance of u and x at the end of runs with the paper's settings, compared with the tolerance."""
    mine = where(rows, method="paper")
    live, flat = (known([row for row in mine if constant(row) is each], "residual") for each in (False, True))
    if not live:
        return "no run has a last residual"
    near = sum(residual <= TOLERANCE for residual in live)
    constants = (
        f", and in {sum(residual <= TOLERANCE for residual in flat)} of {len(flat)} on constant ones"
        if flat
        else ""
    )
    return (
        f"u and x ended within {TOLERANCE:g} of each other in {near} of {len(live)} runs on networks that "
        f"are not constant (least last residual {text(min(live), 2)}){constants}"
    )


def converging(rows: Sequence[Record]) -> str:
    """The same for every rule that asks for convergence, over all rows of the page."""
    every = where(rows, method="paper")
    mine = [row for row in every if row.get("rho", RHO) == RHO and row.get("step", STEP) == STEP]
    if not mine:
        return ""
    others = [row for row in every if row not in mine]
    tuned = (
        f" With another rho or step (sensitivity) {count_of(others, converged)} converge." if others else ""
    )
    return (
        f"Rules that ask a run to converge are met by {count_of(mine, converged)} runs of *paper* (rho "
        f"{RHO:g}), by {sum(map(proved, mine))} of these because their point was proved optimal; "
        f"{floor(mine)}.{tuned}"
    )


@dataclass(frozen=True)
class Quality:
    """For each run its fraction of the best known, and of big-M's own point."""

    ENOUGH: ClassVar[float] = 0.95
    """The loss that counts as none: one sample in 20."""
    MOST_STUCK: ClassVar[float] = 0.5
    """The fraction of runs that may end where they began for their seconds to count."""
    shares: Sequence[float]
    """Fraction of the best known, where a reference exists."""
    beside: Sequence[float]
    """Objective relative to that of big-M, for runs in which big-M found a point."""
    stuck: int
    """Runs that never improved on their start, of those whose network is not constant."""
    alive: int
    """The number of these runs."""
    runs: int

    @classmethod
    def of(cls, mine: Sequence[Record], every: Sequence[Record]) -> Quality:
        """The shares of these runs, relative to the best of all runs of the experiment."""
        scip = {instance(row): worth(row) for row in where(every, method="big-m")}
        beside = [(worth(row) or 0.0) / theirs for row in mine if (theirs := scip.get(instance(row)))]
        alive = [row for row in mine if not constant(row)]
        stuck = sum(map(never_improved, alive))
        return cls(Reachable(every).shares(mine), beside, stuck, len(alive), len(mine))

    @property
    def good(self) -> bool | None:
        """Whether the best known value was reached; None if this value is unknown."""
        return mean(self.shares) >= self.ENOUGH if self.shares else None

    @property
    def fair(self) -> bool:
        """Whether the seconds can be compared with the baseline's: the baseline's points are not better."""
        if self.beside:
            return mean(self.beside) >= self.ENOUGH
        return self.stuck <= self.MOST_STUCK * self.alive

    def __str__(self) -> str:
        parts = []
        if self.shares:
            parts.append(
                f"its points are worth {text(mean(self.shares))} of the best known, over {len(self.shares)} "
                f"of {self.runs} runs"
            )
        else:
            parts.append("what its points are worth is not known: no reference yet, or nothing to reach")
        if self.beside:
            parts.append(f"{text(mean(self.beside))} of big-M's own, over the {len(self.beside)} that it has")
        return ", ".join(parts)


CLOCK = 1e-3
"""Runs shorter than this number of seconds are not compared: no ratio is computed."""

NEVER_DONE = "SCIP was done in no pair"
NOTHING_SEARCHED = "there is nothing to compare with"


def said(rows: Sequence[Record]) -> str:
    """The seconds to their end, and the number that converged."""
    if not rows:
        return "has no such runs"
    seconds = known(rows, "seconds")
    most = text(max(known(rows, "iterations"), default=math.nan))
    longest = text(max(seconds, default=math.nan))
    return (
        f"took {text(mean(seconds))} s on average (at most {longest}) to the end of at most {most} "
        f"iterations; converged in {converged_in(rows)}"
    )


def all_solved(rows: Sequence[Record]) -> bool:
    """Whether every run converged, so that its seconds are those of a solve."""
    return bool(rows) and all(map(converged, rows))


def timed(matched: Pairs) -> Pairs:
    """The pairs of which both have seconds."""
    return [pair for pair in matched if all(known([row], "seconds") for row in pair)]


def times_as_long(slow: Record, fast: Record) -> float:
    """The seconds of a run over those of another."""
    return float(slow["seconds"] / max(fast["seconds"], CLOCK))


def ratios_said(compared: Pairs) -> str:
    """The speed-up if SCIP finished, then the ratio to its limit, which is a lower bound."""
    over = [times_as_long(scip, mine) for mine, scip in compared if done(scip)]
    cut = [times_as_long(scip, mine) for mine, scip in compared if not done(scip)]
    parts = []
    if over:
        parts.append(f"{text(geometric_mean(over))}x over the {len(over)} in which SCIP was done")
    if cut:
        least = text(geometric_mean(cut))
        parts.append(f"at least {least}x over the {len(cut)} in which SCIP was stopped at its limit")
    return ", ".join(parts) or NEVER_DONE


POINTS = (
    "Where a rule about seconds asks for *points that are good enough*, the claim holds with "
    f"{Quality.ENOUGH:g} of the best known on average, or, where nothing is known, if every run converges; "
    "it holds in part with that part of big-M's own points, or, where big-M has none, with points better "
    f"than the start in {100 * (1 - Quality.MOST_STUCK):g} % of the runs on networks that are not constant."
)


def judged_time(
    claim: str,
    paper: str,
    ours: str,
    *,
    fast: bool | None,
    solved: bool,
    quality: Quality,
    rule: str,
    rows: Sequence[Record],
    part: bool | None = None,
    open_end: bool = False,
) -> Verdict:
    """A verdict on seconds: being fast to a worse point was not claimed.

    It holds if points are as good as the best known or, if that is unknown, if runs converged. It holds in
    part if they only ended in time, unless the baseline's own points are better: the distance from the best
    known is a claim of its own. `part` states whether something was fast if not everything was.
    """
    some = fast if part is None else part
    return judged(
        claim,
        paper,
        f"{ours}; {quality}",
        holds=None if fast is None else fast and (solved if quality.good is None else quality.good),
        in_part=bool(some) and quality.fair,
        open_end=open_end,
        rule=f"{rule}; and points that are good enough",
        rows=rows,
    )


def read(rows: Rows, budgets: str) -> Rows:
    """The rows with budgets of one kind; a row without the field has totals."""
    return [row for row in rows if row.get("budgets", "total") == budgets]


def in_both(rows: Rows, judge: Callable[[Rows], list[Verdict]]) -> list[Verdict]:
    """Every claim with each kind of budgets that was run."""
    run = [budgets for budgets in BUDGETS if read(rows, budgets)] or BUDGETS[:1]
    return [
        replace(verdict, reading=f"budgets {budgets}")
        for budgets in run
        for verdict in judge(read(rows, budgets))
    ]


def judged_speed_up(claim: str, rows: Rows, method: str, claimed: tuple[float, float]) -> Verdict:
    """The verdict on the speed-up of a method's loop over big-M; `claimed` is the paper's range."""
    least, most = claimed
    every = pairs(rows, method, "big-m")
    compared = [(mine, scip) for mine, scip in timed(every) if searched(scip)]
    ratio = geometric_mean([times_as_long(scip, mine) for mine, scip in compared])
    ours, fast = [mine for mine, _ in compared], ratio >= least
    theirs = [scip for _, scip in every]
    return judged_time(
        claim,
        f"{least:g}–{most:g}x",
        f"{ratios_said(compared)} (geometric means; writing and search); SCIP searched in {len(compared)} of "
        f"{len(every)} pairs, over all of these {text(ratio)}x; the loop {said(ours)}"
        if compared
        else f"{NOTHING_SEARCHED}: SCIP searched in 0 of {len(every)} pairs ({tally(theirs) or 'no runs'})",
        fast=fast if len(compared) >= FEW else None,
        solved=all_solved(ours),
        quality=Quality.of(ours, rows),
        open_end=bool(compared) and not fast and not all(done(scip) for _, scip in compared),
        rule=f"geometric mean at least {least:g}x over at least {FEW} pairs, to the end of the "
        "loop's iterations",
        rows=[row for pair in every for row in pair],
    )
