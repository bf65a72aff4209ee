"""E3: what the dual update is worth: single-step gradient, dual decomposition and SCIP side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dovetail_study.best_known import Reachable, pairs
from dovetail_study.claims import e3 as claims
from dovetail_study.claims.duration import read, timed, times_as_long
from dovetail_study.contestants import AUTO, BASELINES, CONTESTANTS
from dovetail_study.ends import done, searched, tally
from dovetail_study.experiment import Experiment, Rows
from dovetail_study.figures import Drawing, LinesPanel
from dovetail_study.instances import on_water
from dovetail_study.paper import BUDGETS, E3_SIZES, E3_TEXT_SIZES
from dovetail_study.run import BenchSettings, Run, runs, tried_first
from dovetail_study.sections import big_m
from dovetail_study.sections.columns import COUNTS, ENDING, HOW_TO_READ, ending, reached
from dovetail_study.statistics import average, distinct, geometric_mean, mean, present, spread_of, text, where
from dovetail_study.table import ResultTable

NAME = "e3"
LOOPS = ("ssg", "ssg-plain", "ssg-one-step", "paper", "paper-no-dual", "dual-decomposition")
METHODS = (*LOOPS, "auto", "big-m")
NETWORK = "2x16"
"""Its smallest: SCIP has to get somewhere within its limit."""
SIZES = (*E3_SIZES, *E3_TEXT_SIZES)


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
    for budgets in BUDGETS:
        mine = read(rows, budgets)
        reachable = Reachable(mine)
        for n in sorted(distinct(mine, "n")):
            for method in present(CONTESTANTS, mine):
                cell = where(mine, n=n, method=method)
                if cell:
                    beside = _beside(where(mine, n=n), method)
                    table.rows.append([str(n), budgets, *_line(cell, reachable), *beside])
    return [table, *big_m.tables("e3", "E3", rows, "n", "budgets")]


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


def _beside(rows: Rows, method: str) -> list[str]:
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


def reading(rows: Rows) -> str:
    """Who flips how many, and how SCIP's searches ended."""
    parts = []
    for budgets in BUDGETS:
        mine = read(rows, budgets)
        flips = {m: average(where(mine, method=m), "flipped") for m in present(CONTESTANTS, mine)}
        ranked = sorted(((value, m) for m, value in flips.items() if value == value), reverse=True)
        if ranked:
            listed = ", ".join(f"{m} {text(value)}" for value, m in ranked)
            ends = tally(where(mine, method="big-m"))
            parts.append(
                f"Budgets {budgets}: newly flipped samples per run, over all sizes: {listed}. SCIP: "
                f"{ends or 'no runs'}."
            )
    return " ".join(parts)


def draw(rows: Rows) -> Drawing | None:
    """Quality, iterations and speed-up, as in the paper, with both kinds of budgets."""
    methods = [method for method in present(CONTESTANTS, rows) if method not in BASELINES]
    if not methods:
        return None
    panels: list[LinesPanel] = []
    for budgets in BUDGETS:
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
    sizes = dict(zip(BUDGETS, ((4, 8), (4,)) if settings.quick else (SIZES, SIZES), strict=True))
    cells = [{"network": NETWORK, "n": n, "budgets": b} for b in BUDGETS for n in sizes[b]]
    planned = runs(NAME, cells, (*LOOPS, "auto"), settings)
    return planned + tried_first(NAME, cells, "big-m", settings)


E3 = Experiment(
    NAME, "E3: without dual updates", METHODS, _runs, on_water, tables, claims.verdicts, draw, reading
)
