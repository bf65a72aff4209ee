"""E1's claims: quality, time and speed-up against big-M, in both readings of the budgets; the headline."""

from __future__ import annotations

import math
from dataclasses import replace

from dovetail_study.best_known import Reachable, pairs, worth
from dovetail_study.claims.duration import (
    NOTHING_SEARCHED,
    all_solved,
    apart,
    in_both,
    judged_speed_up,
    judged_time,
    said,
)
from dovetail_study.claims.quality import Quality
from dovetail_study.ends import End, done, end, searched, spent, tally
from dovetail_study.experiment import Rows
from dovetail_study.origin import in_order
from dovetail_study.paper import (
    E1_EXCEEDS,
    E1_NEAR,
    E1_NETWORKS,
    E1_RATIOS,
    E1_SIZES,
    HEADLINE,
    HEADLINE_BASELINE,
    HEADLINE_RATIO,
    HEADLINE_SECONDS,
)
from dovetail_study.statistics import count_of, found, known, mean, text, where
from dovetail_study.verdict import Verdict, judged

LARGE, MANY = E1_NETWORKS[2:], 100
"""Networks and sizes on which the claim about seconds is judged: "as depth or n grows"."""
NEAR = 3.0 * E1_NEAR
"""Seconds that still count as near the paper's, which had another machine."""
EQUAL = Quality.ENOUGH
QUALITY = (
    '"aligns with the monolithic baseline across all configurations", "virtually no performance loss from '
    'decomposition"'
)
BY_SCIP = "E1 with SCIP for the MIP steps:"
"""The paper's own solver; ours is whichever is fastest, PIQP on water."""
CELLS = len(E1_NETWORKS) * len(E1_SIZES)


def verdicts(rows: Rows) -> list[Verdict]:
    """Four claims in two readings each, two of them with the paper's MIP solver as well, and the headline."""
    mine = [row for row in rows if row["network"] in E1_NETWORKS and row["n"] in E1_SIZES]
    return [*in_both(mine, _of), replace(_headline(where(rows, **HEADLINE)), reading="budgets total")]


def _of(rows: Rows) -> list[Verdict]:
    return [
        _beside(rows),
        _quality(rows),
        _seconds(rows, "paper", "E1 time:"),
        judged_speed_up("E1 speed-up of DD over big-M", rows, "paper", E1_RATIOS),
        _seconds(rows, "paper-scip", BY_SCIP),
        judged_speed_up(f"{BY_SCIP} speed-up of DD over big-M", rows, "paper-scip", E1_RATIOS),
    ]


def _beside(rows: Rows) -> Verdict:
    every = pairs(rows, "paper", "big-m")
    points = [(dd, scip) for dd, scip in every if worth(scip)]
    matched = [(dd, scip) for dd, scip in points if done(scip)]
    parts: dict[tuple[str, int], list[float]] = {}
    for dd, scip in matched:
        parts.setdefault((dd["network"], dd["n"]), []).append((worth(dd) or 0.0) / (worth(scip) or 1.0))
    equal = [mean(values) >= EQUAL for values in parts.values()]
    shares = [part for values in parts.values() for part in values]
    better, worse = sum(part > 1 for part in shares), sum(part < 1 for part in shares)
    ours = [dd for dd, _ in matched]
    return judged(
        "E1 quality: DD beside big-M's own points",
        QUALITY,
        f"DD has {text(mean(shares))} of big-M's potable samples over the {len(matched)} of {len(every)} "
        f"pairs in which SCIP was done with a point, is better in {better}, equal in "
        f"{len(shares) - better - worse}, worse in {worse}; these are in {len(parts)} of {CELLS} cells "
        f"({_named(ours)}); in {len(points) - len(matched)} more pairs big-M has a point that its limit cut "
        "short, which says nothing of a loss",
        holds=all(equal) and len(parts) == CELLS if parts else None,
        in_part=sum(equal) >= len(equal) / 2,
        rule=f"in each of the {CELLS} cells SCIP is done with a point and DD has at least {EQUAL:g} of it; "
        "in part: in half of the cells in which SCIP is done",
        rows=[row for pair in every for row in pair],
    )


