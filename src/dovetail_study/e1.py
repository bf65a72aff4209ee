"""E1: dual decomposition against the networks written out, on water, over network and problem sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dovetail_study import paper
from dovetail_study.claims import (
    NOTHING_SEARCHED,
    Quality,
    all_solved,
    in_both,
    judged_speed_up,
    judged_time,
    said,
)
from dovetail_study.contestants import CONTESTANTS, MARGIN, on_water
from dovetail_study.experiment import (
    FEW,
    BenchSettings,
    Experiment,
    ResultTable,
    Rows,
    Run,
    Verdict,
    judged,
    runs,
    tried_first,
)
from dovetail_study.figures import Drawing, HeatMap
from dovetail_study.origin import in_order
from dovetail_study.sections import COUNTS, ENDING, HOW_TO_READ, ending, how_big_m_ended, reached
from dovetail_study.statistics import (
    End,
    Reachable,
    count_of,
    distinct,
    done,
    end,
    found,
    known,
    mean,
    pairs,
    present,
    searched,
    spent,
    tally,
    text,
    where,
    worth,
)

LARGE, MANY = paper.E1_NETWORKS[2:], 100
"""Networks and sizes on which the claim about seconds is judged: "as depth or n grows"."""
NEAR = 3.0 * paper.E1_NEAR
"""Seconds that still count as near the paper's, which had another machine."""
EQUAL = Quality.ENOUGH
QUALITY = (
    '"aligns with the monolithic baseline across all configurations", "virtually no performance loss from '
    'decomposition"'
)
BY_SCIP = "E1 with SCIP for the MIP steps:"
"""The paper's own solver; ours is whichever is fastest, PIQP on water."""
CELLS = len(paper.E1_NETWORKS) * len(paper.E1_SIZES)


def verdicts(rows: Rows) -> list[Verdict]:
    """Four claims in two readings each, two of them with the paper's MIP solver as well, and the headline."""
    mine = [row for row in rows if row["network"] in paper.E1_NETWORKS and row["n"] in paper.E1_SIZES]
    return [
        *in_both(mine, _verdicts_of),
        replace(_headline(where(rows, **paper.HEADLINE)), reading="budgets total"),
    ]


def _verdicts_of(rows: Rows) -> list[Verdict]:
    return [
        _quality_verdict(rows),
        _quality(rows),
        _seconds(rows, "paper", "E1 time:"),
        judged_speed_up("E1 speed-up of DD over big-M", rows, "paper", paper.E1_RATIOS),
        _seconds(rows, "paper-scip", BY_SCIP),
        judged_speed_up(f"{BY_SCIP} speed-up of DD over big-M", rows, "paper-scip", paper.E1_RATIOS),
    ]


def _quality_verdict(rows: Rows) -> Verdict:
    every = pairs(rows, "paper", "big-m")
    points = [(dd, scip) for dd, scip in every if worth(scip)]
    matched = [(dd, scip) for dd, scip in points if done(scip)]
    parts: dict[tuple[str, int], list[float]] = {}
    for dd, scip in matched:
        parts.setdefault((dd["network"], dd["n"]), []).append((worth(dd) or 0.0) / (worth(scip) or 1.0))
    equal = [mean(values) >= EQUAL for values in parts.values()]
    shares = [part for values in parts.values() for part in values]
    better, worse = sum(part > 1 for part in shares), sum(part < 1 for part in shares)
    return judged(
        "E1 quality: DD beside big-M's own points",
        QUALITY,
        f"DD has {text(mean(shares))} of big-M's potable samples over the {len(matched)} of {len(every)} "
        f"pairs in which SCIP was done with a point, is better in {better}, equal in "
        f"{len(shares) - better - worse}, worse in {worse}; these are in {len(parts)} of {CELLS} cells; in "
        f"{len(points) - len(matched)} more pairs big-M has a point that its limit cut short",
        holds=all(equal) and len(parts) == CELLS if parts else None,
        in_part=sum(equal) >= len(equal) / 2,
        rule=f"in each of the {CELLS} cells SCIP is done with a point and DD has at least {EQUAL:g} of it; "
        "in part: in half of the cells in which SCIP is done",
        rows=[row for pair in every for row in pair],
    )


