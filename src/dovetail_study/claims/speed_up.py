"""A speed-up over big-M: over the pairs in which SCIP searched, and with what the loop's points are worth."""

from __future__ import annotations

from dovetail_study.best_known import pairs
from dovetail_study.claims.duration import (
    NOTHING_SEARCHED,
    all_solved,
    apart,
    judged_time,
    ratios_said,
    said,
    timed,
    times_as_long,
)
from dovetail_study.claims.quality import Quality
from dovetail_study.ends import done, searched, tally
from dovetail_study.experiment import Rows
from dovetail_study.run import FEW
from dovetail_study.statistics import geometric_mean, text
from dovetail_study.verdict import Verdict


def judged_speed_up(claim: str, rows: Rows, method: str, claimed: tuple[float, float]) -> Verdict:
    """Of a method's loop over big-M; `claimed` is the paper's range."""
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
        f"{len(every)} pairs{apart(compared)}, over all of these {text(ratio)}x; the loop {said(ours)}"
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
