"""E5: tree planting with the network step's sub-solver swapped, beside SCIP."""

from __future__ import annotations

import math

from dovetail_study.best_known import Reachable, instance
from dovetail_study.claims import e5 as claims
from dovetail_study.claims.e5 import mean_step
from dovetail_study.contestants import BASELINES, CONTESTANTS
from dovetail_study.ends import tally
from dovetail_study.experiment import Experiment, Rows
from dovetail_study.figures import Bars, Drawing
from dovetail_study.instances import on_trees
from dovetail_study.origin import in_order
from dovetail_study.paper import E5_NETWORKS, E5_SECONDS
from dovetail_study.run import FEW, BenchSettings, Run, runs, tried_first
from dovetail_study.sections import big_m
from dovetail_study.sections.columns import ENDING, NO_REFERENCE, UNITS, best_known, ending, gap
from dovetail_study.statistics import (
    average,
    count_of,
    distinct,
    found,
    mean,
    never_improved,
    present,
    spread_of,
    text,
    where,
)
from dovetail_study.table import ResultTable

NAME = "e5"
LOOPS = ("paper", "paper-no-dual", "paper-barrier", "dual-decomposition")
SLOW = ("paper-scip", "paper-outputs")
"""Minutes a run: a MIP step by SCIP, or one that keeps the outputs, takes seconds."""
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
    return [table, *big_m.tables("e5", "E5", rows, "network")]


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


def reading(rows: Rows) -> str:
    """The paper's form beside ours: what a MIP step costs and what comes out."""
    reachable, parts = Reachable(rows), []
    for method in present(CONTESTANTS, rows):
        cell = where(rows, method=method)
        step, points = mean_step(cell, "mip"), [row for row in cell if found(row)]
        if method not in BASELINES and method != "auto" and math.isfinite(step):
            looked = any(map(reachable.known, points))
            short = f"gap {gap(points, reachable)} %" if looked else NO_REFERENCE if points else "no point"
            stuck = sum(map(never_improved, cell))
            never = f", {stuck} never improved on the start" if stuck else ""
            mine = distinct(cell, "network")
            only = f", on {', '.join(mine)} only" if len(mine) < len(distinct(rows, "network")) else ""
            parts.append(
                f"- *{method}*: {text(step)} s a MIP step, {short} (a point in {len(points)} of {len(cell)} "
                f"runs{never}{only})."
            )
    if not parts:
        return ""
    proved = count_of(_instances(rows), reachable.proved)
    scip = tally(where(rows, method="big-m")) or "no runs"
    listed = "\n".join(parts)
    return (
        f"Over all networks:\n\n{listed}\n\nThe best known point is proved optimal in {proved} instances, "
        "where a network that came out otherwise on another machine is one of its own. "
        f"SCIP: {scip}."
    )


def _instances(rows: Rows) -> Rows:
    """One row of each instance."""
    return list({instance(row): row for row in rows}.values())


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


E5 = Experiment(
    NAME, "E5: sub-solvers on tree planting", METHODS, _runs, on_trees, tables, claims.verdicts, draw, reading
)
