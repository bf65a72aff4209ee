"""E3: the effect of the dual update: single-step gradient, dual decomposition and SCIP side by side.

E3's claims about the effect of the dual update, for both readings of the budgets.

The clean ablation is *paper-no-dual*: Algorithm 1 with the multipliers kept at zero and everything else
equal. SSG, the paper's ablation, differs in other respects too and is judged separately.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

from dovetail_study import paper
from dovetail_study.claims import (
    Quality,
    all_solved,
    in_both,
    judged_time,
    ratios_said,
    read,
    said,
    timed,
    times_as_long,
)
from dovetail_study.contestants import AUTO, BASELINES, CONTESTANTS, on_water
from dovetail_study.experiment import (
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
from dovetail_study.figures import Drawing, LinesPanel
from dovetail_study.sections import COUNTS, ENDING, HOW_TO_READ, ending, how_big_m_ended, reached
from dovetail_study.statistics import (
    Reachable,
    average,
    converged,
    converged_in,
    distinct,
    done,
    geometric_mean,
    known,
    mean,
    never_improved,
    pairs,
    present,
    searched,
    spread_of,
    text,
    where,
)

LOSES, KEEPS = 0.95, 0.98
"""Fractions of the optimum: a value below the first is a loss, a value of at least the second is none."""
LOSS_ROOM = 0.1
"""One sample in ten, two of the smallest instance: the possible effect of another network on a share."""
ITERATIONS_ROOM = 10
NO_REFERENCE = "not known which part"


def verdicts(rows: Rows) -> list[Verdict]:
    """Every claim in both readings of the budgets."""
    return in_both([row for row in rows if row["n"] in paper.E3_SIZES], _verdicts_of)


def _verdicts_of(rows: Rows) -> list[Verdict]:
    return [
        _ssg_loses(rows),
        _dd_keeps(rows),
        _without_dual_verdict(rows, "paper-no-dual", "E3 removing the dual update alone costs quality"),
        _without_dual_verdict(rows, "ssg", "E3 SSG in place of DD costs quality"),
        _more_iterations(rows),
        _ssg_iterations(rows),
        _dd_iterations(rows),
        _speeds(rows, "ssg", "E3 speed-up of SSG over SCIP", "0.3, 2.7, 20–30", paper.SSG_SPEED),
        _speeds(rows, "paper", "E3 speed-up of DD over SCIP", _numbers(paper.DD_SPEED), paper.DD_SPEED),
    ]


def _ssg_loses(rows: Rows) -> Verdict:
    reachable = Reachable(rows)
    ratios = _by_size(lambda n: mean(reachable.shares(where(rows, n=n, method="ssg"))))
    lost = [ratio < LOSES for ratio in ratios.values()]
    near = [abs(ratio - paper.SSG_QUALITY[n]) <= LOSS_ROOM for n, ratio in ratios.items()]
    return judged(
        "E3 SSG loses quality",
        f"{_numbers(paper.SSG_QUALITY)} of SCIP",
        f"{_told(ratios) or NO_REFERENCE} of the best known potable samples; "
        f"{_proofs(rows, 'ssg', reachable)}",
        holds=all(lost) and all(near) if lost else None,
        in_part=any(lost),
        open_end=not any(lost) and not _all_proved(rows, "ssg", reachable),
        rule=f"below {LOSES:g} of the best known at every size, hence of the optimum, and within "
        f"{LOSS_ROOM:g} of the paper's share; in part: below at some size",
        rows=rows,
    )


def _dd_keeps(rows: Rows) -> Verdict:
    reachable = Reachable(rows)
    ratios = _by_size(lambda n: mean(reachable.shares(where(rows, n=n, method="paper"))))
    ours = _by_size(lambda n: mean(reachable.shares(where(rows, n=n, method="dual-decomposition"))))
    held = [ratio >= KEEPS for ratio in ratios.values()]
    proved = _all_proved(rows, "paper", reachable)
    return judged(
        "E3 DD keeps it",
        f"{_numbers(paper.DD_QUALITY)} of SCIP",
        f"{_told(ratios) or NO_REFERENCE} of the best known potable samples; our defaults "
        f"{_told(ours) or 'not run'}; "
        f"{_proofs(rows, 'paper', reachable)}",
        holds=all(held) and proved if held else None,
        in_part=any(held),
        open_end=all(held) and not proved,
        rule=f"at least {KEEPS:g} of the best known at every size, and that proved optimal; in part: at some "
        "size",
        rows=rows,
    )


def _all_proved(rows: Rows, method: str, reachable: Reachable) -> bool:
    return all(reachable.proved(row) for row in where(rows, method=method) if reachable.known(row))


def _proofs(rows: Rows, method: str, reachable: Reachable) -> str:
    mine = where(rows, method=method)
    looked, proved = (sum(map(holds, mine)) for holds in (reachable.known, reachable.proved))
    return (
        f"over the {looked} of {len(mine)} instances for which there is a reference, {proved} of them proved"
    )


def _without_dual_verdict(rows: Rows, method: str, claim: str) -> Verdict:
    matched = pairs(rows, method, "paper")

    def ratio(n: int, name: str) -> float:
        mine = [(without, full) for without, full in matched if full["n"] == n]
        total = math.fsum(known([full for _, full in mine], name))
        return math.fsum(known([without for without, _ in mine], name)) / total if total else math.nan

    ratios, flips = _by_size(lambda n: ratio(n, "potable")), _by_size(lambda n: ratio(n, "flipped"))
    worst = min(ratios, key=lambda n: ratios[n], default=0)
    loss = 1.0 - ratios.get(worst, math.nan)
    return judged(
        claim,
        f"up to {100 * paper.MOST_LOST:g} %",
        f"at most {text(100 * loss, 2)} % (at n = {worst}) of DD's potable samples are lost{_algebra(rows)}: "
        f"over those of DD {_told(ratios)}; newly flipped ones {_told(flips)}, over {len(matched)} pairs",
        holds=loss >= paper.MOST_LOST - LOSS_ROOM if ratios else None,
        in_part=loss > 1.0 - LOSES,
        rule=f"at some size that is lost, give or take {100 * LOSS_ROOM:g} of 100 samples; in part: more "
        f"than {100 * (1.0 - LOSES):.0f}",
        rows=[row for pair in matched for row in pair],
    )


def _algebra(rows: Rows) -> str:
    """If little but the box limits x, lambda cancels in the network step (docs/method.md)."""
    per_sample = bool(rows) and all(row.get("budgets") == "per sample" for row in rows)
    return " (by algebra: nothing but its own budget limits a sample)" if per_sample else ""


def _more_iterations(rows: Rows) -> Verdict:
    used = [row for row in rows if row["method"] in ("ssg", "paper-no-dual", "paper")]

    def ratios(method: str) -> dict[int, float]:
        full = _by_size(lambda n: average(where(used, n=n, method="paper"), "iterations"))
        return _by_size(
            lambda n: average(where(used, n=n, method=method), "iterations") / full.get(n, math.nan)
        )

    ssg, plain = ratios("ssg"), ratios("paper-no-dual")
    every = [*ssg.values(), *plain.values()]
    return judged(
        "E3 without dual updates iterations rise by two or three orders of magnitude",
        f"{paper.MORE_ITERATIONS:g} times and more (its own figures: {_span(paper.SSG_ITERATIONS)} against "
        f"{_span(paper.DD_ITERATIONS.values())})",
        f"its own caps, {paper.SSG_CAP} iterations of SSG and {paper.ITERATIONS} of DD, and its own figures "
        f"allow at most {paper.SSG_ITERATIONS[1] / min(paper.DD_ITERATIONS.values()):g} times, by "
        f"arithmetic; here iterations until the end over those of DD: SSG {_told(ssg) or '–'}; multipliers "
        f"at zero {_told(plain) or '–'}",
        holds=max(every) >= paper.MORE_ITERATIONS if every else None,
        rule=f"at least {paper.MORE_ITERATIONS:g} times at some size",
        rows=used,
    )


def _ssg_iterations(rows: Rows) -> Verdict:
    mine, (low, high) = where(rows, method="ssg"), paper.SSG_ITERATIONS
    best = _by_size(lambda n: average(where(mine, n=n), "best_at"))
    inside = [low <= value <= high for value in best.values()]
    return judged(
        "E3 iterations of SSG",
        f"{low}–{high}",
        f"the best point comes at {_told(best)}{_never_improved_note(mine)}",
        holds=all(inside) if best else None,
        in_part=any(inside),
        rule=f"its best point comes between iterations {low} and {high} at every size; in part: at some",
        rows=mine,
    )


def _dd_iterations(rows: Rows) -> Verdict:
    mine = where(rows, method="paper")
    done = [row for row in mine if converged(row)]
    loops = _by_size(lambda n: average(where(done, n=n), "iterations"))
    ended = _by_size(lambda n: average(where(mine, n=n), "iterations"))
    near = [abs(loops[n] - paper.DD_ITERATIONS[n]) <= ITERATIONS_ROOM for n in loops]
    return judged(
        "E3 iterations of DD",
        _numbers(paper.DD_ITERATIONS),
        f"{_told(ended)} to the end, converged in {converged_in(mine)}",
        holds=len(done) == len(mine) and all(near) if mine else None,
        in_part=any(near),
        rule=f"every run converges, after the paper's number of iterations, give or take {ITERATIONS_ROOM}",
        rows=mine,
    )


def _never_improved_note(rows: Rows) -> str:
    """Runs that are not in the mean of the iteration that found the best point."""
    stuck = sum(map(never_improved, rows))
    return f", {stuck} of {len(rows)} runs never improved on the start" if stuck else ""


def _speeds(rows: Rows, method: str, claim: str, theirs: str, claimed: dict[int, float]) -> Verdict:
    every = pairs(rows, method, "big-m")
    matched = [(mine, scip) for mine, scip in timed(every) if searched(scip)]

    def ratios(n: int) -> list[float]:
        return [times_as_long(scip, mine) for mine, scip in matched if mine["n"] == n]

    speed = _by_size(lambda n: geometric_mean(ratios(n)))
    cut = {scip["n"] for _, scip in matched if not done(scip)}
    settled = {n: as_fast(speed[n], claimed[n], n in cut) for n in claimed if n in speed}
    held = [word for word in settled.values() if word is not None]
    ours = [mine for mine, _ in matched]
    fast = bool(settled) and len(held) == len(settled) and all(held)
    bounds = f" (lower bounds at n = {', '.join(map(str, sorted(cut)))}: SCIP was not done)" if cut else ""
    return judged_time(
        claim,
        theirs,
        f"{_told(speed) or 'nothing to compare with'}{bounds}; {ratios_said(matched)}, over the "
        f"{len(matched)} of {len(every)} pairs in which SCIP searched; it {said(ours)}",
        fast=fast if settled else None,
        part=any(held),
        solved=method == "ssg" or all_solved(ours),
        quality=Quality.of(ours, rows),
        open_end=bool(settled) and not held,
        rule="at least that fast at every size, and slower than SCIP where the paper is; in part: at some",
        rows=[row for pair in every for row in pair],
    )


def as_fast(ours: float, claimed: float, at_least: bool) -> bool | None:
    """Whether a speed-up is as claimed; None if ours is only a lower bound below the claim."""
    if claimed < 1.0:
        return False if ours >= 1.0 else None if at_least else True
    if ours >= claimed:
        return True
    return None if at_least else False


def _by_size(value: Callable[[int], float]) -> dict[int, float]:
    """A number for each of the paper's sizes that was run."""
    numbers = {n: value(n) for n in paper.E3_SIZES}
    return {n: number for n, number in numbers.items() if math.isfinite(number)}


