"""E4: four kinds of network, one unchanged solver."""

from __future__ import annotations

import math
from itertools import product

from dovetail_study.best_known import Reachable
from dovetail_study.claims import e4 as claims
from dovetail_study.claims.duration import read
from dovetail_study.contestants import CONTESTANTS
from dovetail_study.experiment import Experiment, Rows
from dovetail_study.figures import Bars, Drawing, LinesPanel
from dovetail_study.instances import on_water
from dovetail_study.paper import BUDGETS, E4_KINDS, E4_SIZES
from dovetail_study.run import BenchSettings, Run, runs, tried_first
from dovetail_study.sections import big_m
from dovetail_study.sections.columns import COUNTS, ENDING, HOW_TO_READ, ending, reached
from dovetail_study.statistics import (
    average,
    converged,
    distinct,
    geometric_mean,
    known,
    present,
    share,
    text,
    where,
)
from dovetail_study.table import ResultTable

NAME = "e4"
LOOPS = ("paper", "dual-decomposition")
METHODS = (*LOOPS, "big-m", "auto")


LEARNT = 0.005
"""By so much a network must beat the majority class to have learnt something."""
HEADER = ("network", "accuracy", "majority", "n", "budgets", "method", "runs", *COUNTS, *ENDING)


def tables(rows: Rows) -> list[ResultTable]:
    """One line per network, size and method; then big-M's endings."""
    reachable = Reachable(rows)
    table = ResultTable(
        "e4",
        "E4: the unchanged solver on four kinds of network",
        HEADER,
        reading=f"{HOW_TO_READ} *Accuracy* on held-out rows, beside that of the majority class; the "
        "networks are of our own making, since the paper does not publish its own. big-M appears where it "
        "was tried.",
        records=rows,
    )
    for network, kind in E4_KINDS.items():
        for n in sorted(distinct(where(rows, network=network), "n")):
            for budgets, method in product(BUDGETS, present(CONTESTANTS, rows)):
                cell = where(read(rows, budgets), network=network, method=method, n=n)
                if cell:
                    learnt = [text(average(cell, name)) for name in ("accuracy", "majority")]
                    place = [kind, *learnt, str(n), budgets, method, str(len(cell))]
                    table.rows.append([*place, *reached(cell, reachable), *ending(cell)])
    return [table, *big_m.tables("e4", "E4", rows, "network", "n")]


def reading(rows: Rows) -> str:
    """Who flips how many; and networks whose rates mean little."""
    said = []
    for budgets, method in product(BUDGETS, present(LOOPS, rows)):
        mine = where(read(rows, budgets), method=method)
        flips = {kind: average(where(mine, network=w), "flipped") for w, kind in E4_KINDS.items()}
        listed = ", ".join(f"{kind} {text(value)}" for kind, value in flips.items() if math.isfinite(value))
        if listed:
            said.append(f"{method}, budgets {budgets}: {listed}")
    if not said:
        return ""
    idle = [kind for w, kind in E4_KINDS.items() if _learnt_nothing(where(rows, network=w))]
    note = f" {', '.join(idle)}: no better than the majority class, so its rates mean little." if idle else ""
    return f"Newly flipped samples per run, {'; '.join(said)}.{note}"


def _learnt_nothing(rows: Rows) -> bool:
    return bool(rows) and average(rows, "accuracy") <= average(rows, "majority") + LEARNT


def draw(rows: Rows) -> Drawing | None:
    """Accuracy, success and time, with the budgets by which the page judges."""
    rows = read(rows, BUDGETS[-1]) or rows
    if not rows:
        return None
    sizes = sorted(distinct(rows, "n"))
    kinds = {w: kind for w, kind in E4_KINDS.items() if where(rows, network=w)}
    names = list(kinds.values())
    accuracy = {
        label: [average(where(rows, network=w), field) for w in kinds]
        for label, field in (("network", "accuracy"), ("majority class", "majority"))
    }
    rates = {m: [share(where(rows, network=w, method=m), converged) for w in kinds] for m in LOOPS}
    seconds = {
        f"{kind}, {m}": [
            (float(n), geometric_mean(known(where(rows, network=w, n=n, method=m), "seconds"))) for n in sizes
        ]
        for m in LOOPS
        for w, kind in kinds.items()
    }
    return Drawing(
        "E4: four kinds of network, one solver",
        [
            Bars("accuracy on held-out rows", "accuracy", names, accuracy),
            Bars("converged within the iterations", "share of runs", names, rates),
            LinesPanel(
                "time to the end of the run", "samples n", "seconds (geometric mean)", seconds, log_y=True,
                ticks={float(n): str(n) for n in sizes},
            ),
        ],
    )  # fmt: skip


def _runs(settings: BenchSettings) -> list[Run]:
    sizes = (5,) if settings.quick else E4_SIZES
    cells = [{"network": network, "n": n} for network in E4_KINDS for n in sizes]
    again = cells[:1] if settings.quick else cells
    both = cells + [{**cell, "budgets": "per sample"} for cell in again]
    solved = runs(NAME, both, (*LOOPS, "auto"), settings)
    # what big-M can write at all is seen on the smallest size; the rest is E1's
    return solved + tried_first(NAME, [cell for cell in cells if cell["n"] == sizes[0]], "big-m", settings)


E4 = Experiment(
    NAME, "E4: kinds of network", METHODS, _runs, on_water, tables, claims.verdicts, draw, reading
)
