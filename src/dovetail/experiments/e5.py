"""E5: tree planting with the network step's sub-solver swapped, beside SCIP."""

from __future__ import annotations

import math

from dovetail.experiments.experiment import Experiment, Rows
from dovetail.experiments.figures import Bars, Drawing
from dovetail.experiments.instances import on_trees
from dovetail.experiments.run import Record, Run, Settings, runs
from dovetail.experiments.statistics import average, distinct, geometric_mean, mean, pairs, text, where
from dovetail.experiments.table import Table
from dovetail.experiments.verdict import Verdict, judged

NAME = "e5"
METHODS = ("paper", "paper-barrier", "dual-decomposition", "big-m")
NETWORKS = ("8x32", "16x64", "24x128")
PAPER = {
    "big-m": (111.0, math.nan, 860.0),
    "paper-barrier": (8.5, 24.8, 63.1),
    "paper": (0.4, 1.4, 6.5),
}
"""Seconds, network by network."""
SAME = 1e-3
"""Objectives within this part of each other count as the same."""


def _runs(settings: Settings) -> list[Run]:
    grid, networks = (2, ("2x8", "3x8")) if settings.quick else (6, NETWORKS)
    return runs(NAME, [{"network": w, "grid": grid} for w in networks], METHODS, settings)


def _tables(rows: Rows) -> list[Table]:
    table = Table(
        "e5",
        "E5: tree planting, means over seeds",
        (
            "network",
            "method",
            "runs",
            "found",
            "expected survivors",
            "converged",
            "iterations",
            "seconds",
            "of them MIP steps",
            "of them network steps",
            "paper's seconds",
            "note",
        ),
        reading=(
            "The objective is the expected number of surviving trees, larger is better, checked with the "
            "networks themselves. *paper* is the paper's loop with projected gradient, *paper-barrier* "
            "the same with the log barrier (Newton-CG). The MIP steps are the same in both and take "
            "nearly all of the time here."
        ),
    )
    for network in distinct(rows, "network"):
        for method in distinct(rows, "method"):
            cell = where(rows, network=network, method=method)
            if cell:
                table.rows.append(_line(cell))
    return [table]


def _line(cell: Rows) -> list[str]:
    first, found = cell[0], [row for row in cell if row["found"]]
    network, method = first["network"], first["method"]
    paper = (
        PAPER.get(method, ())[NETWORKS.index(network)]
        if network in NETWORKS and method in PAPER
        else math.nan
    )
    return [
        network,
        method,
        str(len(cell)),
        str(len(found)),
        text(average(found, "objective"), 4),
        str(sum(row.get("stop") in ("agreed", "proved") for row in cell)),
        text(average(cell, "iterations")) if method != "big-m" else "–",
        text(average(cell, "seconds")),
        text(average(cell, "mip_seconds")) if method != "big-m" else "–",
        text(average(cell, "nn_seconds")) if method != "big-m" else "–",
        text(paper),
        _note(first),
    ]


def _note(row: Record) -> str:
    if row["status"] == "refused":
        return "too large to build"
    if _wrongly_infeasible(row):
        return "SCIP says infeasible, wrongly"
    return "time ran out while it was built" if "ran out while" in str(row["message"]) else ""


def _wrongly_infeasible(row: Record) -> bool:
    """SCIP denies that there is a point, beside a verified one."""
    return row["status"] == "feasible" and "SCIP says infeasible" in row["message"]


def _verdicts(rows: Rows) -> list[Verdict]:
    swapped = pairs(rows, "paper-barrier", "paper", "network")
    ratios = [barrier["seconds"] / max(pgd["seconds"], 1e-3) for barrier, pgd in swapped]
    steps = [barrier["nn_seconds"] / max(pgd["nn_seconds"], 1e-3) for barrier, pgd in swapped]
    both = [(b, p) for b, p in swapped if b["found"] and p["found"]]
    equal = [abs(b["objective"] - p["objective"]) <= SAME * abs(p["objective"]) for b, p in both]
    ratio = geometric_mean(ratios)
    apart = max((abs(b["objective"] / p["objective"] - 1) for b, p in both), default=math.nan)
    return [
        _times(rows, "big-m", "E5 seconds of SCIP", "111–860"),
        _times(rows, "paper-barrier", "E5 seconds of the barrier", "8.5, 24.8, 63.1"),
        _times(rows, "paper", "E5 seconds of projected gradient", "0.4, 1.4, 6.5"),
        judged(
            "Swapping the sub-solver changes time by less than 2x, identical objective",
            "< 2x (its own E5: 9–21x)",
            f"time {text(ratio)}x, network steps alone {text(geometric_mean(steps))}x; objectives the "
            f"same in {sum(equal)} of {len(equal)} pairs, at most {text(100 * apart, 2)} % apart",
            holds=(ratio < 2.0 and all(equal)) if both else None,
            in_part=bool(both) and (ratio < 2.0 or all(equal)),
        ),
        judged(
            "E5 barrier over projected gradient",
            "9–21x slower",
            f"{text(ratio)}x in all, {text(geometric_mean(steps))}x in the network steps",
            holds=9.0 <= ratio <= 21.0 if ratios else None,
            in_part=bool(steps) and geometric_mean(steps) > 2.0,
        ),
    ]


def _times(rows: Rows, method: str, claim: str, paper: str) -> Verdict:
    means = {w: average(where(rows, network=w, method=method), "seconds") for w in NETWORKS}
    there = {w: value for w, value in means.items() if math.isfinite(value)}
    cells = [row for row in where(rows, method=method) if row["network"] in NETWORKS]
    found = sum(row["found"] for row in cells)
    built = ", ".join(f"{w}: {text(value)}" for w, value in there.items())
    if method == "big-m":
        refused = sum(row["status"] == "refused" for row in cells)
        denied = sum(map(_wrongly_infeasible, cells))
        return judged(
            claim,
            paper,
            f"{built or 'no solve'} s; a point in {found} of {len(cells)} runs; {denied} ended with SCIP "
            f"calling a feasible problem infeasible, {refused} were too large to build",
            holds=found == 0 or mean(list(there.values())) >= 50.0 if cells else None,
            in_part=True,
        )
    slower = [there[w] <= 2.0 * PAPER[method][NETWORKS.index(w)] for w in there]
    return judged(claim, paper, f"{built} s", holds=all(slower) if there else None, in_part=any(slower))


def _draw(rows: Rows) -> Drawing | None:
    networks, methods = distinct(rows, "network"), distinct(rows, "method")
    if not networks:
        return None

    def series(name: str) -> dict[str, list[float]]:
        return {
            m: [
                average([row for row in where(rows, network=w, method=m) if row["found"]], name)
                for w in networks
            ]
            for m in methods
        }

    return Drawing(
        "E5: tree planting; a dash: no point found",
        [
            Bars("time", "seconds", networks, series("seconds"), log_y=True),
            Bars("network steps alone", "seconds", networks, series("nn_seconds"), log_y=True),
            Bars("objective (larger is better)", "expected survivors", networks, series("objective")),
        ],
    )


E5 = Experiment(NAME, "E5: sub-solvers on tree planting", METHODS, _runs, on_trees, _tables, _verdicts, _draw)
