"""E5: tree planting with another sub-solver for the network step, compared with SCIP."""

from __future__ import annotations

import math
from itertools import pairwise

from dovetail_study.claims import (
    Quality,
    all_solved,
    judged_speed_up,
    judged_time,
    said,
    timed,
    times_as_long,
)
from dovetail_study.contestants import BASELINES, CONTESTANTS, on_trees
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
from dovetail_study.figures import Bars, Drawing
from dovetail_study.origin import in_order
from dovetail_study.paper import (
    BARRIER_OVER_GRADIENT,
    E5_NETWORKS,
    E5_SECONDS,
    E5_SPEED,
    MOST_LOST,
    SWAP_RATIO,
)
from dovetail_study.sections import ENDING, UNITS, best_known, ending, gap, how_big_m_ended
from dovetail_study.statistics import (
    Pairs,
    Reachable,
    average,
    count_of,
    done,
    found,
    geometric_mean,
    known,
    mean,
    never_improved,
    pairs,
    present,
    searched,
    spread_of,
    stopped,
    tally,
    text,
    where,
    worth,
)

SAME = 1e-3
"""Objectives within this part of each other count as the same."""
LOSS_ROOM, SOME_LOST = 0.1, 0.05
"""As in E3: the possible effect of another network on a share, and the loss that counts."""
MOVED = "the barrier improved on the start in every pair"
SLOWER = 2.0
"""Times the paper's seconds that count as no slower: another machine."""


def verdicts(rows: Rows) -> list[Verdict]:
    """SCIP's seconds, the two sub-solvers', and how they compare."""
    mine = [row for row in rows if row["network"] in E5_NETWORKS]
    swapped = pairs(mine, "paper-barrier", "paper")
    return [
        _quality(mine),
        _without_dual(mine),
        _scip(where(mine, method="big-m")),
        _times(mine, "paper-barrier", "E5 seconds of the barrier"),
        _times(mine, "paper", "E5 seconds of projected gradient"),
        _speed(mine, "paper-barrier", "the barrier"),
        _speed(mine, "paper", "projected gradient"),
        _swap(swapped),
        _slower(swapped),
        _many_cuts(swapped),
    ]


def _quality(rows: Rows) -> Verdict:
    reachable, mine = Reachable(rows), where(rows, method="paper")
    shares, looked = reachable.shares(mine), [row for row in mine if reachable.known(row)]
    proved = [reachable.proved(row) for row in looked]
    good = mean(shares) >= Quality.ENOUGH if shares else None
    return judged(
        "Near-optimal quality, on tree planting (E5)",
        "maintains near-optimal quality",
        f"{text(mean(shares))} of the best known survivals on average over {len(shares)} of {len(mine)} "
        f"runs, {sum(proved)} of them with a proved optimum; the best point comes after "
        f"{text(average(mine, 'best_seconds'))} s on average"
        if shares
        else f"no reference yet: none looked into any of the {len(mine)} instances",
        holds=good and all(proved) if good is not None else None,
        open_end=bool(good) and not all(proved),
        rule=f"at least {Quality.ENOUGH:g} of the best known on average, and that proved optimal",
        rows=[row for row in rows if row["method"] in ("paper", "auto")],
    )


def _without_dual(rows: Rows) -> Verdict:
    matched = [(out, full) for out, full in pairs(rows, "paper-no-dual", "paper") if worth(full)]
    lost = [1.0 - (worth(out) or 0.0) / (worth(full) or 1.0) for out, full in matched]
    return judged(
        "Dual updates are needed, on tree planting (E5)",
        f"removing them loses up to {100 * MOST_LOST:g} %",
        f"without the dual update {text(100 * min(lost), 2)} to {text(100 * max(lost), 2)} % of the "
        f"survivals are lost, in {sum(each > SOME_LOST for each in lost)} of {len(lost)} pairs more than "
        f"{100 * SOME_LOST:g} %"
        if lost
        else "no pairs",
        holds=max(lost) >= MOST_LOST - LOSS_ROOM if lost else None,
        in_part=bool(lost) and mean(lost) > SOME_LOST,
        rule=f"in some pair that is lost, give or take {100 * LOSS_ROOM:g} of 100; in part: on average more "
        f"than {100 * SOME_LOST:g}",
        rows=[row for pair in matched for row in pair],
    )


