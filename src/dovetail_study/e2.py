"""E2: ever deeper networks at n = 100, with torch's own initialisation and with ones that can be trained."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dovetail_study.best_known import Reachable
from dovetail_study.claims import e2 as claims
from dovetail_study.claims.duration import read
from dovetail_study.claims.e2 import BEGINS, per_iteration
from dovetail_study.contestants import CONTESTANTS, begun
from dovetail_study.experiment import Experiment, Rows
from dovetail_study.figures import Drawing, LinesPanel
from dovetail_study.instances import on_water, written_out
from dovetail_study.origin import in_order
from dovetail_study.paper import BUDGETS, E2_NETWORKS, E2_SAMPLES, INTRODUCTION, INTRODUCTION_SECONDS
from dovetail_study.run import BenchSettings, Record, Run, runs, tried_first
from dovetail_study.sections import big_m
from dovetail_study.sections.columns import COUNTS, ENDING, HOW_TO_READ, ending, reached
from dovetail_study.statistics import (
    average,
    constant,
    converged,
    count_of,
    distinct,
    mean,
    present,
    share,
    spread,
    spread_of,
    text,
    where,
)
from dovetail_study.table import ResultTable

NAME = "e2"
LOOPS = ("paper", "dual-decomposition")
METHODS = (*LOOPS, "big-m", "auto", "size")
CLAIMED_SIZE = {**INTRODUCTION, "init": "default"}
"""The instance whose written-out size the paper names, and which SCIP did not solve in two hours."""


HEADER = (
    "network", "initialisation", "n", "budgets", "parameters", "accuracy", "majority", "spread", "method",
    "runs", *COUNTS, "iterations", "s / iteration", *ENDING, "device",
)  # fmt: skip


def tables(rows: Rows) -> list[ResultTable]:
    """One line per network, beginning and method; then big-M's endings and sizes."""
    solved = [row for row in rows if row["method"] != "size"]
    reachable = Reachable(solved)
    table = ResultTable(
        "e2",
        "E2: networks of growing depth",
        HEADER,
        reading=f"{HOW_TO_READ} *Initialisation*: torch's own, He's, or He's in a residual network, "
        "which is not the paper's; the paper does not say which it used. *Accuracy* is on held-out rows, "
        "*majority* that of always saying the more frequent class, *spread* the standard deviation of the "
        "logits over the data: at 0 the network is a constant.",
        records=solved,
    )
    for network in in_order(solved, "network"):
        for init in BEGINS:
            for method in present(CONTESTANTS, solved):
                for budgets in BUDGETS:
                    mine = where(read(solved, budgets), network=network, init=init, method=method)
                    for n in distinct(mine, "n"):
                        table.rows.append(_line(where(mine, n=n), reachable))
    ends = big_m.tables("e2", "E2", rows, "network", "init", "n")
    return [made for made in (table, *ends, _sizes(where(rows, method="size"))) if made.rows]


def _line(cell: Rows, reachable: Reachable) -> list[str]:
    first = cell[0]
    loop = first["method"] in LOOPS
    return [
        first["network"],
        BEGINS[first["init"]],
        str(first["n"]),
        first.get("budgets", "total"),
        f"{first['parameters']:,}" if first.get("parameters") else "–",
        text(average(cell, "accuracy")),
        text(average(cell, "majority")),
        text(average(cell, "spread"), 2),
        first["method"],
        str(len(cell)),
        *reached(cell, reachable),
        spread_of(cell, "iterations") if loop else "–",
        spread(_each(cell)) if loop else "–",
        *ending(cell),
        ", ".join(map(str, distinct(cell, "device"))),
    ]


def _sizes(rows: Rows) -> ResultTable:
    header = ("network", "n", "variables", "constraints", "coefficients", "columns of the MIP in DD")
    table = ResultTable(
        "e2-size", "Model size if the network is written out: counted, nothing solved", header, records=rows
    )
    for row in rows:
        numbers = [f"{row[name]:,}" for name in ("variables", "constraints", "coefficients", "columns")]
        table.rows.append([row["network"], str(row["n"]), *numbers])
    return table