def _told(numbers: dict[int, float]) -> str:
    return ", ".join(f"n={n}: {text(value)}" for n, value in numbers.items())


def _span(numbers: Collection[float]) -> str:
    return f"{min(numbers):g}–{max(numbers):g}"


def _numbers(claimed: dict[int, float]) -> str:
    sizes = "" if tuple(claimed) == paper.E3_SIZES else f" at n = {', '.join(map(str, claimed))}"
    return ", ".join(f"{value:g}" for value in claimed.values()) + sizes


NAME = "e3"
LOOPS = ("ssg", "ssg-plain", "ssg-one-step", "paper", "paper-no-dual", "dual-decomposition")
METHODS = (*LOOPS, "auto", "big-m")
NETWORK = "2x16"
"""Its smallest size: SCIP has to make progress within its limit."""
SIZES = (*paper.E3_SIZES, *paper.E3_TEXT_SIZES)


HEADER = (
    "n", "budgets", "method", "runs", *COUNTS, "iterations", "best found at", *ENDING, "speed-up over SCIP",
    "pairs",
)  # fmt: skip


def tables(rows: Rows) -> list[ResultTable]:
    """One line per size, reading and method; then big-M's endings."""
    table = ResultTable(
        "e3",
        "E3: without and with dual updates, beside SCIP",
        HEADER,
        reading=f"{HOW_TO_READ} *paper-no-dual*: Algorithm 1 with the multipliers kept at zero and "
        "everything else equal, the clean ablation; *ssg*: Algorithm 2 with Adam, *ssg-plain*: with the "
        "plain steps of its listing, *ssg-one-step*: the variant the text of E3 describes. *Speed-up*: over "
        "the *pairs* in which SCIP searched; with > it is a lower bound, since SCIP was not done. Water is "
        "feasible from the start (do nothing), so the iterations are those until a method ended, beside the "
        "one that found its best point.",
        records=rows,
    )
    for budgets in paper.BUDGETS:
        mine = read(rows, budgets)
        reachable = Reachable(mine)
        for n in sorted(distinct(mine, "n")):
            for method in present(CONTESTANTS, mine):
                cell = where(mine, n=n, method=method)
                if cell:
                    beside = _speed_up_cells(where(mine, n=n), method)
                    table.rows.append([str(n), budgets, *_line(cell, reachable), *beside])
    return [table, *how_big_m_ended("e3", "E3", rows, "n", "budgets")]