def _scip(rows: Rows) -> Verdict:
    least, most = E5_SECONDS["big-m"][0], E5_SECONDS["big-m"][-1]
    searches = [row for row in rows if searched(row)]
    slow = [row["seconds"] >= least for row in searches if known([row], "seconds")]
    needed = {
        w: average([row for row in where(searches, network=w) if done(row)], "seconds") for w in E5_NETWORKS
    }
    rising = list(needed.values())
    near = all(
        max(ours / paper, paper / ours) <= SLOWER for ours, paper in ((rising[0], least), (rising[-1], most))
    )
    grows = all(a < b for a, b in pairwise(rising))
    reached = [w for w in E5_NETWORKS if where(searches, network=w)]
    listed = ", ".join(f"{w} {text(value)}" for w, value in needed.items())
    return judged(
        "E5 seconds of SCIP",
        f"{least:g}–{most:g} (its limit is 300)",
        f"a point of its own in {count_of(rows, found)}: {tally(rows) or 'no runs'}; "
        f"seconds on average where it was done: {listed}; at least "
        f"{text(min(known(searches, 'seconds'), default=math.nan))} s where it searched "
        f"({', '.join(reached) or 'no network'})",
        holds=near and grows and all(map(done, rows)) if slow else None,
        in_part=all(slow),
        open_end=all(slow) and len(reached) < len(E5_NETWORKS),
        rule=f"SCIP is done in every run, its seconds rise with size, and are within {SLOWER:g} times of "
        f"the paper's for the smallest and the largest network; in part: at least {least:g} s in every run "
        "in which it searched, and it searched on every network",
        rows=rows,
    )


def _times(rows: Rows, method: str, claim: str) -> Verdict:
    mine, scip = where(rows, method=method), where(rows, method=f"{method}-scip")
    paper = dict(zip(E5_NETWORKS, E5_SECONDS[method], strict=True))
    means = {w: average(where(mine, network=w), "seconds") for w in E5_NETWORKS}
    there = {w: value for w, value in means.items() if math.isfinite(value)}
    near = [value <= SLOWER * paper[w] for w, value in there.items()]
    own = f"; with SCIP for the MIP steps it {said(scip)}" if scip else ""
    return judged_time(
        claim,
        ", ".join(f"{value:g}" for value in paper.values()),
        f"{', '.join(f'{w}: {text(value)}' for w, value in there.items())} s, {sum(map(stopped, mine))} of "
        f"{len(mine)} runs at the limit, a MIP step {text(mean_step(mine, 'mip'))} s, a network step "
        f"{text(mean_step(mine, 'nn'))} s; {said(mine)}{own}",
        fast=all(near) if there else None,
        part=any(near),
        solved=all_solved(mine),
        quality=Quality.of(mine, rows),
        rule=f"at most {SLOWER:g} times the paper's at every size; in part: at some",
        rows=[*mine, *scip],
    )


def mean_step(rows: Rows, step: str) -> float:
    """Seconds of one step, over all iterations of the rows."""
    mine = [row for row in rows if row.get("iterations") and row.get(f"{step}_seconds") is not None]
    total = math.fsum(row[f"{step}_seconds"] for row in mine)
    return total / sum(row["iterations"] for row in mine) if mine else math.nan


def _speed(rows: Rows, method: str, words: str) -> Verdict:
    return judged_speed_up(f"E5 speed-up of {words} over SCIP", rows, method, E5_SPEED[method])


def _pairs_in_time(swapped: Pairs) -> Pairs:
    """The pairs in which at least one run ended before its time limit: the times of other pairs are
    unknown."""
    return [(b, p) for b, p in timed(swapped) if not (stopped(b) and stopped(p))]