def reading(rows: Rows) -> str:
    """How many networks are constant, and what the loops make of them."""
    flat = [row for row in rows if row["method"] in LOOPS and constant(row)]
    if not flat:
        return ""
    agreed = ", ".join(f"{m} in {count_of(where(flat, method=m), converged)}" for m in present(LOOPS, flat))
    begun = ", ".join(
        f"{w} ({BEGINS[i]})" for w, i in dict.fromkeys((row["network"], row["init"]) for row in flat)
    )
    return (
        f"Networks that came out constant: {begun}. A constant network has no gradient: nothing that the "
        "network step does makes a sample potable, and u stays at x. On these the loops converged: "
        f"{agreed}. That success rises with depth because deep networks trained this way are constant is a "
        "hypothesis about the paper's figure, not a finding: the paper names neither its initialisation nor "
        "whether its networks were constant."
    )


def draw(rows: Rows) -> Drawing | None:
    """Success and time over networks, with the budgets by which the page judges."""
    loops = [row for row in rows if row["method"] in LOOPS]
    solved = read(loops, BUDGETS[-1]) or loops
    networks = in_order(solved, "network")
    if not networks:
        return None
    place = {network: float(i) for i, network in enumerate(networks)}

    def series(value: Any) -> dict[str, list[tuple[float, float]]]:
        return {
            f"{method}, {kind}": [
                (place[w], value(where(solved, network=w, init=init, method=method))) for w in networks
            ]
            for method in LOOPS
            for init, kind in BEGINS.items()
        }

    shared: dict[str, Any] = {
        "x": "network (depth x width)",
        "ticks": {i: network for network, i in place.items()},
    }
    rate = series(lambda cell: share(cell, converged))
    total, each = series(lambda cell: average(cell, "seconds")), series(lambda cell: mean(_each(cell)))
    return Drawing(
        "E2: networks of growing depth",
        [
            LinesPanel(
                f"converged within the iterations{_with(solved)}", y="share of runs", series=rate, **shared
            ),
            LinesPanel("time to the end of the run", y="seconds", log_y=True, series=total, **shared),
            LinesPanel("time per iteration", y="seconds", log_y=True, series=each, **shared),
        ],
    )


def _with(rows: Rows) -> str:
    return "".join(f", budgets {budgets}" for budgets in distinct(rows, "budgets"))


def _each(cell: Rows) -> list[float]:
    return [value for row in cell if math.isfinite(value := per_iteration(row))]


def _runs(settings: BenchSettings) -> list[Run]:
    networks, n = (E2_NETWORKS[:2], 10) if settings.quick else (E2_NETWORKS, E2_SAMPLES)
    cells = [{"network": w, "n": n, "init": init} for w in networks for init in ("default", "he")]
    # even with He's initialisation a plain network of 64x512 comes out constant: a residual one joins it
    cells.append({"network": networks[-1], "n": n, "init": "residual"})
    again = cells[:1] if settings.quick else cells
    solved = cells + [{**cell, "budgets": "per sample"} for cell in again]
    planned = runs(NAME, solved, (*LOOPS, "auto"), settings)
    planned += tried_first(NAME, cells, "big-m", settings)
    if not settings.quick:
        claimed = runs(NAME, [CLAIMED_SIZE], ("big-m",), settings, seeds=1)
        planned += [replace(run, whole=INTRODUCTION_SECONDS) for run in claimed]
    counted = [{**CLAIMED_SIZE, "network": networks[-1], "n": n} for n in (500, 60)]
    return planned + runs(NAME, counted, ("size",), settings, seeds=1)


def _execute(run: Run, settings: BenchSettings) -> Record:
    if run.method == "size":  # nothing is solved: what would have to be built is counted
        return {**begun(run, settings), "found": False, **written_out(run["network"], run["n"])}
    return on_water(run, settings)


E2 = Experiment(
    NAME, "E2: networks of growing depth", METHODS, _runs, _execute, tables, claims.verdicts, draw, reading
)