def _quality(rows: Rows) -> Verdict:
    reachable, mine = Reachable(rows), where(rows, method="paper")
    cells = {(w, n): where(mine, network=w, n=n) for w in paper.E1_NETWORKS for n in paper.E1_SIZES}
    means = {cell: mean(reachable.shares(runs)) for cell, runs in cells.items()}
    shares = {cell: value for cell, value in means.items() if math.isfinite(value)}
    equal = [cell for cell, value in shares.items() if value >= EQUAL]
    sound = [cell for cell in shares if all(map(reachable.sound, filter(reachable.known, cells[cell])))]
    counts = [cell for cell in equal if cell in sound]
    least = [mean([part for row in cells[cell] if (part := reachable.least_share(row))]) for cell in shares]
    certain = bool(least) and min(least) >= EQUAL
    return judged(
        "E1 quality: DD beside the best known",
        QUALITY,
        f"{_shares(shares)}; at least {EQUAL:g} of it in {len(equal)} cells, in {len(counts)} of these by a "
        f"reference that is proved or better than every contestant; {sum(map(reachable.proved, mine))} of "
        f"{len(mine)} instances are proved; at least {text(min(least))} of the proved bound in every cell"
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
    slow = bool(searches) and min(known(searches, "seconds"), default=0.0) > paper.E1_EXCEEDS
    return judged_time(
        f"{claim} DD near 10 s where big-M exceeds 100 s",
        f"{paper.E1_NEAR:g} s, > {paper.E1_EXCEEDS:g} s",
        f"on {' and '.join(LARGE)} with n >= {MANY} DD {said(ours)}; big-M: "
        f"{tally(theirs) or 'no runs'}; at least {text(min(known(searches, 'seconds'), default=math.nan))} s "
        "where it searched",
        fast=near and slow if ours and (searches or not near) else None,
        solved=all_solved(ours),
        quality=Quality.of(ours, rows),
        rule=f"every DD run ends within {NEAR:g} s, and every big-M run that searched took more than "
        f"{paper.E1_EXCEEDS:g} s",
        rows=[*ours, *theirs],
    )


def _headline(rows: Rows) -> Verdict:
    ours, theirs = where(rows, method="paper"), where(rows, method="big-m")
    searches = [row for row in theirs if searched(row)]
    ratio = mean(known(searches, "seconds")) / mean(known(ours, "seconds")) if searches else math.nan
    slow = spent(searches, "solving_seconds", paper.HEADLINE_BASELINE)
    near = bool(known(ours, "seconds")) and max(known(ours, "seconds")) <= NEAR
    enough, cut = ratio >= paper.HEADLINE_RATIO, any(end(row) is End.TIME for row in searches)
    return judged_time(
        "E1 headline: 6x128 with n = 500",
        f"{paper.HEADLINE_SECONDS:g} s against >= {paper.HEADLINE_BASELINE:g} s, 100x, 120x",
        f"DD {said(ours)}; big-M: {tally(theirs) or 'no runs'}, a point of its own in "
        f"{count_of(theirs, found)}; "
        + (f"{'> ' if cut else ''}{text(ratio)}x" if searches else f"no ratio: {NOTHING_SEARCHED}"),
        fast=enough if ours and searches else None,
        solved=all_solved(ours),
        part=near and (enough or slow),
        quality=Quality.of(ours, rows),
        open_end=not enough and not slow and cut,
        rule=f"at least {paper.HEADLINE_RATIO:g}x; in part: DD's runs end within {NEAR:g} s, and "
        f"that is at least {paper.HEADLINE_RATIO:g}x, or SCIP is not done after "
        f"{paper.HEADLINE_BASELINE:g} s of search",
        rows=[*ours, *theirs],
    )


NAME = "e1"
LOOPS = ("paper", "dual-decomposition")
METHODS = ("paper", "paper-scip", "dual-decomposition", "auto", "big-m", "big-m-sos")
"""`big-m-sos`, the baseline's other form, is run where `--methods` names it."""
HEADLINE_TIMES = 3.0
"""Its 900 s, in limits of 300 s."""
MOST_FOR_SCIP = 100
"""Number of samples up to which 50 of its MIP steps fit 300 s on every network, three seeds each; with 200
samples the smallest network does not reach the 50th step."""


HEADER = ("network", "n", "budgets", "method", "runs", "found", *COUNTS, *ENDING)


def tables(rows: Rows) -> list[ResultTable]:
    """One line per cell and method; then big-M's endings."""
    reachable = Reachable(rows)
    table = ResultTable(
        "e1",
        "E1: potable samples and seconds",
        HEADER,
        reading=f"{HOW_TO_READ} big-M's classes have to clear their threshold by {MARGIN:g}: without that "
        "SCIP puts samples exactly on it, where the network disagrees. *Found* of a loop counts doing "
        "nothing, which it starts from; big-M has no such start, and its *found* counts points of its own."
        f"{_other_instances(rows)}",
        records=rows,
    )
    for budgets in distinct(rows, "budgets"):
        for network in in_order(rows, "network"):
            for n in sorted(distinct(where(rows, network=network, budgets=budgets), "n")):
                for method in present(CONTESTANTS, rows):
                    cell = where(rows, network=network, n=n, method=method, budgets=budgets)
                    if cell:
                        place = [network, str(n), budgets, method, str(len(cell)), str(sum(map(found, cell)))]
                        table.rows.append([*place, *reached(cell, reachable), *ending(cell)])
    return [table, *how_big_m_ended("e1", "E1", rows, "network", "n", "budgets")]


def _other_instances(rows: Rows) -> str:
    """Rows of fewer seeds are means over other instances than those beside them."""
    seeds = {m: set(distinct(where(rows, method=m), "seed")) for m in present(CONTESTANTS, rows)}
    every = set().union(*seeds.values())
    fewer = [f"{m} on {', '.join(map(str, sorted(mine)))}" for m, mine in seeds.items() if mine < every]
    return f" Fewer seeds are other instances, see *untouched*: {'; '.join(fewer)}." if fewer else ""


def draw(rows: Rows) -> Drawing | None:
    """Quality and time over networks and sizes, with both kinds of budgets."""
    methods = present(CONTESTANTS, rows)
    if not methods:
        return None
    slowest = max([*known(rows, "seconds"), 10.0])
    panels = [
        panel
        for budgets in paper.BUDGETS
        for panel in _heat_maps(where(rows, budgets=budgets), methods, f"budgets {budgets}", slowest)
    ]
    return Drawing("E1: quality and time; a dash: no point found, or not run", panels, len(methods))


def _heat_maps(rows: Rows, methods: Sequence[str], title: str, slowest: float) -> list[HeatMap]:
    """One row of maps for quality, and one for time."""
    networks, sizes, reachable = in_order(rows, "network"), sorted(distinct(rows, "n")), Reachable(rows)
    if not networks:
        return []

    def grid(method: str, value: Callable[[Rows], float]) -> list[list[float]]:
        return [[value(where(rows, network=w, n=n, method=method)) for n in sizes] for w in networks]

    def quality(cell: Rows) -> float:
        return mean(reachable.shares([row for row in cell if found(row)]))

    def seconds(cell: Rows) -> float:
        return mean(known(cell, "seconds"))

    shared: dict[str, Any] = {
        "x": "samples n", "y": "network", "columns": [str(n) for n in sizes], "rows": networks,
    }  # fmt: skip
    shares: dict[str, Any] = {"unit": "share of the best known", "limits": (0, 1)}
    times: dict[str, Any] = {"unit": "seconds", "limits": (0.5, slowest), "log": True}
    return [
        *[HeatMap(f"{m}, {title}", values=grid(m, quality), **shares, **shared) for m in methods],
        *[HeatMap(f"{m}: time, {title}", values=grid(m, seconds), **times, **shared) for m in methods],
    ]


def _runs(settings: BenchSettings) -> list[Run]:
    sizes = dict(
        zip(
            paper.BUDGETS,
            ((5, 10), (5,)) if settings.quick else (paper.E1_SIZES, paper.E1_SIZES),
            strict=True,
        )
    )
    networks = paper.E1_NETWORKS[:2] if settings.quick else paper.E1_NETWORKS
    cells: list[dict[str, Any]] = [
        {"network": network, "n": n, "budgets": budgets}
        for budgets in paper.BUDGETS
        for network in networks
        for n in sizes[budgets]
    ]
    headline = [] if settings.quick else [paper.HEADLINE]
    by_scip = [cell for cell in cells if cell["n"] <= MOST_FOR_SCIP]
    planned = runs(NAME, cells + headline, (*LOOPS, "auto"), settings)
    planned += runs(NAME, by_scip, ("paper-scip",), settings, seeds=FEW)
    for baseline in ("big-m", "big-m-sos") if settings.methods is not None else ("big-m",):
        planned += tried_first(NAME, cells, baseline, settings)
        planned += tried_first(NAME, headline, baseline, settings, times=HEADLINE_TIMES)
    return planned


E1 = Experiment(
    NAME,
    "E1: dual decomposition against big-M",
    METHODS,
    _runs,
    on_water,
    tables,
    verdicts,
    draw,
)