def _swap(swapped: Pairs) -> Verdict:
    both = [(b, p) for b, p in swapped if found(b) and found(p) and p["objective"]]
    ended = _pairs_in_time(swapped)
    ratio = geometric_mean([times_as_long(b, p) for b, p in ended])
    apart = [abs(b["objective"] / p["objective"] - 1) for b, p in both]
    equal = [gap <= SAME for gap in apart]
    quick = bool(ended) and ratio < SWAP_RATIO
    return judged(
        "Swapping the sub-solver changes time by less than 2x, identical objective",
        f"< {SWAP_RATIO:g}x (its own E5: 9–21x)",
        f"objectives the same in {sum(equal)} of {len(equal)} pairs, at most "
        f"{text(100 * max(apart, default=math.nan), 2)} % apart; total time {text(ratio)}x over the "
        f"{len(ended)} of {len(swapped)} pairs in which not both met the limit{_unmoved_note(swapped)}",
        holds=all(equal) and quick if both else None,
        in_part=bool(both) and (all(equal) or (quick and _barrier_moved(swapped))),
        rule=f"objectives within {100 * SAME:g} % in every pair and less than {SWAP_RATIO:g} times the time; "
        f"in part: one of the two, the second only where {MOVED}",
        rows=[row for pair in swapped for row in pair],
    )


def _unmoved_note(swapped: Pairs) -> str:
    """The number of pairs in which the barrier's point is its start: steps without progress take little
    time."""
    count = sum(never_improved(barrier) for barrier, _ in swapped)
    return f"; the barrier never improved on the start in {count} of {len(swapped)}" if count else ""


def _barrier_moved(swapped: Pairs) -> bool:
    """Whether the barrier got anywhere in every pair."""
    return not any(never_improved(barrier) for barrier, _ in swapped)


def _step_ratios(swapped: Pairs) -> list[float]:
    """The ratio of the barrier's network step time to that of gradient descent, pair by pair."""
    each = [(mean_step([b], "nn"), mean_step([p], "nn")) for b, p in swapped]
    return [b / max(p, 1e-6) for b, p in each if math.isfinite(b) and math.isfinite(p) and b > 0]


def _slower(swapped: Pairs) -> Verdict:
    low, high = BARRIER_OVER_GRADIENT
    steps = geometric_mean(_step_ratios(swapped))
    ended = _pairs_in_time(swapped)
    total = geometric_mean([times_as_long(b, p) for b, p in ended])
    return judged(
        "E5 barrier over projected gradient",
        f"{low:g}–{high:g}x slower",
        f"total time {text(total)}x over the {len(ended)} of {len(swapped)} pairs in which not both met the "
        f"limit; a network step takes {text(steps)}x as long{_unmoved_note(swapped)}",
        holds=total >= low if ended else None if not swapped else False,
        in_part=total >= 2.0 or steps >= 2.0,
        open_end=not ended and steps >= low,
        rule=f"total time at least {low:g}x; in part: total or network steps at least twice",
        rows=[row for pair in swapped for row in pair],
    )


def _many_cuts(swapped: Pairs) -> Verdict:
    ratios = _step_ratios(swapped)
    both = [(b, p) for b, p in swapped if found(b) and found(p)]
    better = [b["objective"] > p["objective"] * (1 + SAME) for b, p in both]
    faster = [ratio < 1.0 for ratio in ratios]
    return judged(
        "Barrier is better where C has many cuts (section on the method)",
        "especially beneficial",
        "on tree planting, where every output of the network meets rows of its own: its network step is "
        f"faster in {sum(faster)} of {len(faster)} pairs, its point better in {sum(better)} of {len(better)}"
        f"{_unmoved_note(swapped)}",
        holds=all(faster) and all(better) if ratios and both else None,
        in_part=bool(ratios)
        and ((all(faster) and _barrier_moved(swapped)) or (bool(better) and all(better))),
        rule="faster network steps and better points in every pair; in part: one of the two, the first only "
        f"where {MOVED}",
        rows=[row for pair in swapped for row in pair],
    )


NAME = "e5"
LOOPS = ("paper", "paper-no-dual", "paper-barrier", "dual-decomposition")
SLOW = ("paper-scip", "paper-outputs")
"""Minutes per run: a MIP step by SCIP, or one that keeps the outputs, takes seconds."""
METHODS = (*LOOPS, *SLOW, "auto", "big-m")
BASELINE_TIMES = 3.0
"""SCIP's 900 s, in limits of 300 s: the paper lets it have 860."""