def _line(cell: Rows, reachable: Reachable) -> list[str]:
    method = cell[0]["method"]
    loop = method not in BASELINES and method != "auto"
    return [
        method,
        str(len(cell)),
        *reached(cell, reachable),
        spread_of(cell, "iterations") if loop else "–",
        spread_of(cell, "best_at") if loop else "–",
        *ending(cell),
    ]


def _speed_up_cells(rows: Rows, method: str) -> list[str]:
    """Speed-up over SCIP, and over how many pairs."""
    if method in BASELINES:
        return ["–", "–"]
    ratios, cut = _speed_up(rows, method)
    return [f"{'> ' if cut else ''}{text(geometric_mean(ratios))}x" if ratios else "–", str(len(ratios))]


def _speed_up(rows: Rows, method: str) -> tuple[list[float], bool]:
    """Seconds of SCIP over those of the method where SCIP searched, and whether it was cut off somewhere."""
    matched = [pair for pair in timed(pairs(rows, method, "big-m")) if searched(pair[1])]
    ratios = [times_as_long(scip, mine) for mine, scip in matched]
    return ratios, any(not done(scip) for _, scip in matched)


def draw(rows: Rows) -> Drawing | None:
    """Quality, iterations and speed-up, as in the paper, with both kinds of budgets."""
    methods = [method for method in present(CONTESTANTS, rows) if method not in BASELINES]
    if not methods:
        return None
    panels: list[LinesPanel] = []
    for budgets in paper.BUDGETS:
        mine = read(rows, budgets)
        reachable, sizes = Reachable(mine), sorted(distinct(mine, "n"))

        def series(
            names: Sequence[str],
            value: Callable[[Rows, str], float],
            mine: Rows = mine,
            sizes: list[Any] = sizes,
        ) -> dict[str, list[tuple[float, float]]]:
            return {m: [(float(n), value(where(mine, n=n), m)) for n in sizes] for m in names}

        def quality(cell: Rows, method: str, reachable: Reachable = reachable) -> float:
            return mean(reachable.shares(where(cell, method=method)))

        loops = [method for method in methods if method != AUTO]
        title = f"budgets {budgets}"
        panels += [
            LinesPanel(f"quality, {title}", "samples n", "potable / best known", series(methods, quality)),
            LinesPanel(
                f"iterations, {title}", "samples n", "iterations to the end",
                series(loops, lambda cell, m: average(where(cell, method=m), "iterations")), log_y=True,
            ),
            LinesPanel(
                f"speed-up (at least, where SCIP was not done), {title}", "samples n",
                "seconds of SCIP / seconds",
                series(methods, lambda cell, m: geometric_mean(_speed_up(cell, m)[0])), log_y=True,
                level=(1.0, "SCIP"),
            ),
        ]  # fmt: skip
    return Drawing("E3: without (ssg, paper-no-dual) and with dual updates", panels, 3)


def _runs(settings: BenchSettings) -> list[Run]:
    sizes = dict(zip(paper.BUDGETS, ((4, 8), (4,)) if settings.quick else (SIZES, SIZES), strict=True))
    cells = [{"network": NETWORK, "n": n, "budgets": b} for b in paper.BUDGETS for n in sizes[b]]
    planned = runs(NAME, cells, (*LOOPS, "auto"), settings)
    return planned + tried_first(NAME, cells, "big-m", settings)


E3 = Experiment(NAME, "E3: without dual updates", METHODS, _runs, on_water, tables, verdicts, draw)