def _quality(rows: Rows) -> Verdict:
    reachable, mine = Reachable(rows), where(rows, method="paper")
    cells = {(w, n): where(mine, network=w, n=n) for w in E1_NETWORKS for n in E1_SIZES}
    means = {cell: mean(reachable.shares(runs)) for cell, runs in cells.items()}
    shares = {cell: value for cell, value in means.items() if math.isfinite(value)}
    equal = [cell for cell, value in shares.items() if value >= EQUAL]
    sound = [cell for cell in shares if all(map(reachable.sound, filter(reachable.known, cells[cell])))]
    looked = [row for row in mine if reachable.known(row)]
    proved = [reachable.proved(row) for row in looked]
    counts = [cell for cell in equal if cell in sound]
    least = [mean([part for row in cells[cell] if (part := reachable.least_share(row))]) for cell in shares]
    certain = bool(least) and min(least) >= EQUAL
    return judged(
        "E1 quality: DD beside the best known",
        QUALITY,
        f"{_shares(shares)}; at least {EQUAL:g} of it in {len(equal)} cells, in {len(counts)} of these by a "
        f"reference that is proved or better than every contestant; it rests on the {len(looked)} of "
        f"{len(mine)} instances into which a reference looked ({_named(looked)}), {sum(proved)} of them "
        f"proved optimal; at least {text(min(least))} of the proved bound in every cell"
        if shares
        else f"no reference yet: none looked into any of the {len(mine)} instances",
        holds=certain if shares else None,
        in_part=bool(counts) and len(counts) >= len(shares) / 2,
        open_end=len(equal) == len(shares),
        rule=f"in every cell the mean over seeds is at least {EQUAL:g} of the least bound that is proved, "
        "hence of the optimum; in part: of the best known, in half of the cells, counting only those whose "
        "best known is proved or a reference's that is better than every contestant's",
        rows=rows,
    )


def _named(rows: Rows) -> str:
    """Networks and seeds."""
    networks, seeds = in_order(rows, "network"), in_order(rows, "seed")
    return f"networks {', '.join(networks) or 'none'}; seeds {', '.join(map(str, seeds)) or 'none'}"


def _shares(shares: dict[tuple[str, int], float]) -> str:
    network, n = min(shares, key=lambda cell: shares[cell])
    return (
        f"{text(mean(list(shares.values())))} of the best known potable samples on average over "
        f"{len(shares)} of {CELLS} cells, least {text(shares[network, n])} ({network}, n = {n})"
    )


def _seconds(rows: Rows, method: str, claim: str) -> Verdict:
    hard = [row for row in rows if row["network"] in LARGE and row["n"] >= MANY]
    ours, theirs = where(hard, method=method), where(hard, method="big-m")
    searches = [row for row in theirs if searched(row)]
    near = bool(known(ours, "seconds")) and max(known(ours, "seconds")) <= NEAR
    slow = bool(searches) and min(known(searches, "seconds"), default=0.0) > E1_EXCEEDS
    return judged_time(
        f"{claim} DD near 10 s where big-M exceeds 100 s",
        f"{E1_NEAR:g} s, > {E1_EXCEEDS:g} s",
        f"on {' and '.join(LARGE)} with n >= {MANY} DD {said(ours)}; big-M: "
        f"{tally(theirs) or 'no runs'}; at least {text(min(known(searches, 'seconds'), default=math.nan))} s "
        "where it searched",
        fast=near and slow if ours and (searches or not near) else None,
        solved=all_solved(ours),
        quality=Quality.of(ours, rows),
        rule=f"every DD run ends within {NEAR:g} s, and every big-M run that searched took more than "
        f"{E1_EXCEEDS:g} s",
        rows=[*ours, *theirs],
    )


def _headline(rows: Rows) -> Verdict:
    ours, theirs = where(rows, method="paper"), where(rows, method="big-m")
    searches = [row for row in theirs if searched(row)]
    ratio = mean(known(searches, "seconds")) / mean(known(ours, "seconds")) if searches else math.nan
    slow = spent(searches, "solving_seconds", HEADLINE_BASELINE)
    near = bool(known(ours, "seconds")) and max(known(ours, "seconds")) <= NEAR
    enough = ratio >= HEADLINE_RATIO
    return judged_time(
        "E1 headline: 6x128 with n = 500",
        f"{HEADLINE_SECONDS:g} s against >= {HEADLINE_BASELINE:g} s, 100x, 120x",
        f"DD {said(ours)}; big-M: {tally(theirs) or 'no runs'}, a point of its own in "
        f"{count_of(theirs, found)}; "
        + (f"{_at_least(searches)}{text(ratio)}x" if searches else f"no ratio: {NOTHING_SEARCHED}")
        + apart(pairs(rows, "paper", "big-m")),
        fast=enough if ours and searches else None,
        solved=all_solved(ours),
        part=near and (enough or slow),
        quality=Quality.of(ours, rows),
        open_end=not enough and not slow and any(end(row) is End.TIME for row in searches),
        rule=f"at least {HEADLINE_RATIO:g}x; in part: DD's runs end within {NEAR:g} s, and "
        f"that is at least {HEADLINE_RATIO:g}x, or SCIP is not done after {HEADLINE_BASELINE:g} s of search",
        rows=[*ours, *theirs],
    )


def _at_least(searches: Rows) -> str:
    return "> " if any(end(row) is End.TIME for row in searches) else ""