HEADER = (
    "network", "method", "runs", "found", "expected survivors", "best known", "gap to it, %", "iterations",
    "s / MIP step", "s / network step", *ENDING, "paper's seconds",
)  # fmt: skip


def tables(rows: Rows) -> list[ResultTable]:
    """One line per network and method; then big-M's endings."""
    reachable = Reachable(rows)
    table = ResultTable(
        "e5",
        "E5: tree planting",
        HEADER,
        reading=(
            "Means over seeds ± their standard deviation. The objective is the expected number of surviving "
            "trees, larger is better, checked with the networks themselves; *best known* is the best "
            "verified point of any method on the same instances, with the number of them in which it is "
            "proved optimal. *paper* is the paper's loop with its own copies of every column that the "
            "network's rows touch, and projected gradient; *paper-barrier* has the log barrier (Newton-CG), "
            "*paper-scip* the paper's MIP solver, *paper-outputs* our second coupling in place of its "
            "copies, *paper-no-dual* no multipliers. *Improved on the start*: where a loop never did, the "
            f"value is the start's. *Last residual*: {UNITS}. *Seconds* are those to the end of the run, "
            "converged or not; what is neither MIP nor network step is set-up and the check."
        ),
        records=rows,
    )
    for network in in_order(rows, "network"):
        for method in present(CONTESTANTS, rows):
            cell = where(rows, network=network, method=method)
            if cell:
                table.rows.append(_line(cell, reachable))
    return [table, *how_big_m_ended("e5", "E5", rows, "network")]


def _line(cell: Rows, reachable: Reachable) -> list[str]:
    first, points = cell[0], [row for row in cell if found(row)]
    network, method = first["network"], first["method"]
    known_there = network in E5_NETWORKS and method in E5_SECONDS
    paper = E5_SECONDS[method][E5_NETWORKS.index(network)] if known_there else math.nan
    loop = method not in BASELINES and method != "auto"
    return [
        network,
        method,
        str(len(cell)),
        str(len(points)),
        spread_of(points, "objective", 4),
        best_known(cell, reachable, 4),
        gap(points, reachable),
        spread_of(cell, "iterations") if loop else "–",
        text(mean_step(cell, "mip")) if loop else "–",
        text(mean_step(cell, "nn")) if loop else "–",
        *ending(cell),
        text(paper),
    ]


def draw(rows: Rows) -> Drawing | None:
    """Time, steps and objective."""
    networks, methods = in_order(rows, "network"), present(CONTESTANTS, rows)
    if not networks:
        return None

    def seconds() -> dict[str, list[float]]:
        return {m: [average(where(rows, network=w, method=m), "seconds") for w in networks] for m in methods}

    def steps(step: str) -> dict[str, list[float]]:
        loops = [m for m in methods if m not in BASELINES and m != "auto"]
        return {m: [mean_step(where(rows, network=w, method=m), step) for w in networks] for m in loops}

    reachable = Reachable(rows)
    quality = {
        m: [mean(reachable.shares(filter(found, where(rows, network=w, method=m)))) for w in networks]
        for m in methods
    }
    return Drawing(
        "E5: tree planting; a dash: no point found",
        [
            Bars("time to the end of the run", "seconds", networks, seconds(), log_y=True),
            Bars("a MIP step", "seconds", networks, steps("mip"), log_y=True),
            Bars("a network step", "seconds", networks, steps("nn"), log_y=True),
            Bars("quality", "survivors / best known", networks, quality),
        ],
        2,
    )


def _runs(settings: BenchSettings) -> list[Run]:
    grid, networks = (2, ("2x8", "3x8")) if settings.quick else (6, E5_NETWORKS)
    cells = [{"network": w, "grid": grid} for w in networks]
    planned = runs(NAME, cells, (*LOOPS, "auto"), settings) + runs(NAME, cells, SLOW, settings, seeds=FEW)
    return planned + tried_first(NAME, cells, "big-m", settings, times=BASELINE_TIMES)


E5 = Experiment(NAME, "E5: sub-solvers on tree planting", METHODS, _runs, on_trees, tables, verdicts, draw)
